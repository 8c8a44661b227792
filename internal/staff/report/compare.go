package report

import (
	"context"
	"time"

	"seckill/internal/platform/id"
)

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
