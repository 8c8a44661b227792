package main

import (
	"bufio"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// document returns the document of docs/buyers-api.md with an operation name.
func document(t *testing.T, name string) string {
	t.Helper()
	docs := documents(t)
	i := slices.IndexFunc(docs, func(doc string) bool { return strings.Contains(doc, " "+name+" {") })
	if i < 0 {
		t.Fatalf("no document %s on the page", name)
	}
	return docs[i]
}

// as signs a demo account in.
func (d *demo) as(account string) {
	d.Helper()
	d.token = ""
	signIn := strings.ReplaceAll(document(d.T, "SignIn"), "alice@demo.example", account)
	d.token = d.text(d.ask(signIn), "login", "tokens", "accessToken")
}

// buy runs the walk-through from the captcha to the written order, and returns the
// order's id.
func (d *demo) buy(sale, item string) (order string) {
	d.Helper()
	fill := func(name string, pairs ...string) string {
		return strings.NewReplacer(pairs...).Replace(document(d.T, name))
	}
	challenge := dig(d.ask(fill("Captcha", "SALE_ID", sale, "TEXT", "PROOF_OF_WORK")), "createCaptcha", "challenge")
	path := d.ask(fill("Path", "ITEM_ID", item, "CHALLENGE_ID", d.text(challenge, "id"), "ANSWER", d.solve(d.text(challenge, "parameters"))))
	bought := d.ask(fill("Buy", "ITEM_ID", item, "PATH_TOKEN", d.text(path, "issueSeckillPath", "path", "token")))
	task := d.text(bought, "placeOrder", "orderTask", "id")
	d.follow(fill("Watch", "TASK_ID", task))
	return "ord_" + strings.TrimPrefix(task, "tsk_")
}

// join answers a captcha of the waitlist, joins, and returns the id of the entry.
func (d *demo) join(sale, item string) (entry string) {
	d.Helper()
	ask := strings.NewReplacer("SALE_ID", sale, "SECKILL", "WAITLIST", "TEXT", "PROOF_OF_WORK").Replace(document(d.T, "Captcha"))
	challenge := dig(d.ask(ask), "createCaptcha", "challenge")
	join := strings.NewReplacer("ITEM_ID", item, "CHALLENGE_ID", d.text(challenge, "id"), "ANSWER", d.solve(d.text(challenge, "parameters")))
	return d.text(d.ask(join.Replace(document(d.T, "Join"))), "joinWaitlist", "waitlistEntry", "id")
}

// refused sends a mutation that must be refused, and returns the first refusal.
func (d *demo) refused(document, field string) any {
	d.Helper()
	response := d.post(document, "application/json")
	defer response.Body.Close()
	var answer struct{ Data map[string]any }
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		d.Fatal(err)
	}
	refusal := dig(answer.Data, field, "userErrors", "0")
	if refusal == nil {
		d.Fatalf("%s\nanswered %v", document, answer.Data)
	}
	return refusal
}

// until reads the events of a stream until the buyer's waitlist entry has a status.
func (d *demo) until(response *http.Response, status string) {
	d.Helper()
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		data, ok := strings.CutPrefix(lines.Text(), "data:")
		if !ok || strings.TrimSpace(data) == "" {
			continue
		}
		var event struct{ Data any }
		if err := json.Unmarshal([]byte(data), &event); err != nil {
			d.Fatalf("event %q: %v", data, err)
		}
		if dig(event.Data, "saleStatus", "sale", "viewer", "waitlistEntry", "status") == status {
			return
		}
	}
	d.Fatalf("the stream ended before the place was %s", status)
}

func TestTheWalkthroughGoesFromSoldOutToAnOrder(t *testing.T) {
	t.Parallel()
	d := startDemo(t)
	d.as("alice@demo.example")
	open := d.openSale(d.ask(document(t, "Look")))
	items, _ := dig(open, "items").([]any)
	sale, item := d.text(open, "id"), d.text(items[len(items)-1], "id") // the last item has only one unit
	fill := strings.NewReplacer("SALE_ID", sale, "ITEM_ID", item).Replace
	buy := func(path, key string) string {
		return strings.NewReplacer("PATH_TOKEN", path, "0001", key).Replace(document(t, "Buy"))
	}
	order := d.buy(sale, item)
	alice := d.token

	d.as("operator@demo.example") // joins and then leaves
	place := d.join(sale, item)
	left := d.ask(strings.ReplaceAll(document(t, "Leave"), "WAITLIST_ENTRY_ID", place))
	if dig(left, "leaveWaitlist", "waitlistEntry", "status") != "LEFT" {
		t.Errorf("leaving: %v", left)
	}
	d.as("bob@demo.example")
	if refusal := d.refused(fill(buy("PATH_TOKEN", "0002")), "placeOrder"); dig(refusal, "code") != "SOLD_OUT" || dig(refusal, "waitlistOpen") != true {
		t.Errorf("too late: %v", refusal)
	}
	place = d.join(sale, item)
	stream := d.post(fill(document(t, "Button")), "text/event-stream")
	defer stream.Body.Close()

	bob := d.token
	d.token = alice
	d.ask(strings.ReplaceAll(document(t, "GiveBack"), "ORDER_ID", order))
	d.token = bob
	d.until(stream, "OFFERED")
	redeemed := d.ask(fill(buy(place, "0003")))
	d.follow(strings.ReplaceAll(document(t, "Watch"), "TASK_ID", d.text(redeemed, "placeOrder", "orderTask", "id")))
	mine := dig(d.ask(document(t, "Mine")), "myOrders", "nodes", "0")
	if dig(mine, "status") != "PENDING_PAYMENT" {
		t.Errorf("the order is %v", mine)
	}
}
