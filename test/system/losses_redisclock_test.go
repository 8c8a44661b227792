package system_test

import (
	"testing"
	"time"

	"seckill/internal/ops/seed"
	"seckill/internal/platform/config"
	"seckill/internal/testenv"
)

// The clock of Redis is wrong for longer than the interval of the loop that ends sales
// (5 s) and of the one that expires orders (1 s).
func TestARedisClockThatRunsAheadEndsNoSaleAndExpiresNoOrder(t *testing.T) {
	t.Parallel()
	const ahead, wrongFor = 2 * time.Hour, 8 * time.Second
	server, shift := testenv.RedisServerWithClock(t)
	s := newSite(t, func(c *config.Config) { c.RedisURL = config.Secret(testenv.RedisURLAt(server.Addr())) })
	s.start("api", "worker", "scheduler")
	admin := s.staff("admin@shop.test", "ADMIN")
	made := s.seed(seed.Input{Users: 9, Stock: 10, Lasts: time.Hour, PaymentWindow: 15 * time.Minute})
	if n := s.buy(made, made.Users[:8]); n != 8 {
		t.Fatalf("%d accepted", n)
	}
	s.drained(made.SaleID, 8)

	testenv.Eventually(t, testenv.Wait, func() bool { return s.statusOf(admin, made.SaleID) == "LIVE" }, "the sale is live")

	redis := server.Conn().Cmd
	clock := func() time.Time {
		now, err := redis.Time(t.Context()).Result()
		if err != nil {
			t.Fatal(err)
		}
		return now
	}
	shift(ahead)
	since := clock()
	if time.Until(since) < ahead-testenv.Wait {
		t.Fatalf("the clock of redis was not shifted: %s", since)
	}
	testenv.Eventually(t, testenv.Wait, func() bool {
		var data struct {
			ServerInfo struct{ ServerTime time.Time }
		}
		s.ask("", `{ serverInfo { serverTime } }`, nil).into(t, &data)
		if now := data.ServerInfo.ServerTime; time.Until(now).Abs() > ahead/2 {
			t.Errorf("server time is %s at %s", now, time.Now())
		}
		return clock().Sub(since) > wrongFor
	}, "the clock of redis is wrong for eight seconds")
	shift(0)
	right := time.Now()

	if status := s.statusOf(admin, made.SaleID); status != "LIVE" {
		t.Errorf("the sale is %s", status)
	}
	counts := map[string]int{}
	rows, err := s.database().Ent.Order.Query().All(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range rows {
		counts[string(o.Status)]++
	}
	if counts["PENDING_PAYMENT"] != 8 {
		t.Errorf("orders by status: %v, want 8 unpaid", counts)
	}
	if n := s.buy(made, made.Users[8:]); n != 1 {
		t.Error("the sale does not sell after the clock is right again")
	}
	recovery := time.Since(right)
	report := s.drained(made.SaleID, 9)
	testenv.RecordFault(t, testenv.FaultRow{
		Fault: "Redis clock two hours ahead for 8 s", Accepted: 9, Stored: report.Postgres.Orders, LostUnits: lostUnits(report), Recovery: recovery,
	})
}
