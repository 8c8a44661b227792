package system_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/coder/websocket"

	"seckill/internal/ops/seed"
)

// queueTicket is a QueueTicket.
type queueTicket struct {
	ID, Status string
	Position   *struct {
		Ahead                     int
		ChancePercent, EtaSeconds *int
	}
	Path *struct{ Token string }
}

const ticketFields = `id status position { ahead etaSeconds chancePercent } path { token }`

// puzzle issues a captcha of the buyer for a sale and solves it.
func (s *site) puzzle(token, saleID string) map[string]any {
	s.t.Helper()
	out := s.ask(token, `mutation($s: ID!) { createCaptcha(input: {purpose: SECKILL, saleId: $s, kind: PROOF_OF_WORK}) { challenge { id parameters } userErrors { code } } }`,
		map[string]any{"s": saleID})
	var data struct {
		CreateCaptcha struct {
			Challenge *struct{ ID, Parameters string }
		}
	}
	out.into(s.t, &data)
	c := data.CreateCaptcha.Challenge
	if c == nil { // the sale is sold out or over, which the next step says, too
		return map[string]any{"challengeId": "cap_none", "answer": "0"}
	}
	return map[string]any{"challengeId": c.ID, "answer": solve(s.t, c.Parameters)}
}

// knock calls field (issueSeckillPath or enterQueue) with a solved captcha.
func (s *site) knock(field, token string, made *seed.Result) (path string, ticket *queueTicket, why string) {
	s.t.Helper()
	input, more := "IssueSeckillPathInput", "path { token }"
	if field == "enterQueue" {
		input, more = "EnterQueueInput", ""
	}
	out := s.ask(token, fmt.Sprintf(`mutation($in: %s!) { outcome: %s(input: $in) { %s ticket { %s } userErrors { code } } }`, input, field, more, ticketFields),
		map[string]any{"in": map[string]any{"itemId": made.ItemID, "captcha": s.puzzle(token, made.SaleID)}})
	var data struct {
		Outcome *struct {
			Path   *struct{ Token string }
			Ticket *queueTicket
			UserErrors
		}
	}
	out.into(s.t, &data)
	if data.Outcome == nil {
		s.t.Fatalf("%s: %s %+v", field, out.Data, out.Errors)
	}
	if data.Outcome.Path != nil {
		path = data.Outcome.Path.Token
	}
	return path, data.Outcome.Ticket, data.Outcome.why()
}

// watchTicket subscribes to a queue ticket.
func (k *socket) watchTicket(ticket string) {
	k.t.Helper()
	payload, err := json.Marshal(map[string]any{
		"query":     `subscription($t: ID!) { queuePosition(ticketId: $t) { kind ticket { ` + ticketFields + ` item { id } } } }`,
		"variables": map[string]string{"t": ticket},
	})
	if err != nil {
		k.t.Fatal(err)
	}
	k.send(frame{ID: "q", Type: "subscribe", Payload: payload})
}

// place reads the next event of a queue ticket; nil at the end of the stream.
func (k *socket) place() *queueTicket {
	k.t.Helper()
	f := k.read()
	if f.Type == "complete" {
		return nil
	}
	var payload struct {
		Data struct{ QueuePosition struct{ Ticket *queueTicket } }
	}
	if err := json.Unmarshal(f.Payload, &payload); err != nil || payload.Data.QueuePosition.Ticket == nil {
		k.t.Fatalf("frame %s %s: %v", f.Type, f.Payload, err)
	}
	return payload.Data.QueuePosition.Ticket
}

func TestPastThePermitsABuyerWaitsAndIsLetIn(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	made := s.seed(seed.Input{Users: 4, Stock: 1}) // one unit × the ratio = two permits
	for i := range 2 {
		if path, ticket, why := s.knock("issueSeckillPath", made.Users[i].AccessToken, made); path == "" || ticket != nil {
			t.Fatalf("buyer %d: no path: %+v %s", i, ticket, why)
		}
	}
	third, fourth := made.Users[2].AccessToken, made.Users[3].AccessToken
	path, first, why := s.knock("issueSeckillPath", third, made)
	if path != "" || first == nil || why != "" || first.Position == nil || first.Position.Ahead != 0 {
		t.Fatalf("the third: %q %+v %s", path, first, why)
	}
	if _, second, _ := s.knock("enterQueue", fourth, made); second == nil || second.Position.Ahead != 1 {
		t.Fatalf("the fourth: %+v", second)
	}
	if _, again, _ := s.knock("enterQueue", third, made); again == nil || again.ID != first.ID {
		t.Errorf("entering twice: %+v, then %+v", first, again)
	}
	stranger := s.dial(fourth)
	stranger.watchTicket(first.ID)
	if f := stranger.read(); f.Type != "error" && !json.Valid(f.Payload) {
		t.Errorf("another user's place: %s %s", f.Type, f.Payload)
	}
	k := s.dial(third)
	k.watchTicket(first.ID)
	if p := k.place(); p == nil || p.Status != "WAITING" || p.Position.ChancePercent == nil {
		t.Fatalf("snapshot %+v", p)
	}
	// A new captcha of the first buyer invalidates the path token and frees its permit.
	s.puzzle(made.Users[0].AccessToken, made.SaleID)
	var last *queueTicket
	for p := k.place(); p != nil; p = k.place() {
		last = p
	}
	if last == nil || last.Status != "ADMITTED" || last.Path == nil {
		t.Fatalf("the stream ended with %+v", last)
	}
	if p, err := s.place(third, order(made.ItemID, last.Path.Token)); err != nil || p.why() != "" {
		t.Errorf("placed with the path of the waiting room: %+v %v", p, err)
	}
	for _, c := range []*socket{k, stranger} {
		_ = c.conn.Close(websocket.StatusNormalClosure, "")
	}
}

func TestAPlaceBeforeTheOpeningHasNoPositionAndCanBeLeft(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	made := s.seed(seed.Input{Users: 2, Stock: 1, OpensIn: time.Hour})
	token := made.Users[0].AccessToken
	_, ticket, why := s.knock("enterQueue", token, made)
	if ticket == nil || ticket.Status != "WAITING" || ticket.Position != nil {
		t.Fatalf("early: %+v %s", ticket, why)
	}
	if _, _, why := s.knock("issueSeckillPath", token, made); why != "SALE_NOT_STARTED" {
		t.Errorf("a path before the opening: %q", why)
	}
	leave := `mutation($t: ID!) { leaveQueue(input: {ticketId: $t}) { ticket { status } userErrors { code } } }`
	read := `query($t: ID!) { node(id: $t) { ... on QueueTicket { status } } }`
	for _, c := range []struct{ token, document, want string }{
		{made.Users[1].AccessToken, read, `{"node":null}`},
		{made.Users[1].AccessToken, leave, `{"leaveQueue":{"ticket":null,"userErrors":[{"code":"NOT_FOUND"}]}}`},
		{token, read, `{"node":{"status":"WAITING"}}`},
		{token, leave, `{"leaveQueue":{"ticket":{"status":"LEFT"},"userErrors":[]}}`},
		{token, leave, `{"leaveQueue":{"ticket":{"status":"LEFT"},"userErrors":[]}}`},
	} {
		if got := string(s.ask(c.token, c.document, map[string]any{"t": ticket.ID}).Data); got != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.document, got, c.want)
		}
	}
}

func TestSigningOutFreesThePlaceInLine(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	made := s.seed(seed.Input{Users: 4, Stock: 1}) // one unit × the ratio = two permits
	for i := range 2 {
		if path, _, why := s.knock("issueSeckillPath", made.Users[i].AccessToken, made); path == "" {
			t.Fatalf("buyer %d: no path: %s", i, why)
		}
	}
	third, fourth := s.login(made.Users[2].Account, made.Users[2].Password), made.Users[3].AccessToken
	if _, ticket, why := s.knock("issueSeckillPath", third, made); ticket == nil {
		t.Fatalf("the third has no place: %s", why)
	}
	_, ticket, why := s.knock("enterQueue", fourth, made)
	if ticket == nil || ticket.Position == nil || ticket.Position.Ahead != 1 {
		t.Fatalf("the fourth: %+v %s", ticket, why)
	}
	s.ask(third, `mutation { logout(input: {everywhere: false}) { endedSessions userErrors { code } } }`, nil)
	if _, ticket, why = s.knock("enterQueue", fourth, made); ticket == nil || ticket.Position == nil || ticket.Position.Ahead != 0 {
		t.Errorf("the fourth, after the third has signed out: %+v %s", ticket, why)
	}
}
