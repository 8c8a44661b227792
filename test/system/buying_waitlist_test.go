package system_test

import (
	"strings"
	"testing"
	"time"

	"seckill/internal/buy/reservation"
	"seckill/internal/ops/seed"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

func TestAUnitThatComesBackIsOfferedByPushAndBecomesAnOrder(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	made, task := s.soldOut(seed.Input{Users: 4})
	holder, first, second, passer := made.Users[0], made.Users[1], made.Users[2], made.Users[3]
	testenv.Eventually(t, patience, func() bool {
		b := s.button(first.AccessToken, made.SaleID)
		return b.Phase == "SOLD_OUT" && b.Viewer.Action == "JOIN_WAITLIST" && b.Viewer.DisabledReason == nil
	}, "the button offers the waitlist")
	place, next := s.joined(first.AccessToken, made.ItemID), s.joined(second.AccessToken, made.ItemID)
	if *place.Ahead != 0 || *next.Ahead != 1 {
		t.Errorf("%d and %d are ahead", *place.Ahead, *next.Ahead)
	}
	if again := s.joined(first.AccessToken, made.ItemID); again.ID != place.ID {
		t.Errorf("joined twice: %s, then %s", place.ID, again.ID)
	}
	k, other := s.watch(first.AccessToken, made.SaleID), s.watch(second.AccessToken, made.SaleID)
	k.until("WAITING")
	other.until("WAITING")

	began := time.Now()
	s.cancel(holder.AccessToken, task)
	offer := k.until("OFFERED")
	t.Logf("offered by push after %s", time.Since(began))
	if e := offer.Viewer.WaitlistEntry; offer.Viewer.Action != "BUY" || e.OfferExpiresAt == nil || e.Ahead != nil {
		t.Errorf("the offer: %+v %+v", offer.Viewer, e)
	}
	if p, why := s.press(passer.AccessToken, made); why != "SOLD_OUT" {
		t.Errorf("a passer-by: %+v %s", p, why)
	}
	if report := s.audit(made.SaleID); report.Postgres.Offers != 1 || report.Redis.Reserved != 1 {
		t.Errorf("with an open offer: %+v", report)
	}
	in := order(made.ItemID, place.ID)
	p, err := s.place(first.AccessToken, in)
	if err != nil || p.why() != "" || p.Replayed {
		t.Fatalf("redeemed: %+v %v", p, err)
	}
	if again, err := s.place(first.AccessToken, in); err != nil || !again.Replayed || again.OrderTask.ID != p.OrderTask.ID {
		t.Errorf("the same key: %+v %v", again, err)
	}
	k.until("REDEEMED")
	s.drained(made.SaleID, 1)
	testenv.Eventually(t, patience, func() bool {
		b := s.button(first.AccessToken, made.SaleID)
		return b.Viewer.Action == "PAY" && b.Viewer.Order != nil
	}, "the offer has become an order to pay")
	if used, err := s.place(first.AccessToken, order(made.ItemID, place.ID)); err != nil || used.why() != "ALREADY_ORDERED" {
		t.Errorf("an offer used twice: %+v %v", used, err)
	}
	if b := s.button(second.AccessToken, made.SaleID); b.Viewer.WaitlistEntry.Status != "WAITING" || *b.Viewer.WaitlistEntry.Ahead != 0 {
		t.Errorf("the second: %+v", b.Viewer.WaitlistEntry)
	}
	s.cancel(first.AccessToken, p.OrderTask.ID)
	other.until("OFFERED")
	paid, err := s.place(second.AccessToken, order(made.ItemID, next.ID))
	if err != nil || paid.why() != "" {
		t.Fatalf("redeemed: %+v %v", paid, err)
	}
	s.paid(second.AccessToken, paid.OrderTask.ID)
	other.until("REDEEMED")
	if report := s.drained(made.SaleID, 1); report.Postgres.Sold != 1 || report.Postgres.Available != 0 {
		t.Errorf("with a paid unit: %+v", report)
	}
	if p, why := s.press(passer.AccessToken, made); why != "SOLD_OUT" {
		t.Errorf("a passer-by after the payment: %+v %s", p, why)
	}
}

// joinedHereSeenThere joins at one process and reads at another immediately.
func (s *site) joinedHereSeenThere(buyer seed.LoadUser, made *seed.Result) *waitlistEntry {
	s.t.Helper()
	here := s.url
	s.start("api")
	there := s.url
	testenv.Eventually(s.t, patience, func() bool {
		return s.button(buyer.AccessToken, made.SaleID).Phase == "SOLD_OUT"
	}, "the other process knows that the sale is sold out")
	s.url = here
	place := s.joined(buyer.AccessToken, made.ItemID)
	s.url = there
	if seen := s.button(buyer.AccessToken, made.SaleID).Viewer.WaitlistEntry; seen == nil || seen.ID != place.ID {
		s.t.Errorf("a buyer who just joined sees %+v, want %+v", seen, place)
	}
	return place
}

// A returned unit is offered to one buyer after the other; when all decline it returns to
// open sale.
func TestAnOfferThatNoBuyerTakesGoesOnAndThenBackOnOpenSale(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	made, task := s.soldOut(seed.Input{Users: 4})
	first, second, passer := made.Users[1], made.Users[2], made.Users[3]
	place := s.joinedHereSeenThere(first, made)
	next := s.joined(second.AccessToken, made.ItemID)
	k, other := s.watch(first.AccessToken, made.SaleID), s.watch(second.AccessToken, made.SaleID)

	db := s.database()
	s.expired(s.staff("ann@example.com", "OPERATOR"), task)
	k.until("OFFERED")
	if _, err := db.SQL.ExecContext(t.Context(), "UPDATE waitlist_entries SET offer_expires_at = now() - interval '1 second' WHERE status = 'OFFERED'"); err != nil {
		t.Fatal(err)
	}
	k.until("EXPIRED")
	other.until("OFFERED")
	if p, err := s.place(first.AccessToken, order(made.ItemID, place.ID)); err != nil || p.why() != "PATH_INVALID" {
		t.Errorf("an offer that expired: %+v %v", p, err)
	}
	if left, why := s.leave(first.AccessToken, place.ID); why != "CONFLICT" || left == nil || left.Status != "EXPIRED" {
		t.Errorf("leaving what has expired: %+v %s", left, why)
	}
	for range 2 { // leaving is idempotent
		if left, why := s.leave(second.AccessToken, next.ID); why != "" || left == nil || left.Status != "LEFT" {
			t.Errorf("leave: %+v %s", left, why)
		}
	}
	other.until("LEFT")
	testenv.Eventually(t, patience, func() bool { return s.button(passer.AccessToken, made.SaleID).Phase == "LIVE" }, "the unit is on open sale")
	s.bought(passer.AccessToken, made)
	if report := s.drained(made.SaleID, 1); report.Postgres.Offers != 0 {
		t.Errorf("report %+v", report)
	}
}

func TestEveryBadUseOfTheWaitlistHasItsOwnCode(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	open := s.seed(seed.Input{Users: 1, Stock: 5})
	later := s.seed(seed.Input{Users: 1, Stock: 5, OpensIn: time.Hour})
	made, task := s.soldOut(seed.Input{Users: 3})
	holder, first, second := made.Users[0].AccessToken, made.Users[1].AccessToken, made.Users[2].AccessToken
	for name, c := range map[string]struct{ token, item, want string }{
		"while there is stock":  {open.Users[0].AccessToken, open.ItemID, "CONFLICT"},
		"before the opening":    {first, later.ItemID, "SALE_NOT_STARTED"},
		"an unknown item":       {first, id.New[id.Item]().Public(), "NOT_FOUND"},
		"an id of another kind": {first, made.SaleID, "NOT_FOUND"},
		"a buyer with an order": {holder, made.ItemID, "ALREADY_ORDERED"},
	} {
		if place, why := s.join(c.token, c.item); why != c.want || place != nil {
			t.Errorf("join, %s: %+v %q, want %s", name, place, why, c.want)
		}
	}
	place, next := s.joined(first, made.ItemID), s.joined(second, made.ItemID)
	for name, token := range map[string]string{"not offered yet": place.ID, "another user's": next.ID, "unknown": id.New[id.Waitlist]().Public()} {
		if p, err := s.place(first, order(made.ItemID, token)); err != nil || p.why() != "PATH_INVALID" || p.OrderTask != nil {
			t.Errorf("redeem, %s: %+v %v", name, p, err)
		}
	}
	read := `query($v: ID!) { node(id: $v) { ... on WaitlistEntry { status } } }`
	if got := string(s.ask(first, read, map[string]any{"v": next.ID}).Data); got != `{"node":null}` {
		t.Errorf("another user's place: %s", got)
	}
	for name, value := range map[string]string{"another user's": next.ID, "an id of another kind": made.ItemID} {
		if left, why := s.leave(first, value); why != "NOT_FOUND" || left != nil {
			t.Errorf("leave, %s: %+v %q", name, left, why)
		}
	}
	s.cancel(holder, task)
	testenv.Eventually(t, patience, func() bool {
		return string(s.ask(first, read, map[string]any{"v": place.ID}).Data) == `{"node":{"status":"OFFERED"}}`
	}, "the unit is offered")
	two := order(made.ItemID, place.ID)
	two["quantity"] = 2
	if p, err := s.place(first, two); err != nil || p.why() != "PATH_INVALID" {
		t.Errorf("two for an offer of one: %+v %v", p, err)
	}
	if p, err := s.place(second, order(made.ItemID, place.ID)); err != nil || p.why() != "PATH_INVALID" {
		t.Errorf("another user's offer: %+v %v", p, err)
	}
	if p, err := s.place(first, order(open.ItemID, place.ID)); err != nil || p.why() != "PATH_INVALID" {
		t.Errorf("an offer of another item: %+v %v", p, err)
	}
	s.audit(made.SaleID)
}

func TestSoldOutForNowDiffersFromSoldOutForGood(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	made, task := s.soldOut(seed.Input{Users: 2, PathTTL: time.Hour})
	u := made.Users[1]
	document := `mutation($in: PlaceOrderInput!) { placeOrder(input: $in) { userErrors { code message ... on SoldOutError { waitlistOpen unpaidUnits nextReleaseAt item { id } } } } }`
	refusal := func() string {
		return string(s.ask(u.AccessToken, document, map[string]any{"in": order(made.ItemID, u.Path)}).Data)
	}
	testenv.Eventually(t, patience, func() bool {
		return strings.Contains(refusal(), `not paid for yet: 1; the first may come back at 20`) && strings.Contains(refusal(), `"waitlistOpen":true`)
	}, "sold out for now")
	if got := refusal(); !strings.Contains(got, `"unpaidUnits":1`) || !strings.Contains(got, `"nextReleaseAt":"20`) {
		t.Errorf("sold out for now: %s", got)
	}
	if _, err := s.database().SQL.ExecContext(t.Context(), "UPDATE sales SET hide_exact_stock = true, revision = revision + 1"); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, patience, func() bool {
		got := refusal()
		return strings.Contains(got, `"unpaidUnits":null`) && strings.Contains(got, `"nextReleaseAt":null`) && strings.Contains(got, `"waitlistOpen":true`) &&
			!strings.Contains(got, "not paid for yet: 1")
	}, "a sale that hides its stock shows no number of unpaid units")
	_, page := s.pay(made.Users[0].AccessToken, "ord_"+strings.TrimPrefix(task, "tsk_"))
	s.choose(page, "approve")
	testenv.Eventually(t, patience, func() bool {
		return strings.Contains(refusal(), `every unit is paid for`) && strings.Contains(refusal(), `"waitlistOpen":false`)
	}, "sold out for good")
	if place, why := s.join(u.AccessToken, made.ItemID); why != "SOLD_OUT" || place != nil {
		t.Errorf("join when nothing can come back: %+v %s", place, why)
	}
	if b := s.button(u.AccessToken, made.SaleID); b.Viewer.Action != "NONE" || b.Viewer.DisabledReason == nil {
		t.Errorf("the button: %+v", b.Viewer)
	}
}

// The gate is lost and the schedulers are killed while an offer is open: the offer stays
// valid.
func TestAnOfferOutlivesTheGateAndTheScheduler(t *testing.T) {
	t.Parallel()
	s, server, client, keys := onOwnRedis(t)
	s.start("api", "worker")
	api := s.url
	stop := s.start("scheduler")
	s.url = api
	made, task := s.soldOut(seed.Input{Users: 3})
	first, second := made.Users[1], made.Users[2]
	place, next := s.joined(first.AccessToken, made.ItemID), s.joined(second.AccessToken, made.ItemID)
	stop()
	s.cancel(made.Users[0].AccessToken, task)
	stop = s.start("scheduler")
	s.url = api
	status := func(token, place string) string {
		var data struct{ Node *waitlistEntry }
		s.ask(token, `query($v: ID!) { node(id: $v) { ... on WaitlistEntry { status } } }`, map[string]any{"v": place}).into(t, &data)
		return data.Node.Status
	}
	testenv.Eventually(t, patience, func() bool { return status(first.AccessToken, place.ID) == "OFFERED" }, "a new scheduler makes the offer")
	stop()
	server.FlushAll()
	s.start("scheduler")
	s.url = api
	testenv.Eventually(t, testenv.Wait, func() bool {
		g := gateOf(t, client, keys, made)
		return g["epoch"] > "1" && g["gate"] == reservation.GateOpen && g["stock"] == "0" && g["reserved"] == "1"
	}, "the gate is rebuilt with the offer in it")
	if status(first.AccessToken, place.ID) != "OFFERED" || status(second.AccessToken, next.ID) != "WAITING" {
		t.Errorf("the first is %s, the second %s", status(first.AccessToken, place.ID), status(second.AccessToken, next.ID))
	}
	s.audit(made.SaleID)
	testenv.Eventually(t, patience, func() bool {
		p, err := s.place(first.AccessToken, order(made.ItemID, place.ID))
		return err == nil && p.why() == ""
	}, "the offer is redeemed")
	s.drained(made.SaleID, 1)
}

// The waitlist is in Postgres: it is readable while Redis is empty, before the gate is
// rebuilt.
func TestAPlaceInLineIsSeenWhileTheGateIsLost(t *testing.T) {
	t.Parallel()
	s, server, client, keys := onOwnRedis(t)
	s.start("api", "worker")
	made, _ := s.soldOut(seed.Input{Users: 2})
	buyer := made.Users[1]
	place := s.joined(buyer.AccessToken, made.ItemID)
	if n := client.HDel(t.Context(), gateKey(t, keys, made), "line").Val(); n != 1 {
		t.Error("the gate did not know of the line")
	}
	testenv.Eventually(t, patience, func() bool {
		return s.button(buyer.AccessToken, made.SaleID).Viewer.WaitlistEntry != nil
	}, "the process knows from the record that there is a line")
	server.FlushAll()
	looks := 0
	var lost time.Time // when the lost gate was first seen
	testenv.Eventually(t, patience, func() bool {
		b := s.button(buyer.AccessToken, made.SaleID)
		if seen := b.Viewer.WaitlistEntry; seen == nil || seen.ID != place.ID || seen.Status != "WAITING" {
			t.Fatalf("look %d: the place is %+v, in phase %s", looks, seen, b.Phase)
		}
		if looks++; b.Phase != "SOLD_OUT" && lost.IsZero() {
			lost = time.Now()
		}
		// The process reads Postgres once a second, the gate more often.
		return !lost.IsZero() && time.Since(lost) > 3*time.Second
	}, "the gate is lost for a while")
}
