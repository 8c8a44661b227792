package system_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"seckill/internal/app"
	"seckill/internal/ops/seed"
	"seckill/internal/platform/money"
	"seckill/internal/staff/report"
	"seckill/internal/testenv"
)

// moneyFigures are the live figures of orders, units and money.
type moneyFigures struct {
	Orders, PaidOrders, ExpiredOrders, CancelledOrders, RefundedOrders                            int
	TotalUnits, RemainingUnits, PendingUnits, PaidUnits, UnpaidUnits, OfferedUnits, InFlightUnits int
	Requests                                                                                      int
	Gmv, NetValue, RefundedValue                                                                  struct{ Amount string }
}

// counts are the figures that have a counter among the metrics.
type counts struct{ orders, payments, refunds int }

const askMoney = `query($id: ID!) { sale(by: {id: $id}) { saleStats { requests orders paidOrders expiredOrders cancelledOrders refundedOrders totalUnits remainingUnits
  pendingUnits paidUnits unpaidUnits offeredUnits inFlightUnits gmv { amount } netValue { amount } refundedValue { amount } } } saleReport(saleId: $id) { findings json } }`

// sampler reads live figures, report and record of a sale in which each order has one unit
// at one price, and checks that each reading agrees with its definitions in
// docs/figures.md.
type sampler struct {
	*site
	t       *testing.T
	process *app.App // of all roles: its metrics are those of the installation
	db      *sql.DB
	token   string
	saleID  string
	price   money.Amount

	mu      sync.Mutex
	samples int // guarded by mu
	offered int // guarded by mu; samples with a unit on offer
	live    moneyFigures
	report  report.Report
}

// recorded returns what is written in Postgres.
func (s *sampler) recorded() (c counts) {
	if err := s.db.QueryRowContext(s.t.Context(), `SELECT (SELECT count(*) FROM orders), (SELECT count(*) FROM payments WHERE paid_at IS NOT NULL),
		(SELECT count(*) FROM refunds WHERE status = 'SUCCEEDED')`).Scan(&c.orders, &c.payments, &c.refunds); err != nil {
		s.t.Error(err)
	}
	return c
}

// counted returns the counters of the metrics, and that of calls of placeOrder.
func (s *sampler) counted() (c counts, calls int) {
	text := metrics(s.t, s.process)
	return counts{
		orders:   sumOf(text, "seckill_order_written_total", ""),
		payments: sumOf(text, "seckill_payment_results_total", `result="paid"`),
		refunds:  sumOf(text, "seckill_payment_results_total", `result="refunded"`),
	}, sumOf(text, "seckill_salestats_calls_total", `stage="ORDER"`)
}

// sumOf adds the series of a counter that have a label; all of its series without one.
func sumOf(text, counter, label string) (sum int) {
	for line := range strings.Lines(text) {
		series, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name, _, _ := strings.Cut(series, "{"); name != counter || !strings.Contains(series, label) {
			continue
		}
		if n, err := strconv.Atoi(value); err == nil {
			sum += n
		}
	}
	return sum
}

// above reports whether a count is larger than in another reading.
func (c counts) above(other counts) bool {
	return c.orders > other.orders || c.payments > other.payments || c.refunds > other.refunds
}

// compareMetrics checks that no counter is ahead of the record, and that the counters
// reach what was in the record before.
func (s *sampler) compareMetrics(before counts) {
	now, _ := s.counted()
	if after := s.recorded(); now.above(after) {
		s.t.Errorf("the metrics count %+v, the record has %+v", now, after)
	}
	testenv.Eventually(s.t, testenv.Wait, func() bool {
		now, _ := s.counted()
		return !before.above(now)
	}, fmt.Sprintf("the metrics count what is in the record, %+v", before))
}

func (s *sampler) worth(orders int) string {
	return money.Amount{Minor: s.price.Minor * int64(orders), Currency: s.price.Currency}.Decimal()
}

// sample takes one reading.
func (s *sampler) sample() {
	recorded := s.recorded()
	before := recorded.orders
	out, err := s.try(s.token, askMoney, map[string]any{"id": s.saleID})
	after := s.recorded().orders
	_, calls := s.counted()
	s.compareMetrics(recorded)
	var data struct {
		Sale       struct{ SaleStats moneyFigures }
		SaleReport struct {
			Findings []string
			JSON     string
		}
	}
	var r report.Report
	if err != nil || json.Unmarshal(out.Data, &data) != nil || json.Unmarshal([]byte(data.SaleReport.JSON), &r) != nil {
		s.t.Errorf("figures: %s %+v %v", out.Data, out.Errors, err)
		return
	}
	f := data.Sale.SaleStats
	unpaid := f.Orders - f.PaidOrders - f.ExpiredOrders - f.CancelledOrders - f.RefundedOrders
	refunding := f.PaidUnits - f.PaidOrders
	want := f
	want.UnpaidUnits, want.TotalUnits = unpaid, f.RemainingUnits+f.PendingUnits+f.PaidUnits
	want.PendingUnits = f.UnpaidUnits + f.OfferedUnits + f.InFlightUnits
	want.Gmv.Amount, want.NetValue.Amount, want.RefundedValue.Amount = s.worth(f.PaidOrders), s.worth(f.PaidUnits), s.worth(f.RefundedOrders-refunding)
	if f != want || refunding < 0 || f.Orders > after || f.Requests > calls {
		s.t.Errorf("live figures %+v, by their definitions %+v; %d orders are written, the metrics count %d calls of placeOrder", f, want, after, calls)
	}
	o, u := r.Orders, r.Units
	refunding = u.Sold - o.Paid
	if o.Written < before || o.Written > after || o.Written != o.Paid+o.Unpaid+o.Expired+o.Cancelled+o.Refunded || u.Held != o.Unpaid ||
		u.Total != u.Remaining+u.Held+u.Sold || refunding < 0 || o.GMV != s.worth(o.Paid) || o.Net != s.worth(u.Sold) || o.RefundSum != s.worth(o.Refunded-refunding) {
		s.t.Errorf("report %+v %+v; %d to %d orders were written", o, u, before, after)
	}
	if len(data.SaleReport.Findings) > 0 {
		s.t.Errorf("findings %q", data.SaleReport.Findings)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.samples++
	if f.OfferedUnits > 0 {
		s.offered++
	}
	s.live, s.report = f, r
}

// run samples until the returned function is called.
func (s *sampler) run() (stop func()) {
	end := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		ticker := time.NewTicker(50 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-end:
				return
			case <-ticker.C:
				s.sample()
			}
		}
	})
	return sync.OnceFunc(func() { close(end); done.Wait() })
}

// Orders, payments, cancellations, refunds and an offer of the waitlist: live figures,
// report and metrics agree with themselves, with each other and with the record at every
// moment.
func TestFiguresReportMetricsAndRecordAgreeAtEveryMoment(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	process, _ := s.open("api", "worker", "scheduler")
	ann := s.staff("ann@example.com", "OPERATOR")
	const stock = 6
	made := s.seed(seed.Input{Users: stock + 1, Stock: stock})
	var item struct {
		Sale struct {
			Items []struct {
				Price struct{ Amount, CurrencyCode string }
			}
		}
	}
	s.ask("", `query($id: ID!) { sale(by: {id: $id}) { items { price { amount currencyCode } } } }`, map[string]any{"id": made.SaleID}).into(t, &item)
	price, err := money.Parse(item.Sale.Items[0].Price.Amount, item.Sale.Items[0].Price.CurrencyCode)
	if err != nil {
		t.Fatal(err)
	}
	watch := &sampler{site: s, t: t, process: process, db: s.database().SQL, token: ann, saleID: made.SaleID, price: price}
	stop := watch.run()
	defer stop()
	tasks := make([]string, stock)
	for i := range tasks {
		tasks[i] = s.bought(made.Users[i].AccessToken, made)
	}
	s.drained(made.SaleID, stock)
	s.joined(made.Users[stock].AccessToken, made.ItemID)
	s.cancel(made.Users[0].AccessToken, tasks[0]) // its unit is offered to the buyer on the waitlist
	for i := 1; i <= 4; i++ {
		s.paid(made.Users[i].AccessToken, tasks[i])
	}
	for i := 1; i <= 2; i++ {
		orderID := "ord_" + strings.TrimPrefix(tasks[i], "tsk_")
		in := map[string]any{"orderId": orderID, "reason": "too heavy", "idempotencyKey": uuid.NewString()}
		if p := s.mutate(made.Users[i].AccessToken, "requestRefund", "order { status }", in); p.why() != "" {
			t.Fatalf("requestRefund: %s", p.why())
		}
	}
	asked, _ := s.refunds(ann, `first: 10, filter: {states: [REQUESTED]}`)
	for i, refund := range asked {
		in := map[string]any{"refundId": refund.ID, "approve": true, "restock": i == 0, "note": "fine"}
		if p := s.mutate(ann, "decideRefund", "order { status }", in); p.why() != "" {
			t.Fatalf("decideRefund: %s", p.why())
		}
	}
	testenv.Eventually(t, testenv.Wait, func() bool {
		found, _ := s.refunds(ann, `first: 10, filter: {states: [DONE]}`)
		watch.mu.Lock()
		defer watch.mu.Unlock()
		return len(found) == 2 && watch.live.RefundedValue.Amount == watch.worth(2) && watch.live.CancelledOrders == 1 &&
			watch.samples >= 10 && watch.offered > 0
	}, "the money goes back, and the live figures show it")
	stop()
	want := moneyFigures{Orders: stock, PaidOrders: 2, CancelledOrders: 1, RefundedOrders: 2}
	got := watch.live
	if got.Orders != want.Orders || got.PaidOrders != want.PaidOrders || got.CancelledOrders != want.CancelledOrders || got.RefundedOrders != want.RefundedOrders ||
		got.NetValue.Amount != watch.worth(2) || got.UnpaidUnits != 1 {
		t.Errorf("live figures at the end %+v", got)
	}
	if o := watch.report.Orders; o.Written != got.Orders || o.Paid != got.PaidOrders || o.Net != got.NetValue.Amount || o.RefundSum != got.RefundedValue.Amount {
		t.Errorf("report at the end %+v, live figures %+v", o, got)
	}
	counted, calls := watch.counted()
	if (counted != counts{orders: got.Orders, payments: got.PaidOrders + got.RefundedOrders, refunds: got.RefundedOrders}) || calls != got.Requests || calls != stock {
		t.Errorf("metrics at the end %+v and %d calls of placeOrder, live figures %+v", counted, calls, got)
	}
	s.audit(made.SaleID)
}
