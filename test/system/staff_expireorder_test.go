package system_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"seckill/internal/ops/seed"
	"seckill/internal/testenv"
)

// expired expires the unpaid order of a task, and returns the input of the call.
func (s *site) expired(operator, task string) (in map[string]any) {
	s.t.Helper()
	in = map[string]any{"orderId": "ord_" + strings.TrimPrefix(task, "tsk_"), "note": "the bank closed"}
	if p := s.mutate(operator, "expireOrder", "order { status }", in); p.why() != "" || p.Order["status"] != "EXPIRED" {
		s.t.Fatalf("expired: %+v", p)
	}
	return in
}

func TestAnUnpaidOrderThatAnOperatorExpiresIsOnSaleAgainAndInTheFeed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	made := s.seed(seed.Input{Users: 1, Stock: 1, PathTTL: time.Hour})
	operator := s.staff("ann@example.com", "OPERATOR")
	buyer := made.Users[0]
	placed, err := s.place(buyer.AccessToken, order(made.ItemID, buyer.Path))
	if err != nil || placed.OrderTask == nil {
		t.Fatalf("%+v %v", placed, err)
	}
	s.drained(made.SaleID, 1)
	in := s.expired(operator, placed.OrderTask.ID)
	if p := s.mutate(operator, "expireOrder", "order { status }", in); p.why() != "CONFLICT" || p.Order["status"] != "EXPIRED" {
		t.Errorf("expired again: %+v", p)
	}
	testenv.Eventually(t, testenv.Wait, func() bool {
		report := s.drained(made.SaleID, 0)
		return report.OK && report.Redis.Stock == 1 && report.Postgres.Available == 1
	}, "the unit is on sale again")

	k := s.dial(operator)
	k.send(frame{ID: "log", Type: "subscribe", Payload: subscription(t, `subscription($id: ID!) { saleFeed(saleId: $id, after: "0-0") { kind cursor message order { id } } }`, made.SaleID)})
	for seen := ""; !strings.Contains(seen, "expired an unpaid order"); {
		f := k.read()
		if f.Type != "next" {
			t.Fatalf("%+v", f)
		}
		var event struct {
			Data struct{ SaleFeed struct{ Message string } }
		}
		if err := json.Unmarshal(f.Payload, &event); err != nil {
			t.Fatal(err)
		}
		if seen = event.Data.SaleFeed.Message; strings.Contains(seen, "expired an unpaid order") && !strings.Contains(seen, "the bank closed") {
			t.Errorf("the line names no reason: %s", seen)
		}
	}
}
