package system_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/internal/buy/reservation"
	"seckill/internal/ops/seed"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

// The rebuild of a gate passes over a message that it cannot read: its unit is on sale
// again, and no worker can write the order either.
func TestAMessageThatCannotBeReadSellsNoUnitTwiceAndItsBuyerSeesTheFailure(t *testing.T) {
	t.Parallel()
	s, _, client, keys := onOwnRedis(t)
	s.start("api")
	api := s.url
	made := s.seed(seed.Input{Users: 4, Stock: 3, PathTTL: 10 * time.Minute})
	saleID, err := id.ParseSale(made.SaleID)
	if err != nil {
		t.Fatal(err)
	}
	first := made.Users[0]
	p, err := s.place(first.AccessToken, order(made.ItemID, first.Path))
	if err != nil || p.why() != "" {
		t.Fatalf("placed: %+v %v", p, err)
	}
	stream := keys.Orders(id.ShardOf(saleID))
	entries := client.XRange(t.Context(), stream, "-", "+").Val()
	if len(entries) != 1 {
		t.Fatalf("%d messages", len(entries))
	}
	entries[0].Values["payload"] = "not JSON"
	if err := client.XAdd(t.Context(), &redis.XAddArgs{Stream: stream, Values: entries[0].Values}).Err(); err != nil {
		t.Fatal(err)
	}
	if n := client.XDel(t.Context(), stream, entries[0].ID).Val() + client.Del(t.Context(), gateKey(t, keys, made)).Val(); n != 2 {
		t.Fatalf("%d of message and gate were there", n)
	}
	s.start("scheduler")
	testenv.Eventually(t, testenv.Wait, func() bool {
		g := gateOf(t, client, keys, made)
		return g["epoch"] > "1" && g["gate"] == reservation.GateOpen
	}, "the gate is rebuilt")
	s.start("worker")
	s.url = api
	if n := s.buy(made, made.Users[1:]); n != 3 {
		t.Errorf("%d accepted afterwards, want 3", n)
	}
	if report := s.drained(made.SaleID, 3); report.Postgres.Orders != 3 || report.Postgres.Available != 0 {
		t.Errorf("report %+v", report)
	}
	testenv.Eventually(t, testenv.Wait, func() bool {
		return s.taskStatus(first.AccessToken, p.OrderTask.ID) == "FAILED"
	}, "the buyer sees that the attempt failed")
}
