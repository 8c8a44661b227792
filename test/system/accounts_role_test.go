package system_test

import (
	"bufio"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"seckill/internal/ops/seed"
)

// A role can be changed directly in Postgres; then no event reaches the processes.
func TestARoleThatWasTakenAwayEndsSocketsAndStreamsWithinSeconds(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	made := s.seed(seed.Input{Users: 1, Stock: 1})
	token := s.staff("operator@example.com", "OPERATOR")
	const document = `subscription($id: ID!) { saleStats(saleId: $id) { kind } }`
	payload := subscription(t, document, made.SaleID)
	k := s.dial(token)
	k.send(frame{ID: "figures", Type: "subscribe", Payload: payload})
	if f := k.read(); f.Type != "next" {
		t.Fatalf("first frame %+v", f)
	}
	req, err := http.NewRequestWithContext(k.ctx, http.MethodPost, s.url+"/graphql", strings.NewReader(string(payload)))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "text/event-stream", "Authorization": "Bearer " + token} {
		req.Header.Set(name, value)
	}
	stream, err := s.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stream.Body.Close() }()
	if _, err := s.database().SQL.ExecContext(t.Context(), `UPDATE users SET role = 'CUSTOMER', version = version + 1 WHERE account = 'operator@example.com'`); err != nil {
		t.Fatal(err)
	}
	for err == nil {
		var f frame
		err = k.next(&f)
	}
	if code := websocket.CloseStatus(err); code != 4403 {
		t.Errorf("the socket ended with %v (%v), want 4403", code, err)
	}
	for lines := bufio.NewScanner(stream.Body); lines.Scan(); {
		if strings.Contains(lines.Text(), "complete") {
			t.Errorf("the stream said %q", lines.Text())
		}
	}
	k = s.dial(token) // rights that the token still grants
	k.send(frame{ID: "figures", Type: "subscribe", Payload: payload})
	if f := k.read(); !strings.Contains(string(f.Payload), "FORBIDDEN") {
		t.Errorf("figures for a customer: %s", f.Payload)
	}
}
