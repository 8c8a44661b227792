package system_test

import (
	"encoding/csv"
	"net/http"
	"slices"
	"testing"

	"seckill/internal/ops/seed"
)

// TestTheTypeOfAnOrderIsShown has the API, for the buyer and for staff, and the table of orders. The events have it too, see TestABatchOfOrdersWritesItsEvents.
func TestTheTypeOfAnOrderIsShown(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	ann := s.staff("ann@example.com", "OPERATOR")
	made := s.seed(seed.Input{Users: 1, Stock: 1})
	token := made.Users[0].AccessToken
	task := s.bought(token, made)
	s.paid(token, task)
	const ofBuyer = `query($t: ID!) { task: orderTask(id: $t) { order { type } } list: myOrders(first: 1) { edges { node { type } } } }`
	if got := string(s.ask(token, ofBuyer, map[string]any{"t": task}).Data); got != `{"task":{"order":{"type":"SECKILL"}},"list":{"edges":[{"node":{"type":"SECKILL"}}]}}` {
		t.Errorf("the buyer reads %s", got)
	}
	const ofStaff = `query($s: ID!) { list: orders(first: 1, filter: { saleId: $s }) { edges { node { type } } } }`
	if got := string(s.ask(ann, ofStaff, map[string]any{"s": made.SaleID}).Data); got != `{"list":{"edges":[{"node":{"type":"SECKILL"}}]}}` {
		t.Errorf("staff read %s", got)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/exports/orders.csv?sale="+made.SaleID, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+ann)
	res, err := s.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	rows, err := csv.NewReader(res.Body).ReadAll()
	if err != nil || len(rows) != 2 {
		t.Fatalf("%d, %d rows, %v", res.StatusCode, len(rows), err)
	}
	if column := slices.Index(rows[0], "type"); column < 0 || rows[1][column] != "SECKILL" {
		t.Errorf("the table is %q", rows)
	}
}
