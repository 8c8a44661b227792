package app_test

import (
	"encoding/csv"
	"net/http"
	"slices"
	"testing"

	"seckill/internal/seed"
)

// TestTheTypeOfAnOrderIsShown has the table of orders. The events have it too, see TestABatchOfOrdersWritesItsEvents.
func TestTheTypeOfAnOrderIsShown(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	ann := s.staff("ann@example.com", "OPERATOR")
	made := s.seed(seed.Input{Users: 1, Stock: 1})
	token := made.Users[0].AccessToken
	s.paid(token, s.bought(token, made))
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
