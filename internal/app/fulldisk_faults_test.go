//go:build faults

package app_test

import (
	"context"
	"testing"
	"time"

	"seckill/internal/ops/seed"
	"seckill/internal/testenv"
)

// A Redis that cannot write its files refuses writes (MISCONF) and answers reads.
func TestAFullDiskOfRedisStopsTheSaleUntilThereIsSpace(t *testing.T) {
	t.Parallel()
	for name, settings := range map[string][]string{
		"append-only file": nil,
		"snapshots":        {"--appendonly", "no", "--save", "1 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, server := onRedisWith(t, settings...)
			s.start("api", "worker", "scheduler")
			s.fullDisk("Redis disk full, "+name, func() (free func()) { return server.FillDisk() })
		})
	}
}

// A Postgres that cannot extend its files refuses every write with SQLSTATE 53100 and answers
// reads. The triggers raise that error, because a test cannot fill a disk without the rights
// of root.
func TestAFullDiskOfPostgresDelaysOrdersUntilThereIsSpace(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	db := s.database()
	run := func(statement string) {
		t.Helper()
		if _, err := db.SQL.ExecContext(context.WithoutCancel(t.Context()), statement); err != nil {
			t.Fatal(err)
		}
	}
	s.fullDisk("Postgres disk full", func() (free func()) {
		run(`CREATE FUNCTION disk_full() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			RAISE 'could not extend file "base/1/2": No space left on device' USING ERRCODE = 'disk_full'; END $$`)
		run(`DO $$ DECLARE name regclass; BEGIN
			FOR name IN SELECT oid FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace LOOP
				EXECUTE format('CREATE TRIGGER disk_full BEFORE INSERT OR UPDATE ON %s EXECUTE FUNCTION disk_full()', name);
			END LOOP; END $$`)
		return func() { run(`DROP FUNCTION disk_full CASCADE`) }
	})
}

// fullDisk sells ten units to twelve buyers while the disk of a store is full for some
// seconds, from the fourth on.
func (s *site) fullDisk(fault string, fill func() (free func())) {
	t := s.t
	t.Helper()
	const before, stock, buyers = 4, 10, 12
	made := s.seed(seed.Input{Users: buyers, Stock: stock, PathTTL: 10 * time.Minute})
	accepted := 0
	buy := func(i int) {
		t.Helper()
		p, err := s.insist(made.Users[i].AccessToken, order(made.ItemID, made.Users[i].Path))
		switch {
		case err != nil:
			t.Fatal(err)
		case p.why() == "":
			accepted++
		case p.why() != "SOLD_OUT" || accepted < stock:
			t.Errorf("buyer %d: %s after %d of %d", i, p.why(), accepted, stock)
		}
	}
	first := order(made.ItemID, made.Users[0].Path)
	p, err := s.insist(made.Users[0].AccessToken, first)
	if err != nil || p.OrderTask == nil {
		t.Fatalf("%+v %v", p, err)
	}
	accepted++
	for i := 1; i < before; i++ {
		buy(i)
	}
	s.drained(made.SaleID, before)

	free := fill()
	next, refused := before, 0
	for began := time.Now(); time.Since(began) < 5*time.Second && next < before+3; {
		out := s.ask(made.Users[next].AccessToken, placeOrder, map[string]any{"in": order(made.ItemID, made.Users[next].Path)})
		switch p, err := out.placed(); {
		case out.code() == "UNAVAILABLE":
			refused++
		case out.code() == "" && err == nil && p.why() == "": // the gate took it: the store that is full is not asked yet
			accepted++
			next++
		default:
			t.Fatalf("placeOrder: %s %+v, want a task or UNAVAILABLE", out.Data, out.Errors)
		}
		var view struct {
			Sale struct {
				Phase string
				Items []struct{ Stock struct{ Remaining int } }
			}
		}
		s.ask("", `query($i: ID!) { sale(by: {id: $i}) { phase items { stock { remaining } } } }`, map[string]any{"i": made.SaleID}).into(t, &view)
		if left := view.Sale.Items[0].Stock.Remaining; view.Sale.Phase != "LIVE" || left < stock-accepted || left > stock-before {
			t.Fatalf("buyers see %+v after %d orders", view, accepted)
		}
		if status := s.taskStatus(made.Users[0].AccessToken, p.OrderTask.ID); status != "SUCCEEDED" {
			t.Fatalf("the first task is %s", status)
		}
	}
	t.Logf("%d accepted and %d refused while the disk was full", accepted-before, refused)
	free()
	freed := time.Now()
	for ; next < buyers; next++ {
		buy(next)
	}
	report := s.drained(made.SaleID, stock)
	if report.Postgres.Orders != stock || accepted != stock {
		t.Errorf("%d accepted, %+v", accepted, report.Postgres)
	}
	testenv.RecordFault(t, testenv.FaultRow{
		Fault: fault, Accepted: accepted, Stored: report.Postgres.Orders, LostUnits: lostUnits(report), Recovery: time.Since(freed),
	})
}
