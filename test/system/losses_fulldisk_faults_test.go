//go:build faults

package system_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/internal/ops/seed"
	"seckill/internal/platform/config"
	"seckill/internal/testdb"
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
			server, volume := testenv.RedisServerOnVolume(t, settings...)
			s := newSite(t, func(c *config.Config) { c.RedisURL = config.Secret(server.URL()) })
			s.start("api", "worker", "scheduler")
			conn := server.Conn().Cmd
			s.fullDisk("Redis disk full, "+name, 3, func() (free func()) {
				free = volume.Fill()
				testenv.Eventually(t, testenv.Wait, func() bool {
					_ = conn.BgSave(t.Context()).Err() // one may be running
					return redis.HasErrorPrefix(conn.Set(t.Context(), "full disk", strings.Repeat("x", 10_000), 0).Err(), "MISCONF")
				}, "Redis refuses writes")
				return free
			})
		})
	}
}

// A Postgres that cannot extend its files refuses writes with SQLSTATE 53100 and answers
// reads. One that cannot extend its write-ahead log crashes.
func TestAFullDiskOfPostgresDelaysOrdersUntilThereIsSpace(t *testing.T) {
	t.Parallel()
	for name, fill := range map[string]func(*testdb.Alone) (free func()){
		"data": (*testdb.Alone).FillData, "write-ahead log": (*testdb.Alone).FillLog,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := testdb.OnVolumes(t)
			s := newSite(t, func(c *config.Config) { c.DatabaseURL = config.Secret(server.URL()) })
			s.start("api", "worker", "scheduler")
			s.fullDisk("Postgres disk full, "+name, 120, func() (free func()) { return fill(server) }) // so many need new pages
		})
	}
}

// fullDisk sells out while the disk of a store is full for some seconds, in which up to so
// many buyers try.
func (s *site) fullDisk(fault string, during int, fill func() (free func())) {
	t := s.t
	t.Helper()
	const before = 4
	stock := before + during + 3
	buyers := stock + 2
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
	for began := time.Now(); time.Since(began) < 5*time.Second && next < before+during; {
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
	t.Logf("%d accepted and %d refused while the disk was full, %d orders stored", accepted-before, refused, s.look(made.SaleID).Postgres.Orders)
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
