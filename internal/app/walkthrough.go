package app

import (
	"fmt"
	"strings"

	"seckill/internal/seed"
	"seckill/internal/server"
)

// step is one document of the walk-through.
type step struct {
	title, note, document string
}

// walkSteps buy one unit, from signing in to the stored order. What a step needs
// from the one before stands in capitals.
func walkSteps(saleID, itemID string) []step {
	fill := strings.NewReplacer("SALE_ID", saleID, "ITEM_ID", itemID, "PASSWORD", seed.DemoPassword).Replace
	steps := []step{
		{"Sign in", `Then put {"Authorization": "Bearer ACCESS_TOKEN"} into the playground's Headers.`,
			`mutation SignIn { login(input: {account: "alice@demo.example", password: "PASSWORD"}) { tokens { accessToken accessTokenExpiresAt } userErrors { code message } } }`},
		{"Look at the sale", "",
			`query Look { sale(by: {id: "SALE_ID"}) { title phase serverTime viewer { action } items { id price { amount currencyCode } goods { name } stock { level remaining total } } } }`},
		{"Get a captcha", "Open the picture (the data: URL) in a new browser tab and read it.",
			`mutation Captcha { createCaptcha(input: {purpose: SECKILL, saleId: "SALE_ID", kind: TEXT}) { challenge { id prompt image expiresAt } userErrors { code message } } }`},
		{"Trade the answer for a path", "The path is yours alone and good for a minute.",
			`mutation Path { issueSeckillPath(input: {itemId: "ITEM_ID", captcha: {challengeId: "CHALLENGE_ID", answer: "ANSWER"}}) { path { token expiresAt } userErrors { code message ... on CaptchaError { challenge { id image } } } } }`},
		{"Buy", "Stock is taken at once; the order follows.",
			`mutation Buy { placeOrder(input: {itemId: "ITEM_ID", pathToken: "PATH_TOKEN", idempotencyKey: "walk-through-0001"}) { orderTask { id status } replayed userErrors { code message } } }`},
		{"Watch the order come", "A subscription: the first event is a snapshot, the last one carries the order.",
			`subscription Watch { orderTaskStatus(orderTaskId: "TASK_ID") { kind orderTask { status revision order { number status total { amount currencyCode } paymentDeadline } failure { code message } } } }`},
		{"Your orders", "",
			`query Mine { myOrders(first: 5) { totalCount edges { node { id number status item { goods { name } } total { amount currencyCode } } } } }`},
	}
	for i := range steps {
		steps[i].document = fill(steps[i].document)
	}
	return steps
}

// walkThrough is the text that the demo prints.
func walkThrough(saleID, itemID string) string {
	var b strings.Builder
	b.WriteString("\nWalk-through, to paste into the playground one by one:\n")
	for i, s := range walkSteps(saleID, itemID) {
		fmt.Fprintf(&b, "\n%d. %s. %s\n   %s\n", i+1, s.title, s.note, s.document)
	}
	b.WriteString("\n")
	return b.String()
}

// playgroundTabs are the documents that the playground opens with: what is on sale,
// then the walk-through, whose capitals are to be filled in.
func playgroundTabs() []server.Tab {
	tabs := []server.Tab{{Title: "What is on sale", Query: salesDocument}}
	for _, s := range walkSteps("SALE_ID", "ITEM_ID") {
		tabs = append(tabs, server.Tab{Title: s.title, Query: "# " + strings.TrimSpace(s.title+". "+s.note) + "\n" + s.document + "\n"})
	}
	return tabs
}

const salesDocument = `query Sales {
  serverInfo { version serverTime }
  sales(first: 5) {
    edges {
      node {
        id
        title
        phase
        startsAt
        items { id goods { name } price { amount currencyCode } stock { level remaining } }
      }
    }
  }
}
`
