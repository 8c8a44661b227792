package system_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"seckill/internal/buy/reservation"
	"seckill/internal/gate/audit"
	"seckill/internal/ops/seed"
	"seckill/internal/platform/config"
	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

// snapshot returns a function that takes Postgres back to this moment, as a failover to a
// standby that is behind does. The processes keep running.
func (s *site) snapshot() (goBack func()) {
	s.t.Helper()
	swap := testdb.Snapshot(s.t, s.cfg.DatabaseURL.Reveal())
	s.answers()
	return func() {
		s.t.Helper()
		swap()
		s.answers()
	}
}

// answers waits until the API reads Postgres again.
func (s *site) answers() {
	s.t.Helper()
	testenv.Eventually(s.t, testenv.Wait, func() bool {
		out, err := s.try("", `{ goods(first: 1) { totalCount } }`, nil)
		return err == nil && out.code() == ""
	}, "the API reads Postgres")
}

// orderStatus returns the status of an order by query; "" = there is none.
func (s *site) orderStatus(token, task string) string {
	s.t.Helper()
	out, err := s.try(token, `query($o: ID!) { order(by: { id: $o }) { status } }`, map[string]any{"o": orderOf(task)})
	var data struct{ Order *struct{ Status string } }
	if err != nil || out.code() != "" {
		return "unknown"
	}
	out.into(s.t, &data)
	if data.Order == nil {
		return ""
	}
	return data.Order.Status
}

func orderOf(task string) string { return "ord_" + strings.TrimPrefix(task, "tsk_") }

// becomes waits until an order has a status.
func (s *site) becomes(token, task, status string) {
	s.t.Helper()
	testenv.Eventually(s.t, testenv.Wait, func() bool { return s.orderStatus(token, task) == status }, "the order is "+status)
}

// recovered waits until the gate of a sale is rebuilt and open, with the stock of the record, and
// the audit finds nothing.
func (s *site) recovered(made *seed.Result, epoch int64, gate string) {
	s.t.Helper()
	var report *audit.Report
	defer func() {
		if s.t.Failed() {
			s.t.Logf("last report: %+v, gate %v", report, s.gateFields(made))
		}
	}()
	testenv.Eventually(s.t, testenv.Wait, func() bool {
		report = s.look(made.SaleID)
		return report.OK && report.Epoch > epoch && report.Stream.Unread+report.Stream.Pending == 0 && s.gateState(made) == gate
	}, "the gate is rebuilt and consistent, and "+gate)
	s.audit(made.SaleID)
}

func (s *site) gateState(made *seed.Result) string {
	s.t.Helper()
	return s.gateFields(made)["gate"]
}

func (s *site) gateFields(made *seed.Result) map[string]string {
	s.t.Helper()
	return s.conn().Cmd.HGetAll(s.t.Context(), gateKey(s.t, reservation.Keys{Prefix: s.cfg.RedisPrefix}, made)).Val()
}

// fastSite returns an installation whose schedulers look at the gates often.
func fastSite(t *testing.T) *site {
	t.Helper()
	s := newSite(t, func(c *config.Config) { c.PreloadEvery = 500 * time.Millisecond })
	s.start("api", "worker", "scheduler")
	return s
}

// Three units are sold. Within what the standby does not have, A cancels and D buys.
func TestARecordThatGoesBackTakesItsBuyersWithIt(t *testing.T) {
	t.Parallel()
	s := fastSite(t)
	made := s.seed(seed.Input{Users: 4, Stock: 3})
	token := func(i int) string { return made.Users[i].AccessToken }
	a := s.bought(token(0), made)
	s.bought(token(1), made)
	s.bought(token(2), made)
	s.drained(made.SaleID, 3)
	goBack := s.snapshot()
	s.cancel(token(0), a)
	s.becomes(token(0), a, "CANCELLED")
	d := s.bought(token(3), made)
	s.becomes(token(3), d, "PENDING_PAYMENT")
	followed := s.dial(token(3))
	goBack()
	lost := time.Now()
	s.becomes(token(0), a, "PENDING_PAYMENT")
	testenv.Eventually(t, testenv.Wait, func() bool { return s.taskStatus(token(3), d) == "FAILED" }, "the task whose order is gone fails")
	if found := s.orderStatus(token(3), d); found != "" {
		t.Errorf("the order that is gone is %s", found)
	}
	recovery := time.Since(lost)
	followed.follow("t", d)
	if e, done := followed.event(); done || e.OrderTask.Status != "FAILED" || e.OrderTask.Failure == nil {
		t.Errorf("a subscription begins with %+v", e)
	}
	s.recovered(made, 1, "open")
	if g := s.gateFields(made); g["total"] != "3" || g["stock"] != "0" || g["reserved"] != "3" {
		t.Errorf("gate %v", g)
	}
	_, page := s.pay(token(0), orderOf(a))
	s.choose(page, "approve")
	s.becomes(token(0), a, "PAID")
	report := s.drained(made.SaleID, 3)
	testenv.RecordFault(t, testenv.FaultRow{
		Fault: "Postgres fails over to a standby that is behind", Accepted: 4, Stored: report.Postgres.Orders, Failed: 1, LostUnits: lostUnits(report), Recovery: recovery,
	})
}

// An order that was only placed is written again while the record has its unit.
func TestAnOrderThatPostgresLostIsWrittenAgainIfThereIsAUnit(t *testing.T) {
	t.Parallel()
	s := fastSite(t)
	made := s.seed(seed.Input{Users: 5, Stock: 5})
	if n := s.buy(made, made.Users[:1]); n != 1 {
		t.Fatalf("%d accepted", n)
	}
	s.drained(made.SaleID, 1)
	goBack := s.snapshot()
	buyer := made.Users[1].AccessToken
	task := s.bought(buyer, made)
	s.becomes(buyer, task, "PENDING_PAYMENT")
	goBack()
	s.recovered(made, 1, "open")
	s.becomes(buyer, task, "PENDING_PAYMENT")
	if got := s.taskStatus(buyer, task); got != "SUCCEEDED" {
		t.Errorf("the task is %s", got)
	}
	if n := s.buy(made, made.Users[2:]); n != 3 {
		t.Errorf("%d accepted afterwards, want the 3 units that were left", n)
	}
	s.drained(made.SaleID, 5)
}

// A sale is paused and resumed within what the standby does not have. The operator pauses
// it again before any scheduler looks.
func TestAPauseAfterARecordThatWentBackStopsTheGate(t *testing.T) {
	t.Parallel()
	s := fastSite(t)
	operator := s.staff("ann@example.com", "OPERATOR")
	made := s.seed(seed.Input{Users: 2, Stock: 2, PathTTL: time.Hour})
	goBack := s.snapshot()
	for range 2 {
		s.onSale(operator, "pauseSale", made.SaleID, "a look", "PAUSED")
		s.onSale(operator, "resumeSale", made.SaleID, "", "LIVE")
	}
	goBack()
	s.onSale(operator, "pauseSale", made.SaleID, "stop", "PAUSED")
	if state := s.gateState(made); state == reservation.GateOpen {
		t.Errorf("the gate is %s after pauseSale answered PAUSED", state)
	}
	if p, err := s.place(made.Users[0].AccessToken, order(made.ItemID, made.Users[0].Path)); err != nil || p.why() == "" {
		t.Errorf("a paused sale accepted %+v %v", p, err)
	}
	s.recovered(made, 1, "paused")
	s.onSale(operator, "resumeSale", made.SaleID, "", "LIVE")
	s.recovered(made, 1, "open")
	if n := s.buy(made, made.Users); n != 2 {
		t.Errorf("%d accepted afterwards, want all units", n)
	}
	s.drained(made.SaleID, 2)
}

func TestALatePaymentAfterARecordThatWentBackIsSettled(t *testing.T) {
	t.Parallel()
	s := fastSite(t)
	made := s.seed(seed.Input{Users: 2, Stock: 1})
	buyer := made.Users[0].AccessToken
	task := s.bought(buyer, made)
	s.becomes(buyer, task, "PENDING_PAYMENT")
	_, page := s.pay(buyer, orderOf(task))
	goBack := s.snapshot()
	s.cancel(buyer, task)
	s.becomes(buyer, task, "CANCELLED")
	testenv.Eventually(t, testenv.Wait, func() bool { return s.gateFields(made)["stock"] == "1" }, "the unit is back")
	goBack()
	s.choose(page, "approve")
	s.becomes(buyer, task, "PAID")
	s.recovered(made, 1, "open")
	if n := s.buy(made, made.Users[1:]); n != 0 {
		t.Error("the unit was sold twice")
	}
	s.drained(made.SaleID, 1)
}

func TestStockThatWasAddedInARecordThatWentBackIsAddedAgain(t *testing.T) {
	t.Parallel()
	s := fastSite(t)
	operator := s.staff("ann@example.com", "OPERATOR")
	made := s.seed(seed.Input{Users: 6, Stock: 3})
	goBack := s.snapshot()
	adjust := map[string]any{"itemId": made.ItemID, "units": 2, "note": "two more", "idempotencyKey": uuid.NewString()}
	add := func() {
		t.Helper()
		if p := s.mutate(operator, "adjustStock", "intervention { state }", adjust); p.why() != "" || p.Intervention["state"] != "DONE" {
			t.Fatalf("adjustStock: %+v", p)
		}
	}
	add()
	goBack()
	s.recovered(made, 1, "open")
	if g := s.gateFields(made); g["total"] != "3" {
		t.Errorf("gate %v", g)
	}
	add()
	if n := s.buy(made, made.Users); n != 5 {
		t.Errorf("%d accepted, want all 5 units", n)
	}
	s.drained(made.SaleID, 5)
}

// The sale itself is gone, or its approval.
func TestAGateOfASaleThatPostgresLostSellsNothing(t *testing.T) {
	t.Parallel()
	s := fastSite(t)
	made := s.seed(seed.Input{Users: 2, Stock: 2})
	goBack := s.snapshot()
	later := s.seed(seed.Input{Users: 1, Stock: 2})
	buyer := made.Users[0].AccessToken
	task := s.bought(buyer, later)
	s.becomes(buyer, task, "PENDING_PAYMENT")
	goBack()
	testenv.Eventually(t, testenv.Wait, func() bool { return len(s.gateFields(later)) == 0 }, "the gate without a sale is gone")
	testenv.Eventually(t, testenv.Wait, func() bool { return s.taskStatus(buyer, task) == "FAILED" }, "the task of its buyer fails")
	s.recovered(made, 1, "open")
	if n := s.buy(made, made.Users); n != 2 {
		t.Errorf("%d accepted in the other sale", n)
	}
	s.drained(made.SaleID, 2)
}

func TestAnApprovalThatPostgresLostClosesTheGateUntilItIsGivenAgain(t *testing.T) {
	t.Parallel()
	s := fastSite(t)
	operator, admin := s.staff("ann@example.com", "OPERATOR"), s.staff("carla@example.com", "ADMIN")
	users := s.seed(seed.Input{Users: 2, Stock: 1}).Users
	price := map[string]any{"amount": "49.00", "currencyCode": "CNY"}
	goods := s.mutate(operator, "createGoods", "goods { id }", map[string]any{"name": "Kettle", "listPrice": price})
	now := time.Now().UTC()
	draft := s.mutate(operator, "createSale", saleParts, map[string]any{
		"title": "Autumn", "startsAt": now.Add(30 * time.Minute).Format(time.RFC3339Nano), "endsAt": now.Add(time.Hour).Format(time.RFC3339Nano),
		"items": []any{map[string]any{"goodsId": goods.Goods["id"], "price": price, "stock": 2}},
	})
	made := &seed.Result{SaleID: draft.Sale["id"].(string), ItemID: draft.Sale["items"].([]any)[0].(map[string]any)["id"].(string)}
	s.onSale(operator, "submitSale", made.SaleID, "", "PENDING_APPROVAL")
	approve := func() {
		t.Helper()
		s.onSale(admin, "approveSale", made.SaleID, "fine", "APPROVED")
		s.opensIn(operator, made.SaleID, time.Second)
		s.onSale(operator, "preheatSale", made.SaleID, "", "PREHEATED LIVE")
		testenv.Eventually(t, testenv.Wait, func() bool { return s.statusOf(operator, made.SaleID) == "LIVE" }, "the sale opens")
	}
	s.other = s.staff("second@example.com", "OPERATOR") // the record that comes back knows who confirms
	goBack := s.snapshot()
	approve()
	buyer := users[0].AccessToken
	task := s.bought(buyer, made)
	s.becomes(buyer, task, "PENDING_PAYMENT")
	goBack()
	testenv.Eventually(t, testenv.Wait, func() bool { return len(s.gateFields(made)) == 0 }, "the gate of a sale without approval is gone")
	testenv.Eventually(t, testenv.Wait, func() bool { return s.taskStatus(buyer, task) == "FAILED" }, "the task of its buyer fails")
	approve()
	accepted := 0 // after the opening in the record, processes that know the former one refuse for a moment
	testenv.Eventually(t, testenv.Wait, func() bool { accepted += s.buy(made, users); return accepted >= 2 }, "both get a unit")
	s.drained(made.SaleID, 2)
}

func TestASaleThatEndedInARecordThatWentBackCanBeEndedAgain(t *testing.T) {
	t.Parallel()
	s := fastSite(t)
	admin := s.staff("carla@example.com", "ADMIN")
	made := s.seed(seed.Input{Users: 2, Stock: 2})
	goBack := s.snapshot()
	s.onSale(admin, "endSale", made.SaleID, "enough", "ENDED")
	goBack()
	s.recovered(made, 1, "open")
	if n := s.buy(made, made.Users); n != 2 {
		t.Errorf("%d accepted, want all units", n)
	}
	s.drained(made.SaleID, 2)
	s.onSale(admin, "endSale", made.SaleID, "enough", "ENDED")
	if state := s.gateState(made); state != reservation.GateEnded {
		t.Errorf("the gate is %s", state)
	}
	s.audit(made.SaleID)
}

func TestARefundInARecordThatWentBackCanBeMadeAgain(t *testing.T) {
	t.Parallel()
	s := fastSite(t)
	operator, second := s.staff("ann@example.com", "OPERATOR"), s.staff("bob@example.com", "OPERATOR")
	made := s.seed(seed.Input{Users: 2, Stock: 1})
	buyer := made.Users[0].AccessToken
	task := s.bought(buyer, made)
	s.paid(buyer, task)
	goBack := s.snapshot()
	void := func() {
		t.Helper()
		p := s.mutate(operator, "voidOrder", "intervention { id }", map[string]any{"orderId": orderOf(task), "note": "fraud"})
		if p.why() != "" {
			t.Fatalf("voidOrder: %s", p.why())
		}
		if p = s.mutate(second, "decideIntervention", "intervention { state }", map[string]any{"interventionId": p.Intervention["id"], "confirm": true}); p.why() != "" {
			t.Fatalf("decideIntervention: %s", p.why())
		}
	}
	void()
	s.becomes(buyer, task, "REFUNDED")
	goBack()
	s.becomes(buyer, task, "PAID")
	s.recovered(made, 1, "open")
	void()
	s.becomes(buyer, task, "REFUNDED")
	if task := s.bought(made.Users[1].AccessToken, made); task == "" {
		t.Error("the returned unit is not on sale")
	}
	s.drained(made.SaleID, 1)
}

// An account that Postgres lost has no order, and a buyer whose place on the waitlist is lost
// is not kept from buying, or from joining again.
func TestAccountsAndWaitlistEntriesThatPostgresLostAreMadeAgain(t *testing.T) {
	t.Parallel()
	s := fastSite(t)
	made := s.seed(seed.Input{Users: 3, Stock: 2})
	token := func(i int) string { return made.Users[i].AccessToken }
	s.bought(token(0), made)
	s.drained(made.SaleID, 1)
	goBack := s.snapshot()
	newcomer := s.staff("eve@example.com", "CUSTOMER")
	task := s.bought(newcomer, made)
	s.becomes(newcomer, task, "PENDING_PAYMENT")
	s.joined(token(1), made.ItemID)
	goBack()
	testenv.Eventually(t, testenv.Wait, func() bool { return s.taskStatus(newcomer, task) == "FAILED" }, "the task of an account that is gone fails")
	s.recovered(made, 1, "open")
	if place := s.button(token(1), made.SaleID).Viewer.WaitlistEntry; place != nil {
		t.Errorf("a place without a row: %+v", place)
	}
	s.bought(token(1), made)
	s.joined(token(2), made.ItemID)
	s.staff("eve@example.com", "CUSTOMER")
	s.drained(made.SaleID, 2)
}

// Postgres goes back to a moment before the one to which Redis goes back, or after it.
func TestBothStoresMayGoBackToDifferentMoments(t *testing.T) {
	t.Parallel()
	for name, redisFirst := range map[string]bool{"Redis to the earlier": true, "Postgres to the earlier": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, server, client, keys := onOwnRedis(t)
			s.cfg.PreloadEvery = 500 * time.Millisecond
			s.start("api", "worker", "scheduler")
			made := s.seed(seed.Input{Users: 6, Stock: 6})
			var older, goBack func()
			steps := []func(){func() { older = server.Backup() }, func() { goBack = s.snapshot() }}
			if !redisFirst {
				steps[0], steps[1] = steps[1], steps[0]
			}
			for i, step := range steps {
				step()
				if n := s.buy(made, made.Users[i:i+1]); n != 1 {
					t.Fatalf("%d accepted", n)
				}
				s.drained(made.SaleID, i+1)
			}
			older()
			goBack()
			testenv.Eventually(t, testenv.Wait, func() bool {
				report, g := s.look(made.SaleID), gateOf(t, client, keys, made)
				return report.OK && g["gate"] == reservation.GateOpen && report.Stream.Unread+report.Stream.Pending == 0
			}, "the gate is consistent")
			left := 6 - s.audit(made.SaleID).Postgres.Orders
			if n := s.buy(made, made.Users[2:]); n != min(4, left) {
				t.Errorf("%d accepted of %d units", n, left)
			}
			s.drained(made.SaleID, 4)
		})
	}
}
