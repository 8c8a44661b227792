package app

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"

	"seckill/internal/config"
	"seckill/internal/media"
	"seckill/internal/seed"
	"seckill/internal/server"
)

// Demo runs all roles in one process without external services until ctx ends. It writes
// the addresses and a walk-through to out.
func Demo(ctx context.Context, cfg *config.Config, log *slog.Logger, out io.Writer) error {
	cfg = cfg.ForDemo(config.Secret(rand.Text() + rand.Text()))
	if cfg.Media.Reveal() == "" {
		cfg.Media = media.InMemory // forgotten at the end, as all else
	}
	svc, err := openEmbedded(ctx)
	if err != nil {
		return err
	}
	a, err := build(ctx, cfg, allRoles(), svc, log)
	if err != nil {
		return errors.Join(explainListen(ctx, cfg, allRoles(), err), svc.Close())
	}
	made, err := a.seeding.seeder(0).Demo(ctx, cfg.PaymentWindow)
	if err != nil {
		return errors.Join(fmt.Errorf("fill the demo: %w", err), svc.Close())
	}
	saleID, itemID := made.Open.Sale.Public(), made.Open.Items[0].Public()
	a.tabs.Set(playgroundTabs(saleID, itemID))
	if _, err := io.WriteString(out, a.welcome(made)+walkThrough(saleID, itemID)); err != nil {
		return errors.Join(err, svc.Close())
	}
	return a.Run(ctx)
}

// welcome returns the text that the demo prints.
func (a *App) welcome(made *seed.DemoResult) string {
	shop := "http://" + browsable(a.PublicAddr())
	var b strings.Builder
	fmt.Fprintf(&b, `
Seckill demo. Everything runs in this process; Ctrl-C stops it and deletes all data.

  Shop        %s/
  Playground  %s/playground      (GraphQL, with the walk-through below among its examples)
  GraphQL     %s/graphql         (POST; WebSocket and SSE for subscriptions)
  Metrics     http://%s/metrics

  Open now    %s   %s/s/%s
  Opens soon  %s   %s/s/%s  (at %s)

  Accounts    (password of all: %s)
`, shop, shop, shop, browsable(a.AdminAddr()), made.Open.Title, shop, made.Open.Slug,
		made.Soon.Title, shop, made.Soon.Slug, made.Soon.Opens.Local().Format("15:04:05"), seed.DemoPassword)
	for _, u := range made.Users {
		fmt.Fprintf(&b, "              %-24s %s\n", u.Account, strings.ToLower(string(u.Role)))
	}
	return b.String()
}

// browsable turns a listener address into a URL that a browser can open.
func browsable(addr net.Addr) string {
	if addr == nil {
		return "-"
	}
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return addr.String()
	}
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}

// step is one document of the walk-through.
type step struct {
	title, note, document string
}

// walk buys one unit, from sign-in to the stored order: the first documents of
// docs/walkthrough.md. Names in capitals stand for values from earlier steps.
var walk = []step{
	{"Sign in", "The playground uses the tokens for the documents that follow. Its form at the top signs in as well.", `mutation SignIn {
  login(input: { account: "alice@demo.example", password: "PASSWORD" }) {
    tokens { accessToken accessTokenExpiresAt }
    userErrors { code message }
  }
}`},
	{"Look at the sale", "", `query Look {
  sales(first: 5) {
    edges {
      node {
        id
        title
        phase
        startsAt
        items {
          id
          goods { name }
          price { amount currencyCode }
          stock { level remaining total }
        }
      }
    }
  }
}`},
	{"Get a captcha", "Open the picture (the data: URL) in a new browser tab and read it.", `mutation Captcha {
  createCaptcha(input: { purpose: SECKILL, saleId: "SALE_ID", kind: TEXT }) {
    challenge { id prompt image parameters expiresAt }
    userErrors { code message }
  }
}`},
	{"Exchange the answer for a path token", "It is valid for your account, once, for 60 seconds.", `mutation Path {
  issueSeckillPath(input: { itemId: "ITEM_ID", captcha: { challengeId: "CHALLENGE_ID", answer: "ANSWER" } }) {
    path { token expiresAt }
    userErrors { code message }
  }
}`},
	{"Buy", "Stock is taken at once; the order follows.", `mutation Buy {
  placeOrder(input: { itemId: "ITEM_ID", pathToken: "PATH_TOKEN", idempotencyKey: "walk-through-0001" }) {
    orderTask { id status revision }
    replayed
    userErrors { code message }
  }
}`},
	{"Follow the order task", "A subscription: the first event is a snapshot, the last one carries the order.", `subscription Watch {
  orderTaskStatus(orderTaskId: "TASK_ID") {
    kind
    orderTask {
      status
      revision
      order { number status total { amount currencyCode } paymentDeadline }
      failure { code message }
    }
  }
}`},
	{"Your orders", "", `query Mine {
  myOrders(first: 5) {
    edges { node { id number status item { goods { name } } total { amount currencyCode } } }
  }
}`},
}

// walkSteps returns walk with the ids of a sale and an item filled in.
func walkSteps(saleID, itemID string) []step {
	fill := strings.NewReplacer("SALE_ID", saleID, "ITEM_ID", itemID, "PASSWORD", seed.DemoPassword).Replace
	steps := make([]step, len(walk))
	for i, s := range walk {
		steps[i] = step{s.title, s.note, fill(s.document)}
	}
	return steps
}

// walkThrough returns the walk-through that the demo prints.
func walkThrough(saleID, itemID string) string {
	var b strings.Builder
	b.WriteString("\nWalk-through, as in the playground's examples. Other clients send the accessToken from the third step on:\nAuthorization: Bearer ACCESS_TOKEN.\n")
	for i, s := range walkSteps(saleID, itemID) {
		fmt.Fprintf(&b, "\n%d. %s\n   %s\n", i+1, strings.ReplaceAll(strings.TrimSpace(s.title+". "+s.note), "\n", " "), strings.ReplaceAll(s.document, "\n", "\n   "))
	}
	b.WriteString("\n")
	return b.String()
}

// playgroundTabs returns the examples of the playground; it opens with the first.
func playgroundTabs(saleID, itemID string) []server.Tab {
	tabs := make([]server.Tab, 0, len(walk))
	for _, s := range walkSteps(saleID, itemID) {
		heading := strings.TrimSpace(s.title + ".\n" + s.note)
		tabs = append(tabs, server.Tab{Title: s.title, Query: "# " + strings.ReplaceAll(heading, "\n", "\n# ") + "\n" + s.document + "\n"})
	}
	return tabs
}
