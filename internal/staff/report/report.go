// Package report builds the report of a sale, during or after the sale: its revenue over time,
// how fast each item sold, how many people were lost at which step and why, how long buyers
// waited, what the figures suggest for the next sale, operations of operators, and whether all
// figures add up. Calls, queues and faults are in it for engineers.
//
// It reads Postgres and the stored figures and changes nothing. The same report is
// available as JSON, as one self-contained HTML page, and as text for a terminal.
package report

import (
	"context"
	"errors"
	"fmt"
	"time"

	"seckill/internal/buy/refusal"
	"seckill/internal/buy/sale"
	"seckill/internal/buy/salestats"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
)

// ErrUnknownSale reports that no sale has the id.
var ErrUnknownSale = errors.New("no such sale")

// Source holds the dependencies of a report.
type Source struct {
	DB    *postgres.DB
	Sales *sale.Store
	Stats *salestats.Reader
	Clock clock.Clock
}

// Report is the report of a sale. Times are UTC; durations are milliseconds.
type Report struct {
	SaleID    string    `json:"saleId"`
	Title     string    `json:"title"`
	Slug      string    `json:"slug"`
	Status    string    `json:"status"`
	StartsAt  time.Time `json:"startsAt"`
	EndsAt    time.Time `json:"endsAt"`
	MadeAt    time.Time `json:"madeAt"`
	Final     bool      `json:"final"`    // the sale is settled: the report will not change
	Findings  []Finding `json:"findings"` // mismatches; empty if all figures add up
	Conserved bool      `json:"conserved"`

	People   People   `json:"people"`
	Requests Requests `json:"requests"`
	Orders   Orders   `json:"orders"`
	Units    Units    `json:"units"`
	Sale     Selling  `json:"selling"`
	Lag      Lag      `json:"queueLag"`
	Pay      Pay      `json:"timeToPay"`
	Items    []Item   `json:"items"`
	Curve    []Level  `json:"sellOutCurve"`
	Revenue  []Income `json:"revenueCurve"`
	Series   []Second `json:"series"`
	// StepSeconds is the length of an entry of Series.
	StepSeconds int64      `json:"stepSeconds"`
	LagCurve    []LagPoint `json:"queueLagCurve"`
	Acts        []Act      `json:"acts"`

	// Summary has the figures that sales are compared by; Earlier has those of another
	// sale, nil unless Compare was called.
	Summary Summary  `json:"summary"`
	Earlier *Summary `json:"earlier,omitempty"`

	names map[string]string // of users, orders, items and products in the acts, by public id
}

// Requests are the requests of buyers and their results.
type Requests struct {
	Total    int64                 `json:"total"`
	Accepted int64                 `json:"accepted"`
	Replayed int64                 `json:"replayed"`
	Faulted  int64                 `json:"faulted"`
	Refused  []salestats.Rejection `json:"refused"` // most frequent first
	P50Ms    float64               `json:"p50Ms"`   // latency of placeOrder
	P99Ms    float64               `json:"p99Ms"`
	// CountedSince is set when Redis lost the counts of earlier requests.
	CountedSince *time.Time `json:"countedSince,omitempty"`
	// Gate counts the calls of every stage, those before placeOrder included.
	Gate []salestats.Gate `json:"gate"`
}

// Orders are the numbers of orders by outcome.
type Orders struct {
	Buyers    int    `json:"buyers"` // users with an order
	Written   int    `json:"written"`
	Paid      int    `json:"paid"`
	Unpaid    int    `json:"unpaid"`
	Expired   int    `json:"lapsed"`
	Cancelled int    `json:"cancelled"`
	Refunded  int    `json:"refunded"`
	Failed    int    `json:"failed"` // tasks that ended without an order
	GMV       string `json:"gmv"`    // total of paid orders
	Net       string `json:"net"`    // total that came in and did not go back
	RefundSum string `json:"refundSum"`
	Currency  string `json:"currency"`
}

// Units are the numbers of units by outcome.
type Units struct {
	Total     int `json:"total"`
	Remaining int `json:"remaining"`
	Held      int `json:"held"`
	Sold      int `json:"sold"`
	Expired   int `json:"lapsed"`   // returned by orders that were not paid in time
	Returned  int `json:"returned"` // returned in total
	// Withdrawn units left the sale: their orders were refunded without returning them.
	Withdrawn int `json:"withdrawn"`
	// Resold is how many units were taken beyond the total: each of them was returned and
	// taken by another buyer.
	Resold int `json:"resold"`
}

// Selling is the speed of the sale, in milliseconds from the opening; -1 = not reached.
type Selling struct {
	FirstMs   int64 `json:"firstMs"`
	HalfMs    int64 `json:"halfMs"`
	NinetyMs  int64 `json:"ninetyMs"`
	SoldOutMs int64 `json:"soldOutMs"`
}

// Lag is the time between taking the unit and writing the order.
type Lag struct {
	P50Ms float64 `json:"p50Ms"`
	P99Ms float64 `json:"p99Ms"`
	MaxMs float64 `json:"maxMs"`
}

// Pay is the time between storing an order and its payment, of the orders that were paid.
type Pay struct {
	P50Ms float64 `json:"p50Ms"`
	P90Ms float64 `json:"p90Ms"`
	// WindowMs is how long buyers have to pay.
	WindowMs float64 `json:"windowMs"`
}

// Item is one product of the sale.
type Item struct {
	ID        string     `json:"id"`
	Goods     string     `json:"goods"`
	Price     string     `json:"price"`
	Currency  string     `json:"currency"`
	Total     int        `json:"total"`
	Available int        `json:"available"`
	Held      int        `json:"held"`
	Sold      int        `json:"sold"`
	SoldOutAt *time.Time `json:"soldOutAt"`
	Net       string     `json:"net"` // total that came in and did not go back
}

// Level is the number of units left at a time, in milliseconds from the opening.
type Level struct {
	Ms   int64 `json:"ms"`
	Left int   `json:"left"`
}

// Income is the value of all orders that were paid until a time and not refunded since, in
// minor units; the time is in milliseconds from the opening.
type Income struct {
	Ms    int64 `json:"ms"`
	Minor int64 `json:"minor"`
}

// Second holds the requests and written orders of one second, or of one step of several.
type Second struct {
	Ms       int64 `json:"ms"`
	Requests int   `json:"requests"`
	Accepted int   `json:"accepted"`
	Orders   int   `json:"orders"`
}

// LagPoint is the lag of orders whose units were taken at about the same time.
type LagPoint struct {
	Ms    int64   `json:"ms"`
	P50Ms float64 `json:"p50Ms"`
	P99Ms float64 `json:"p99Ms"`
}

// Act is one operation of an operator, or of the scheduler.
type Act struct {
	At     time.Time `json:"at"`
	Actor  string    `json:"actor"` // public id; "" = the scheduler
	Name   string    `json:"name"`  // display name
	Act    string    `json:"act"`
	From   string    `json:"from"`
	To     string    `json:"to"`
	Note   string    `json:"note"`
	Detail string    `json:"detail"` // JSON, or ""
}

// Build returns the report of a sale. The error is ErrUnknownSale, or reports what could
// not be read.
func (src Source) Build(ctx context.Context, saleID id.Sale) (*Report, error) {
	v, err := src.Sales.ByID(ctx, saleID)
	if err != nil {
		return nil, err
	}
	if v == nil {
		return nil, ErrUnknownSale
	}
	now := src.Clock.Now()
	r := &Report{
		SaleID: v.ID.Public(), Title: v.Title, Slug: v.Slug, Status: string(v.Status),
		StartsAt: v.StartsAt, EndsAt: v.EndsAt, MadeAt: now, Final: v.SettledAt != nil, Findings: []Finding{},
	}
	stats, err := src.Stats.Stats(ctx, saleID)
	if err != nil {
		return nil, err
	}
	r.addFigures(stats)
	r.Requests.CountedSince = stats.CountedLate(v.StartsAt)
	book, err := src.readBook(ctx, v)
	if err != nil {
		return nil, fmt.Errorf("report of sale %s: %w", saleID, err)
	}
	history, err := src.history(ctx, v, now)
	if err != nil {
		return nil, err
	}
	r.addOrders(book)
	r.addItems(book)
	r.addPeople(book, now.Sub(v.StartsAt) < refusal.Keep)
	r.addCurves(v, book, history)
	r.check(stats, book)
	r.Summary = r.summary()
	if err := src.addActs(ctx, r, v); err != nil {
		return nil, err
	}
	return r, nil
}

// history returns the counts by the second: stored, or still in Redis.
func (src Source) history(ctx context.Context, v *sale.Sale, now time.Time) (*salestats.Kept, error) {
	kept, err := src.Stats.History(ctx, v.ID, v.StartsAt.Add(-time.Minute), now)
	if kept != nil || err != nil {
		return kept, err
	}
	if kept, err = src.Stats.Kept(ctx, v.ID); kept == nil && err == nil {
		kept = &salestats.Kept{Step: 1}
	}
	return kept, err
}

func (r *Report) addFigures(s *salestats.Stats) {
	r.Requests = Requests{
		Total: s.Requests, Accepted: s.Accepted, Replayed: s.Replayed, Faulted: s.Faulted, Refused: s.Refused,
		P50Ms: ms(s.P50), P99Ms: ms(s.P99), Gate: s.Gate,
	}
	if r.Requests.Refused == nil {
		r.Requests.Refused = []salestats.Rejection{}
	}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// Summary holds the figures that sales are compared by. docs/operators.md defines them.
type Summary struct {
	SaleID      string    `json:"saleId"`
	Title       string    `json:"title"`
	StartsAt    time.Time `json:"startsAt"`
	Buyers      int       `json:"buyers"`      // users with an order
	Accepted    int64     `json:"accepted"`    // attempts that took units
	Paid        int       `json:"paid"`        // orders that are paid now
	Net         string    `json:"net"`         // total that came in and did not go back
	Currency    string    `json:"currency"`    //
	SellThrough float64   `json:"sellThrough"` // units sold of those on sale, 0 to 1
	SoldOutMs   int64     `json:"soldOutMs"`   // from the opening until the last unit was taken; -1 = never
}

func (r *Report) summary() Summary {
	return Summary{
		SaleID: r.SaleID, Title: r.Title, StartsAt: r.StartsAt, Buyers: r.Orders.Buyers, Accepted: r.Requests.Accepted,
		Paid: r.Orders.Paid,
		Net:  r.Orders.Net, Currency: r.Orders.Currency, SellThrough: sellThrough(r.Units.Sold, r.Units.Total),
		SoldOutMs: r.Sale.SoldOutMs,
	}
}

func sellThrough(sold, total int) float64 { return float64(sold) / float64(max(1, total)) }

// Compare adds the figures of another sale to a report. The error is ErrUnknownSale, or
// reports what could not be read.
func (src Source) Compare(ctx context.Context, r *Report, saleID id.Sale) error {
	earlier, err := src.Build(ctx, saleID)
	if err != nil {
		return err
	}
	r.Earlier = &earlier.Summary
	return nil
}

// comparison is one row of the comparison on the page.
type comparison struct{ Name, Now, Before string }

// compared returns the figures of both sales side by side; none without an earlier sale.
func (r *Report) compared(w words) []comparison {
	if r.Earlier == nil {
		return nil
	}
	a, b := r.Summary, *r.Earlier
	row := func(name text, of func(Summary) string) comparison { return comparison{w.say(name), of(a), of(b)} }
	return []comparison{
		row(text{"Opened", "开抢时间"}, func(s Summary) string { return w.at(s.StartsAt) }),
		row(text{"Buyers", "买家"}, func(s Summary) string { return grouped(int64(s.Buyers)) }),
		row(text{"Accepted attempts", "抢到次数"}, func(s Summary) string { return grouped(s.Accepted) }),
		row(text{"Paid orders", "已付款订单"}, func(s Summary) string { return grouped(int64(s.Paid)) }),
		row(text{"Net value", "净成交额"}, func(s Summary) string { return s.Net + " " + s.Currency }),
		row(text{"Sell-through", "售出率"}, func(s Summary) string { return w.share(s.SellThrough) }),
		row(text{"Time to sold out", "售罄用时"}, func(s Summary) string { return w.reached(s.SoldOutMs) }),
	}
}
