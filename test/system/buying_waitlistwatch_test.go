package system_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"seckill/internal/ops/seed"
	"seckill/internal/testenv"
)

// patience bounds each wait.
const patience = testenv.Wait

// waitlistEntry is a WaitlistEntry.
type waitlistEntry struct {
	ID, Status     string
	Ahead          *int
	OfferExpiresAt *time.Time
}

// button is a sale as one buyer sees it.
type button struct {
	Phase  string
	Viewer struct {
		Action         string
		DisabledReason *string
		WaitlistEntry  *waitlistEntry
		Order          *struct{ ID string }
	}
}

const (
	placeFields  = `id status ahead offerExpiresAt`
	buttonFields = `phase viewer { action disabledReason waitlistEntry { ` + placeFields + ` item { id } } order { id } }`
)

// joinOrLeave calls joinWaitlist or leaveWaitlist, and once more with the answer to the captcha
// of a refusal.
func (s *site) joinOrLeave(token, field string, in map[string]any) (*waitlistEntry, string) {
	s.t.Helper()
	out := s.ask(token, `mutation($in: `+strings.ToUpper(field[:1])+field[1:]+`Input!) { outcome: `+field+`(input: $in) { waitlistEntry { `+placeFields+` }
		userErrors { code ... on CaptchaError { challenge { id parameters } } } } }`, map[string]any{"in": in})
	var data struct {
		Outcome *struct {
			WaitlistEntry *waitlistEntry
			UserErrors    []struct {
				Code      string
				Challenge *struct{ ID, Parameters string }
			}
		}
	}
	out.into(s.t, &data)
	if data.Outcome == nil {
		s.t.Fatalf("%s: %s %+v", field, out.Data, out.Errors)
	}
	if len(data.Outcome.UserErrors) == 0 {
		return data.Outcome.WaitlistEntry, ""
	}
	refusal := data.Outcome.UserErrors[0]
	if refusal.Code != "CAPTCHA_REQUIRED" || refusal.Challenge == nil || in["captcha"] != nil {
		return data.Outcome.WaitlistEntry, refusal.Code
	}
	in["captcha"] = map[string]any{"challengeId": refusal.Challenge.ID, "answer": solve(s.t, refusal.Challenge.Parameters)}
	return s.joinOrLeave(token, field, in)
}

func (s *site) join(token, itemID string) (*waitlistEntry, string) {
	return s.joinOrLeave(token, "joinWaitlist", map[string]any{"itemId": itemID})
}

func (s *site) leave(token, place string) (*waitlistEntry, string) {
	return s.joinOrLeave(token, "leaveWaitlist", map[string]any{"waitlistEntryId": place})
}

// joined joins the waitlist and fails the test on a refusal.
func (s *site) joined(token, itemID string) *waitlistEntry {
	s.t.Helper()
	place, why := s.join(token, itemID)
	if why != "" || place == nil || place.Status != "WAITING" {
		s.t.Fatalf("join: %+v %s", place, why)
	}
	return place
}

// button reads a sale with a token.
func (s *site) button(token, saleID string) button {
	s.t.Helper()
	var data struct{ Sale button }
	s.ask(token, `query($id: ID!) { sale(by: {id: $id}) { `+buttonFields+` } }`, map[string]any{"id": saleID}).into(s.t, &data)
	return data.Sale
}

// cancel cancels an order as soon as it is written.
func (s *site) cancel(token, taskID string) {
	s.t.Helper()
	orderID := "ord_" + strings.TrimPrefix(taskID, "tsk_")
	testenv.Eventually(s.t, patience, func() bool {
		var data struct{ Order *struct{ ID string } }
		s.ask(token, `query($o: ID!) { order(by: {id: $o}) { id } }`, map[string]any{"o": orderID}).into(s.t, &data)
		return data.Order != nil
	}, "the order is written")
	out := s.ask(token, `mutation($o: ID!) { cancelOrder(input: {orderId: $o}) { userErrors { code } } }`, map[string]any{"o": orderID})
	if string(out.Data) != `{"cancelOrder":{"userErrors":[]}}` {
		s.t.Fatalf("cancel: %s %+v", out.Data, out.Errors)
	}
}

// watch is a subscription to a sale for one buyer. It reads continuously, so that the
// server never closes it as a slow client.
type watch struct {
	t      testing.TB
	events chan saleEvent
	n      int // events read so far
}

type saleEvent struct {
	Kind string
	Sale button
}

// watch subscribes to a sale with a token.
func (s *site) watch(token, saleID string) *watch {
	s.t.Helper()
	k := s.dial(token)
	k.send(frame{ID: "b", Type: "subscribe", Payload: subscription(s.t, `subscription($id: ID!) { saleStatus(saleId: $id) { kind sale { `+buttonFields+` } } }`, saleID)})
	w := &watch{t: s.t, events: make(chan saleEvent, 1000)}
	go func() {
		defer close(w.events)
		for {
			var f frame
			if k.next(&f) != nil {
				return
			}
			var payload struct {
				Data struct{ SaleStatus saleEvent }
			}
			if f.Type == "next" && json.Unmarshal(f.Payload, &payload) == nil {
				w.events <- payload.Data.SaleStatus
			}
		}
	}()
	return w
}

// until waits for the event in which the buyer's waitlist entry has a status.
func (w *watch) until(status string) button {
	w.t.Helper()
	for e := range w.events {
		if w.n++; (w.n == 1) != (e.Kind == "SNAPSHOT") {
			w.t.Errorf("event %d is a %s", w.n, e.Kind)
		}
		if place := e.Sale.Viewer.WaitlistEntry; place != nil && place.Status == status {
			return e.Sale
		}
	}
	w.t.Fatalf("the stream ended before the place was %s", status)
	return button{}
}

// press runs the whole purchase of a buyer, from the captcha on.
func (s *site) press(token string, made *seed.Result) (placed, string) {
	s.t.Helper()
	challenge, right := s.captcha(token, made.SaleID)
	path, why := s.path(token, made.ItemID, challenge, right)
	if why != "" {
		return placed{}, why
	}
	p, err := s.place(token, order(made.ItemID, path))
	if err != nil {
		s.t.Fatal(err)
	}
	return p, p.why()
}

// bought repeats press until it is accepted, and returns the task.
func (s *site) bought(token string, made *seed.Result) (task string) {
	s.t.Helper()
	testenv.Eventually(s.t, patience, func() bool {
		p, why := s.press(token, made)
		if why == "" {
			task = p.OrderTask.ID
		}
		return why == ""
	}, "a unit is bought")
	return task
}

// soldOut creates a sale whose only unit is held by an unpaid order of the first buyer,
// and returns the task of that order.
func (s *site) soldOut(in seed.Input) (made *seed.Result, task string) {
	s.t.Helper()
	in.Stock = 1
	made = s.seed(in)
	task = s.bought(made.Users[0].AccessToken, made)
	s.drained(made.SaleID, 1)
	return made, task
}

func TestABuyerOnTheWaitlistSeesOthersLeave(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	made, _ := s.soldOut(seed.Input{Users: 5})
	var places []*waitlistEntry
	for _, u := range made.Users[1:] {
		places = append(places, s.joined(u.AccessToken, made.ItemID))
	}
	last := s.watch(made.Users[4].AccessToken, made.SaleID)
	ahead := func() int { return *last.until("WAITING").Viewer.WaitlistEntry.Ahead }
	if n := ahead(); n != 3 {
		t.Fatalf("%d are ahead at first, want 3", n)
	}
	for i, want := range []int{2, 1} { // the first, and one from the middle
		if _, why := s.leave(made.Users[1+i].AccessToken, places[i].ID); why != "" {
			t.Fatalf("leave: %s", why)
		}
		for ahead() != want { // events of the sale may come between
		}
	}
}
