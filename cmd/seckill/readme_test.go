package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"seckill/internal/platform/captcha"
	"seckill/internal/testenv"
)

// demo is a demo that runs inside the test process.
type demo struct {
	*testing.T
	url    string // of the shop
	said   string // its output up to the walk-through
	token  string
	client http.Client
}

// startDemo runs the demo until the test ends, and checks that it ends without an error.
func startDemo(t *testing.T) *demo {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	out, in := io.Pipe()
	var stderr bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		args := []string{"demo", "--http-addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0", "--pow-max", "10000", "--log-level", "error", "--request-timeout", "1m", "--drain-timeout", "2m"}
		ended <- run(ctx, args, environment{stdout: in, stderr: &stderr, environ: []string{"GOGC=100"}})
		in.Close()
	}()
	d := &demo{T: t, client: http.Client{Timeout: testenv.Wait}}
	t.Cleanup(func() {
		d.client.CloseIdleConnections()
		cancel()
		if code := <-ended; code != exitOK {
			t.Errorf("the demo ended with %d:\n%s", code, stderr.String())
		}
	})
	lines := bufio.NewReader(out)
	for d.url == "" || !strings.Contains(d.said, "/metrics") {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("the demo ended: %v\n%s", err, stderr.String())
		}
		d.said += line
		if found := regexp.MustCompile(`(http://[^ /]+)/playground`).FindStringSubmatch(line); found != nil {
			d.url = found[1]
		}
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	return d
}

func (d *demo) post(document, accept string) *http.Response {
	d.Helper()
	body, err := json.Marshal(map[string]string{"query": document})
	if err != nil {
		d.Fatal(err)
	}
	request, err := http.NewRequestWithContext(d.Context(), http.MethodPost, d.url+"/graphql", bytes.NewReader(body))
	if err != nil {
		d.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", accept)
	if d.token != "" {
		request.Header.Set("Authorization", "Bearer "+d.token)
	}
	response, err := d.client.Do(request)
	if err != nil {
		d.Fatal(err)
	}
	return response
}

// ask sends a query or mutation and returns its data. It fails the test on top-level
// errors and userErrors.
func (d *demo) ask(document string) map[string]any {
	d.Helper()
	response := d.post(document, "application/json")
	defer response.Body.Close()
	var answer struct {
		Data   map[string]any
		Errors []any
	}
	text, err := io.ReadAll(response.Body)
	if err == nil {
		err = json.Unmarshal(text, &answer)
	}
	if err != nil || len(answer.Errors) > 0 {
		d.Fatalf("%s\nanswered %s %s (%v)", document, response.Status, text, err)
	}
	for _, payload := range answer.Data {
		if refused, ok := dig(payload, "userErrors").([]any); ok && len(refused) > 0 {
			d.Fatalf("%s\nwas refused: %v", document, refused)
		}
	}
	return answer.Data
}

// follow sends a subscription over SSE and returns the data of its events.
func (d *demo) follow(document string) []any {
	d.Helper()
	response := d.post(document, "text/event-stream")
	defer response.Body.Close()
	var events []any
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data:")
		if !ok || strings.TrimSpace(data) == "" {
			continue
		}
		var event struct{ Data any }
		if err := json.Unmarshal([]byte(data), &event); err != nil {
			d.Fatalf("event %q: %v", data, err)
		}
		events = append(events, event.Data)
	}
	return events
}

// dig returns the value at a path of keys and indexes in an answer, or nil.
func dig(value any, path ...string) any {
	for _, step := range path {
		switch v := value.(type) {
		case map[string]any:
			value = v[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(v) {
				return nil
			}
			value = v[i]
		default:
			return nil
		}
	}
	return value
}

func (d *demo) text(value any, path ...string) string {
	d.Helper()
	text, ok := dig(value, path...).(string)
	if !ok || text == "" {
		d.Fatalf("no %v in %v", path, value)
	}
	return text
}

// solve returns the solution of a proof of work.
func (d *demo) solve(parameters string) string {
	d.Helper()
	solution, err := captcha.Solve(parameters)
	if err != nil {
		d.Fatal(err)
	}
	return solution
}

// documents returns the GraphQL documents of docs/buyers-api.md in order.
func documents(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../../docs/buyers-api.md")
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, found := range regexp.MustCompile("(?s)```graphql\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		list = append(list, found[1])
	}
	return list
}

func TestTheIndexOfDecisionsHasTheTitleOfEachPage(t *testing.T) {
	t.Parallel()
	index, err := os.ReadFile("../../docs/adr/README.md")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob("../../docs/adr/0*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("pages %v (%v)", pages, err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		head, _, _ := strings.Cut(strings.TrimPrefix(string(text), "# "), "\n")
		number, title, _ := strings.Cut(head, " ")
		if line := fmt.Sprintf("| [%s](%s) | %s |\n", number, filepath.Base(page), title); !strings.Contains(string(index), line) {
			t.Errorf("the index lacks %s", line)
		}
	}
}

func TestTheWalkthroughBuysAUnitInTheDemo(t *testing.T) {
	t.Parallel()
	docs := documents(t)
	if len(docs) < 7 {
		t.Fatalf("%d documents on the page, want 7 that buy a unit, and more", len(docs))
	}
	d := startDemo(t)
	task := d.walkThrough(docs)
	fill := func(document string, pairs ...string) string { return strings.NewReplacer(pairs...).Replace(document) }

	events := d.follow(fill(docs[5], "TASK_ID", task))
	if len(events) == 0 || dig(events[0], "orderTaskStatus", "kind") != "SNAPSHOT" {
		t.Fatalf("events are %v", events)
	}
	last := dig(events[len(events)-1], "orderTaskStatus", "orderTask")
	if dig(last, "status") != "SUCCEEDED" {
		t.Fatalf("the last event is %v", last)
	}
	mine := dig(d.ask(docs[6]), "myOrders", "nodes", "0")
	if d.text(mine, "number") != d.text(last, "order", "number") || dig(mine, "status") != "PENDING_PAYMENT" {
		t.Errorf("my order is %v, the event said %v", mine, last)
	}
	d.payAndReturn(docs, d.text(mine, "id"))
}

// walkThrough signs in and buys one unit with the documents of the page. It
// returns the id of the order task.
func (d *demo) walkThrough(docs []string) string {
	d.Helper()
	d.token = d.text(d.ask(docs[0]), "login", "tokens", "accessToken")
	sale := d.openSale(d.ask(docs[1]))
	fill := func(document string, pairs ...string) string { return strings.NewReplacer(pairs...).Replace(document) }

	if image := d.text(d.ask(fill(docs[2], "SALE_ID", d.text(sale, "id"))), "createCaptcha", "challenge", "image"); !strings.HasPrefix(image, "data:image/") {
		d.Errorf("the picture is %.40q", image)
	}
	challenge := dig(d.ask(fill(docs[2], "SALE_ID", d.text(sale, "id"), "TEXT", "PROOF_OF_WORK")), "createCaptcha", "challenge")
	item := d.text(sale, "items", "0", "id")
	path := d.ask(fill(docs[3], "ITEM_ID", item, "CHALLENGE_ID", d.text(challenge, "id"), "ANSWER", d.solve(d.text(challenge, "parameters"))))
	bought := d.ask(fill(docs[4], "ITEM_ID", item, "PATH_TOKEN", d.text(path, "issueSeckillPath", "path", "token")))
	return d.text(bought, "placeOrder", "orderTask", "id")
}

// payAndReturn pays an order on the page of the sandbox bank and refunds it, with the
// documents of the page.
func (d *demo) payAndReturn(docs []string, orderID string) {
	d.Helper()
	ask := func(name string, pairs ...string) map[string]any {
		d.Helper()
		for _, document := range docs {
			if strings.Contains(document, " "+name+" {") {
				return d.ask(strings.NewReplacer(append(pairs, "ORDER_ID", orderID)...).Replace(document))
			}
		}
		d.Fatalf("no document %s on the page", name)
		return nil
	}
	becomes := func(status string) {
		d.Helper()
		testenv.Eventually(d, testenv.Wait, func() bool { return dig(ask("Paid"), "order", "status") == status }, "the order is "+status)
	}
	page := d.text(ask("Pay"), "payOrder", "payment", "redirectUrl")
	request, err := http.NewRequestWithContext(d.Context(), http.MethodPost, page+"/approve", nil)
	if err != nil {
		d.Fatal(err)
	}
	response, err := d.client.Do(request)
	if err != nil {
		d.Fatal(err)
	}
	response.Body.Close()
	becomes("PAID")
	refund := d.text(ask("AskBack"), "requestRefund", "refund", "id")
	buyer := d.token
	d.token = ""
	d.token = d.text(d.ask(strings.Replace(docs[0], "alice@", "operator@", 1)), "login", "tokens", "accessToken")
	d.ask(`mutation { decideRefund(input: { refundId: "` + refund + `", approve: true }) { order { status } userErrors { code message } } }`)
	d.token = buyer
	becomes("REFUNDED")
}

// openSale returns the sale that is live.
func (d *demo) openSale(answer any) any {
	d.Helper()
	sales, _ := dig(answer, "sales", "nodes").([]any)
	for _, sale := range sales {
		if dig(sale, "phase") == "LIVE" {
			return sale
		}
	}
	d.Fatalf("no sale is live: %v", answer)
	return nil
}
