package system_test

import (
	"encoding/csv"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"seckill/internal/ops/seed"
	"seckill/internal/staff/operator"
)

// listOrders returns the ids of the orders query for arguments in GraphQL.
func (s *site) listOrders(token, arguments string) (ids []string) {
	s.t.Helper()
	out := s.ask(token, `{ orders(`+arguments+`) { totalCount edges { node { id } } } }`, nil)
	var data struct {
		Orders struct {
			TotalCount int
			Edges      []struct{ Node struct{ ID string } }
		}
	}
	if out.code() != "" {
		s.t.Fatalf("orders(%s): %+v", arguments, out.Errors)
	}
	out.into(s.t, &data)
	for _, e := range data.Orders.Edges {
		ids = append(ids, e.Node.ID)
	}
	if data.Orders.TotalCount != len(ids) {
		s.t.Errorf("orders(%s): %d orders of %d", arguments, len(ids), data.Orders.TotalCount)
	}
	return ids
}

func TestOrdersAreFoundByNumberBuyerPaymentDateAndSale(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	made := s.seed(seed.Input{Users: 2, Stock: 2, PathTTL: 10 * time.Minute})
	other := s.seed(seed.Input{Users: 1, Stock: 2, PathTTL: 10 * time.Minute})
	ann := s.staff("ann@example.com", "OPERATOR")
	paid := s.askedBack(made.Users[0].AccessToken, made)
	p, err := s.place(made.Users[1].AccessToken, order(made.ItemID, made.Users[1].Path))
	if err != nil || p.why() != "" {
		t.Fatalf("%+v %v", p, err)
	}
	s.drained(made.SaleID, 2)
	second := "ord_" + strings.TrimPrefix(p.OrderTask.ID, "tsk_")
	var data struct {
		Order struct {
			Number   string
			Payments []struct{ Transaction string }
			Buyer    struct{ Account string }
		}
	}
	s.ask(ann, `query($o: ID!) { order(by: { id: $o }) { number buyer { account } payments { transaction } } }`, map[string]any{"o": paid}).into(t, &data)
	transaction := data.Order.Payments[0].Transaction
	if transaction == "" {
		t.Fatalf("no transaction: %+v", data)
	}
	soon, long := time.Now().Add(time.Minute).UTC().Format(time.RFC3339), time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)
	for filter, want := range map[string][]string{
		`search: "` + data.Order.Number + `"`:                              {paid},
		`search: "` + data.Order.Buyer.Account + `"`:                       {paid},
		`search: "` + transaction + `"`:                                    {paid},
		`search: "no such text"`:                                           nil,
		`saleId: "` + made.SaleID + `"`:                                    {second, paid},
		`saleId: "` + other.SaleID + `"`:                                   nil,
		`createdFrom: "` + long + `", createdUntil: "` + soon + `"`:        {second, paid},
		`createdFrom: "` + soon + `"`:                                      nil,
		`createdUntil: "` + long + `"`:                                     nil,
		`statuses: [PENDING_PAYMENT], saleId: "` + made.SaleID + `"`:       {second},
		`statuses: [PENDING_PAYMENT], search: "` + data.Order.Number + `"`: nil,
		`createdFrom: "` + long + `", search: "` + transaction + `"`:       {paid},
	} {
		if got := s.listOrders(ann, "first: 20, filter: {"+filter+"}"); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", filter, got, want)
		}
	}
	if got := s.listOrders(ann, `first: 20, orderBy: {direction: ASC}`); !slices.Equal(got, []string{paid, second}) {
		t.Errorf("oldest first: %v", got)
	}
	if got := s.myOrders(made.Users[1].AccessToken, `search: "`+data.Order.Buyer.Account+`"`); got != 0 {
		t.Errorf("a buyer finds %d orders by an account", got)
	}
	if got := s.myOrders(made.Users[0].AccessToken, `search: "`+data.Order.Number+`"`); got != 1 {
		t.Errorf("a buyer finds %d orders by the number of one", got)
	}
	s.exportHas(ann, made.SaleID, transaction)
}

// myOrders returns how many orders a buyer finds with a filter.
func (s *site) myOrders(token, filter string) int {
	s.t.Helper()
	var data struct {
		MyOrders struct {
			Edges []struct{ Node struct{ ID string } }
		}
	}
	s.ask(token, `{ myOrders(first: 20, filter: {`+filter+`}) { edges { node { id } } } }`, nil).into(s.t, &data)
	return len(data.MyOrders.Edges)
}

// exportHas checks that the first row of a sale's export has a payment and a requested refund.
func (s *site) exportHas(token, saleID, transaction string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url+operator.ExportPath+"?sale="+saleID, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := s.http.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	rows, err := csv.NewReader(res.Body).ReadAll()
	if err != nil || len(rows) != 3 {
		s.t.Fatalf("%d rows, %v", len(rows), err)
	}
	column := func(name string) string { return rows[1][slices.Index(rows[0], name)] }
	if column("payment_transaction") != transaction || column("payment_provider") == "" || column("refund_status") != "REQUESTED" || column("refunded_amount") != "0.00" {
		s.t.Errorf("the row of the paid order: %q", rows[1])
	}
}
