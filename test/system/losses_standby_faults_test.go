//go:build faults

package system_test

import (
	"bytes"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"seckill/internal/app"
	"seckill/internal/buy/reservation"
	"seckill/internal/gate/audit"
	"seckill/internal/gate/recordloss"
	"seckill/internal/ops/seed"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/config"
	"seckill/internal/platform/id"
	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

// replicatedSite returns an installation whose Postgres has a standby, with one process
// of each role.
func replicatedSite(t *testing.T) (*site, *testdb.Replicated) {
	t.Helper()
	servers := testdb.Replicate(t)
	s := newSite(t, func(c *config.Config) { c.DatabaseURL = config.Secret(servers.URL()) })
	for _, role := range []string{"api", "worker", "scheduler"} {
		s.launch(role)
	}
	return s, servers
}

// failOver promotes the standby, waits until the API reads it, and returns when it took
// writes.
func (s *site) failOver(servers *testdb.Replicated) time.Time {
	s.t.Helper()
	servers.FailOver()
	promoted := time.Now()
	s.answers()
	return promoted
}

// stopped waits until a gate is suspended or rebuilt after a loss.
func (s *site) stopped(made *seed.Result, since time.Time) {
	s.t.Helper()
	testenv.Eventually(s.t, testenv.Wait, func() bool {
		g := s.gateFields(made)
		return g["gate"] != reservation.GateOpen || g["epoch"] > "1"
	}, "the gate stops")
	s.t.Logf("the gate stopped %s after the promotion", time.Since(since).Round(time.Millisecond))
}

// concerns returns what the last loss concerns, once it is recovered from.
func (s *site) concerns() (found []recordloss.Concern) {
	s.t.Helper()
	report, err := app.AfterRestore(s.t.Context(), s.cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		s.t.Fatal(err)
	}
	if report.LostAt == nil || !report.Recovered {
		s.t.Errorf("report %+v", report)
	}
	return report.Concerns
}

// Three units are sold. Within what the standby did not receive, A cancels, D buys, and C
// pays.
func TestAStandbyThatIsBehindTakesItsBuyersBack(t *testing.T) {
	t.Parallel()
	s, servers := replicatedSite(t)
	made := s.seed(seed.Input{Users: 4, Stock: 3})
	token := func(i int) string { return made.Users[i].AccessToken }
	var tasks []string
	for i := range 3 {
		tasks = append(tasks, s.bought(token(i), made))
	}
	s.drained(made.SaleID, 3)
	servers.CatchUp()
	servers.Unplug()
	a, c := tasks[0], tasks[2]
	s.cancel(token(0), a)
	s.becomes(token(0), a, "CANCELLED")
	d := s.bought(token(3), made)
	testenv.Eventually(t, testenv.Wait, func() bool { return s.taskStatus(token(3), d) == "SUCCEEDED" }, "D has an order")
	s.paid(token(2), c)
	promoted := s.failOver(servers)
	s.stopped(made, promoted)
	testenv.Eventually(t, testenv.Wait, func() bool { return s.taskStatus(token(3), d) == "FAILED" }, "the task whose order is gone fails")
	s.becomes(token(0), a, "PENDING_PAYMENT")
	s.becomes(token(2), c, "PENDING_PAYMENT")
	s.recovered(made, 1, reservation.GateOpen)
	recovery := time.Since(promoted)
	t.Logf("the gate sells again %s after the promotion", recovery.Round(time.Millisecond))
	if g := s.gateFields(made); g["total"] != "3" || g["stock"] != "0" || g["reserved"] != "3" {
		t.Errorf("gate %v", g)
	}
	concerns := s.concerns()
	for _, want := range []recordloss.Concern{
		{What: recordloss.OrderBehind, Order: orderOf(a), Copy: "CANCELLED", Record: "PENDING_PAYMENT"},
		{What: recordloss.OrderBehind, Order: orderOf(c), Copy: "PAID", Record: "PENDING_PAYMENT"},
		{What: recordloss.OrderMissing, Order: orderOf(d), Copy: "PENDING_PAYMENT", Record: "SOLD_OUT"},
	} {
		if !slices.ContainsFunc(concerns, func(c recordloss.Concern) bool {
			return c.What == want.What && c.Order == want.Order && c.Copy == want.Copy && c.Record == want.Record
		}) {
			t.Errorf("no %+v in %+v", want, concerns)
		}
	}
	for i, task := range []string{a, tasks[1], c} {
		s.paid(token(i), task)
	}
	report := s.drained(made.SaleID, 3)
	testenv.RecordFault(t, testenv.FaultRow{
		Fault: "Postgres: a standby that is behind is promoted", Accepted: 4, Stored: report.Postgres.Orders, Failed: 1, LostUnits: lostUnits(report), Recovery: recovery,
	})
}

// A sale is paused and resumed within what the standby did not receive: its gate has a
// later revision than the record. The operator pauses it as soon as the API answers.
func TestAPauseAfterAStandbyWasPromotedStopsTheGate(t *testing.T) {
	t.Parallel()
	s, servers := replicatedSite(t)
	operator := s.staff("ann@example.com", "OPERATOR")
	made := s.seed(seed.Input{Users: 3, Stock: 3, PathTTL: time.Hour})
	adjust := map[string]any{"itemId": made.ItemID, "units": -1, "note": "one is broken", "idempotencyKey": uuid.NewString()}
	remove := func() {
		t.Helper()
		if p := s.byTwo(operator, "adjustStock", "", adjust); p.why() != "" || p.Intervention["state"] != "DONE" {
			t.Fatalf("adjustStock: %+v", p)
		}
	}
	servers.CatchUp()
	servers.Unplug()
	for range 2 {
		s.onSale(operator, "pauseSale", made.SaleID, "a look", "PAUSED")
		s.onSale(operator, "resumeSale", made.SaleID, "", "LIVE")
	}
	promoted := s.failOver(servers)
	s.onSale(operator, "pauseSale", made.SaleID, "stop", "PAUSED")
	if state := s.gateState(made); state == reservation.GateOpen {
		t.Errorf("the gate is %s after pauseSale answered PAUSED", state)
	}
	for _, u := range made.Users {
		if p, err := s.place(u.AccessToken, order(made.ItemID, u.Path)); err != nil || p.why() == "" {
			t.Errorf("a paused sale accepted %+v %v", p, err)
		}
	}
	s.recovered(made, 1, reservation.GatePaused)
	s.onSale(operator, "resumeSale", made.SaleID, "", "LIVE")
	remove()
	s.recovered(made, 1, reservation.GateOpen)
	recovery := time.Since(promoted)
	if n := s.buy(made, made.Users); n != 2 {
		t.Errorf("%d accepted afterwards, want the 2 units that are left", n)
	}
	report := s.drained(made.SaleID, 2)
	testenv.RecordFault(t, testenv.FaultRow{
		Fault: "Postgres: a standby without two pauses is promoted", Accepted: 2, Stored: report.Postgres.Orders, LostUnits: lostUnits(report), Recovery: recovery,
	})
}

// The money of an order that the standby did not receive arrives after the failover, and
// units are removed while the gate is ahead of the record.
func TestLateMoneyAndARemovalReachAPromotedStandbyAtOnce(t *testing.T) {
	t.Parallel()
	s, servers := replicatedSite(t)
	operator := s.staff("ann@example.com", "OPERATOR")
	made := s.seed(seed.Input{Users: 2, Stock: 2})
	known := s.bought(made.Users[0].AccessToken, made)
	s.becomes(made.Users[0].AccessToken, known, "PENDING_PAYMENT")
	_, page := s.pay(made.Users[0].AccessToken, orderOf(known))
	adjust := func(units int) {
		t.Helper()
		in := map[string]any{"itemId": made.ItemID, "units": units, "note": "a count", "idempotencyKey": uuid.NewString()}
		testenv.Eventually(t, testenv.Wait, func() bool { // TAKING while the gate is suspended
			p := s.mutate(operator, "adjustStock", "intervention { id state }", in)
			if p.why() != "" {
				t.Fatalf("adjustStock: %+v", p)
			}
			if p.Intervention["state"] == "REQUESTED" {
				p.Intervention, _ = s.confirm(p.Intervention["id"])
			}
			return p.Intervention["state"] == "DONE"
		}, "the stock is adjusted")
	}
	servers.CatchUp()
	servers.Unplug()
	s.cancel(made.Users[0].AccessToken, known)
	s.becomes(made.Users[0].AccessToken, known, "CANCELLED")
	adjust(3)
	promoted := s.failOver(servers)
	adjust(-1) // the only unit that the record has left
	s.choose(page, "approve")
	s.becomes(made.Users[0].AccessToken, known, "PAID")
	s.recovered(made, 1, reservation.GateOpen)
	recovery := time.Since(promoted)
	if g := s.gateFields(made); g["total"] != "1" || g["stock"] != "0" || g["reserved"] != "1" {
		t.Errorf("gate %v", g)
	}
	if n := s.buy(made, made.Users[1:]); n != 0 {
		t.Error("a unit that was removed, or paid for, was sold")
	}
	report := s.drained(made.SaleID, 1)
	testenv.RecordFault(t, testenv.FaultRow{
		Fault: "Postgres: late money and a removal after the promotion", Accepted: 1, Stored: report.Postgres.Orders, LostUnits: lostUnits(report), Recovery: recovery,
	})
}

// awayFor is longer than the minute after which an entry counts as late.
const awayFor = 75 * time.Second

// A synchronous standby is away: commits wait on the server, and become visible after entries
// that were made later and are sealed. No order that its promotion would lose is visible
// meanwhile.
func TestASynchronousStandbyThatIsAwayBreaksNoSealAndLosesNoOrder(t *testing.T) {
	t.Parallel()
	const before, atMost = 2, 12
	s, servers := replicatedSite(t)
	servers.Synchronous("*")
	made := s.seed(seed.Input{Users: atMost, Stock: atMost + spare})
	sale, err := id.ParseSale(made.SaleID)
	if err != nil {
		t.Fatal(err)
	}
	db := testdb.Open(t, servers.PrimaryURL()+"&synchronous_commit=local") // waits for no standby
	sealer := audit.Sealer{DB: db, Clock: clock.System{}, Log: slog.New(slog.DiscardHandler)}
	verified := func(earlier string) *audit.Verification {
		t.Helper()
		var log bytes.Buffer
		if _, err := app.ExportLog(t.Context(), s.cfg, sale, &log); err != nil {
			t.Fatal(err)
		}
		v, err := audit.Verify(&log, earlier)
		if err != nil || !v.OK {
			t.Fatalf("the log: %+v, %v", v, err)
		}
		return v
	}
	if n := s.buy(made, made.Users[:before]); n != before {
		t.Fatalf("%d accepted", n)
	}
	s.drained(made.SaleID, before)
	if _, err := sealer.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	head := verified("").Head

	servers.Unplug()
	gone, accepted, waiting := time.Now(), before, 0
	for i := before; i < atMost; i++ { // over the whole time
		if s.tryToBuy(made.Users[i].AccessToken, made) {
			accepted++
		}
		until := gone.Add(awayFor * time.Duration(i-before+1) / (atMost - before))
		testenv.Eventually(t, testenv.Wait, func() bool { return time.Now().After(until) }, "time passes")
		var visible, commits int
		err := db.SQL.QueryRowContext(t.Context(), `SELECT (SELECT count(*) FROM orders), (SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep')`).Scan(&visible, &commits)
		if err != nil || visible != before {
			t.Errorf("after %s: %d orders are visible that the standby may not have, %v", time.Since(gone), visible-before, err)
		}
		waiting = max(waiting, commits)
	}
	now := time.Now()
	err = db.Ent.SaleLog.Create().SetID(id.New[uuid.UUID]()).SetSaleID(sale).SetAct("OPEN").SetFromStatus("LIVE").SetToStatus("LIVE").
		SetRevision(3).SetCreatedAt(now).Exec(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if counts, err := sealer.Step(t.Context()); err != nil || counts["sealed"] != 1 {
		t.Errorf("sealed %v, %v", counts, err)
	}
	head = verified(head).Head
	servers.Plug()
	back := time.Now()
	report := s.drained(made.SaleID, accepted)
	recovery := time.Since(back)
	var last *audit.Verification
	testenv.Eventually(t, testenv.Wait, func() bool {
		_, err := sealer.Step(t.Context())
		last = verified(head)
		return err == nil && last.Unsealed == 0
	}, "all entries are sealed")
	if len(last.Late) == 0 {
		t.Error("no entry became visible after later ones were sealed")
	}
	t.Logf("%d of %d attempts accepted while it was away, up to %d commits waited, %d entries sealed late", accepted-before, atMost-before, waiting, len(last.Late))
	testenv.RecordFault(t, testenv.FaultRow{
		Fault: "Postgres: a synchronous standby is away for a minute", Accepted: accepted, Stored: report.Postgres.Orders, LostUnits: lostUnits(report), Recovery: recovery,
	})
}
