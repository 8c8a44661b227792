package salestats

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"seckill/ent"
	entorder "seckill/ent/order"
	"seckill/ent/orderfailure"
	entsale "seckill/ent/sale"
	"seckill/ent/saleitem"
	"seckill/ent/waitlistentry"
	"seckill/internal/buy/order"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/id"
	"seckill/internal/platform/money"
)

// commitLag is how many seconds after its time an order's row may still appear: longer
// than a batch of the writer can take with all retries.
const commitLag = 20

// record is one reading of a sale in Postgres.
type record struct {
	currency string
	items    []*ent.SaleItem
	orders   map[order.Status]tally
	failed   int
	// withdrawing bounds the units that a refund took off the sale and the gate may still
	// have.
	withdrawing int
	offered     int                         // units of open offers of the waitlist
	waitlists   map[id.Item]waitlistFigures // by item
}

// waitlistFigures are the buyers who wait for an item, and the units of its open offers.
type waitlistFigures struct{ waiting, offered int }

// tally is the number and value of the orders in one status.
type tally struct {
	count    int
	minor    int64 // total value in minor units
	refunded int64 // value of the refunded units in it
}

// total returns the units of all items.
func (rec *record) total() (n int) {
	for _, item := range rec.items {
		n += item.Total
	}
	return n
}

// record reads a sale from Postgres; nil if there is none.
func (r *Reader) record(ctx context.Context, sale id.Sale) (*record, error) {
	rec := &record{}
	there := false
	err := r.cfg.DB.ReadSnapshot(ctx, func(ctx context.Context, tx *ent.Tx) error {
		var err error
		if there, err = tx.Sale.Query().Where(entsale.ID(sale)).Exist(ctx); err != nil || !there {
			return err
		}
		if rec.items, err = tx.SaleItem.Query().Where(saleitem.SaleID(sale)).Order(ent.Asc(saleitem.FieldPosition)).
			All(ctx); err != nil {
			return err
		}
		if rec.failed, err = tx.OrderFailure.Query().Where(orderfailure.SaleID(sale)).Count(ctx); err != nil {
			return err
		}
		if err := rec.readWaitlists(ctx, tx); err != nil {
			return err
		}
		return rec.tally(ctx, tx, sale)
	})
	if err != nil {
		return nil, fmt.Errorf("read record: %w", err)
	}
	if !there {
		return nil, nil
	}
	for _, item := range rec.items {
		rec.currency = item.Currency
	}
	return rec, nil
}

func (rec *record) readWaitlists(ctx context.Context, tx *ent.Tx) error {
	rec.waitlists = map[id.Item]waitlistFigures{}
	items := collect.Map(rec.items, func(item *ent.SaleItem) id.Item { return item.ID })
	var rows []struct {
		ItemID id.Item `json:"item_id"`
		Status string  `json:"status"`
		Count  int     `json:"count"`
		Units  int     `json:"units"`
	}
	err := tx.WaitlistEntry.Query().
		Where(waitlistentry.ItemIDIn(items...), waitlistentry.StatusIn(waitlistentry.StatusWAITING,
			waitlistentry.StatusOFFERED)).
		GroupBy(waitlistentry.FieldItemID, waitlistentry.FieldStatus).
		Aggregate(ent.As(ent.Count(), "count"), ent.As(ent.Sum(waitlistentry.FieldQuantity), "units")).Scan(ctx, &rows)
	for _, row := range rows {
		l := rec.waitlists[row.ItemID]
		if row.Status == string(waitlistentry.StatusWAITING) {
			l.waiting = row.Count
		} else {
			l.offered = row.Units
			rec.offered += row.Units
		}
		rec.waitlists[row.ItemID] = l
	}
	return err
}

// tallies counts orders by status.
func tallies(ctx context.Context, of *ent.OrderQuery) (map[order.Status]tally, error) {
	var rows []struct {
		Status   string        `json:"status"`
		Count    int           `json:"count"`
		Minor    sql.NullInt64 `json:"minor"`
		Refunded sql.NullInt64 `json:"refunded"`
	}
	err := of.Modify(func(s *entsql.Selector) {
		s.Select(s.C(entorder.FieldStatus), entsql.As(entsql.Count("*"), "count"),
			entsql.As("CAST(SUM(quantity * unit_price_minor) AS BIGINT)", "minor"),
			entsql.As("CAST(SUM(refunded_quantity * unit_price_minor) AS BIGINT)", "refunded")).
			GroupBy(s.C(entorder.FieldStatus))
	}).Scan(ctx, &rows)
	counts := map[order.Status]tally{}
	for _, row := range rows {
		counts[order.Status(row.Status)] = tally{row.Count, row.Minor.Int64, row.Refunded.Int64}
	}
	return counts, err
}

// net returns the value of paid orders, and of those whose refund is not done, without
// refunded units.
func net(orders map[order.Status]tally) int64 {
	paid, refunding := orders[order.Paid], orders[order.Refunding]
	return paid.minor - paid.refunded + refunding.minor - refunding.refunded
}

// Totals returns the number of orders that were placed in a sale since a time, and the
// value of those that are paid, without refunded units.
func (r *Reader) Totals(
	ctx context.Context, sale id.Sale, currency string, since time.Time,
) (int, money.Amount, error) {
	placed := r.cfg.DB.Ent.Order.Query().Where(entorder.SaleID(sale), entorder.CreatedAtGTE(since.UTC()))
	orders, err := tallies(ctx, placed)
	if err != nil {
		return 0, money.Amount{}, fmt.Errorf("order totals of sale %s: %w", sale, err)
	}
	n := 0
	for _, t := range orders {
		n += t.count
	}
	return n, money.Amount{Minor: net(orders), Currency: currency}, nil
}

func (rec *record) tally(ctx context.Context, tx *ent.Tx, sale id.Sale) error {
	var err error
	if rec.orders, err = tallies(ctx, tx.Order.Query().Where(entorder.SaleID(sale))); err != nil {
		return err
	}
	withdrawing, err := tx.Order.Query().Where(entorder.SaleID(sale), entorder.ReturnDue(true)).
		Select(entorder.FieldStatus, entorder.FieldQuantity, entorder.FieldRefundedQuantity).All(ctx)
	if err != nil {
		return err
	}
	for _, row := range withdrawing {
		rec.withdrawing += order.FromRow(row).RefundedUnits()
	}
	return nil
}

func (rec *record) into(s *Stats) {
	count := func(st ...order.Status) (n int) {
		for _, status := range st {
			n += rec.orders[status].count
		}
		return n
	}
	s.Orders = count(order.Statuses()...)
	s.Unpaid, s.Paid, s.Expired = count(order.PendingPayment), count(order.Paid), count(order.Expired)
	s.Cancelled, s.Refunded = count(order.Cancelled), count(order.Refunding, order.Refunded)
	s.Failed = rec.failed
	s.GMV = money0(rec.currency)
	paid, refunding := rec.orders[order.Paid], rec.orders[order.Refunding]
	s.GMV.Minor = paid.minor - paid.refunded
	s.Net, s.RefundSum = s.GMV, money0(rec.currency)
	s.Net.Minor = net(rec.orders)
	s.RefundSum.Minor = rec.orders[order.Refunded].minor + paid.refunded + refunding.refunded
	s.Units.Conserved = true
	for _, item := range rec.items {
		s.Units.Total += item.Total
		s.Units.Remaining += item.Available
		s.Units.Held += item.Held
		s.Units.Sold += item.Sold
		l := rec.waitlists[item.ID]
		s.Waiting += l.waiting
		s.Items = append(s.Items, ItemFigures{item.ID, item.Total, item.Held, item.Sold, l.offered, l.waiting})
		s.Units.Conserved = s.Units.Conserved && item.Available+item.Held+item.Sold == item.Total
	}
}

// ordersBySecond updates the cached orders by second: only seconds that may still change
// are read again.
func (r *Reader) ordersBySecond(ctx context.Context, sale id.Sale, now time.Time, k *known) error {
	oldest := now.Unix() - recentParts*recentPart
	from := max(oldest, k.settled+1)
	read, err := r.countOrders(ctx, sale, from)
	if err != nil {
		return fmt.Errorf("orders by second: %w", err)
	}
	orders := make(map[int64]int, len(k.orders)+len(read))
	for at, n := range k.orders {
		if at >= oldest && at < from {
			orders[at] = n
		}
	}
	for at, n := range read {
		orders[at] = n
	}
	k.orders, k.settled = orders, now.Unix()-commitLag
	return nil
}

// countOrders counts the orders of each second since from.
func (r *Reader) countOrders(ctx context.Context, sale id.Sale, from int64) (map[int64]int, error) {
	query := r.cfg.DB.Ent.Order.Query().Where(entorder.SaleID(sale), entorder.CreatedAtGTE(time.Unix(from, 0).UTC()))
	counts := map[int64]int{}
	if r.cfg.DB.Dialect != dialect.Postgres { // the demo: few orders, and no arithmetic on times in SQLite
		rows, err := query.Select(entorder.FieldCreatedAt).All(ctx)
		for _, row := range rows {
			counts[row.CreatedAt.Unix()]++
		}
		return counts, err
	}
	var rows []struct {
		At    int64 `json:"at"`
		Count int   `json:"count"`
	}
	err := query.Modify(func(s *entsql.Selector) {
		second := "CAST(floor(extract(epoch FROM " + s.C(entorder.FieldCreatedAt) + ")) AS BIGINT)"
		s.Select(entsql.As(second, "at"), entsql.As(entsql.Count("*"), "count")).GroupBy(second)
	}).Scan(ctx, &rows)
	for _, row := range rows {
		counts[row.At] = row.Count
	}
	return counts, err
}
