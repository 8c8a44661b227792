//go:build faults

package system_test

import (
	"testing"
	"time"

	"seckill/internal/ops/seed"
	"seckill/internal/platform/config"
	"seckill/internal/testenv"
)

// The Redis user of the processes is removed, then Redis goes back to an older copy.
func TestRedisLostAfterItsUserWasRemovedIsRebuilt(t *testing.T) {
	t.Parallel()
	const buyers, stock = 12, 10
	server := testenv.RedisServer(t)
	s := newSite(t, func(c *config.Config) { c.RedisURL = config.Secret(testenv.LockableURL(t, server)) })
	s.start("api", "worker", "scheduler")
	made := s.seed(seed.Input{Users: buyers, Stock: stock})
	if n := s.buy(made, made.Users[:2]); n != 2 {
		t.Fatalf("%d accepted at first", n)
	}
	s.drained(made.SaleID, 2)
	restore := server.Backup()
	if n := s.buy(made, made.Users[2:4]); n != 2 {
		t.Fatalf("%d accepted then", n)
	}
	s.drained(made.SaleID, 4)
	var giveBack func()
	for _, lockout := range testenv.Lockouts() {
		if lockout.Name == "user deleted" {
			giveBack = lockout.Do(t, server)
		}
	}
	if s.tryToBuy(made.Users[4].AccessToken, made) {
		t.Error("accepted without Redis")
	}
	restore()
	if s.tryToBuy(made.Users[4].AccessToken, made) {
		t.Error("accepted while the user is not there")
	}
	giveBack()
	back := time.Now()
	testenv.Eventually(t, testenv.Wait, func() bool { return s.tryToBuy(made.Users[4].AccessToken, made) }, "the sale goes on")
	recovery := time.Since(back)
	if n := s.buy(made, made.Users[5:]); n != stock-5 {
		t.Errorf("%d accepted afterwards, want %d", n, stock-5)
	}
	report := s.drained(made.SaleID, stock)
	if report.Postgres.Orders != stock {
		t.Errorf("%+v", report.Postgres)
	}
	testenv.RecordFault(t, testenv.FaultRow{
		Fault: "Redis user removed, then an older copy", Accepted: stock, Stored: report.Postgres.Orders, LostUnits: lostUnits(report), Recovery: recovery,
	})
}
