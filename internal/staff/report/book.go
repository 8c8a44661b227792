package report

import (
	"context"
	"fmt"
	"sort"
	"time"

	"github.com/google/uuid"

	"seckill/ent"
	entorder "seckill/ent/order"
	"seckill/ent/orderfailure"
	"seckill/ent/saleitem"
	"seckill/ent/stockmovement"
	"seckill/internal/buy/order"
	"seckill/internal/buy/sale"
	"seckill/internal/platform/id"
	"seckill/internal/platform/money"
)

// page limits one read of rows.
const page = 5000

// book holds the rows of Postgres that a report needs, read in one snapshot.
type book struct {
	sale   *sale.Sale
	items  []*ent.SaleItem
	orders []entry
	moves  []movement
	best   map[id.User]standing      // of users with an order
	last   map[string]int            // users without an order, by why they have none
	units  map[entorder.Status]int   // units in orders of each status, without refunded ones in live orders
	count  map[entorder.Status]int   // orders of each status
	value  map[entorder.Status]int64 // of these units, in minor units
	back   int64                     // value of the refunded units in live orders, in minor units
	failed int                       // tasks that ended without an order
}

// entry is one order: when its units were taken, and when it was written.
type entry struct {
	reserved, written time.Time
	quantity          int
	paid              *time.Time
	net               int64 // value that came in and did not go back, in minor units
	item              id.Item
}

// movement is one line of the ledger except HOLD, for which the orders are more precise.
type movement struct {
	kind     order.Movement
	at       time.Time
	quantity int
	item     id.Item
}

// Kinds of ledger lines that are not caused by an order.
const (
	opened   order.Movement = "OPEN"
	adjusted order.Movement = "ADJUST"
)

func (src Source) readBook(ctx context.Context, v *sale.Sale) (*book, error) {
	b := &book{sale: v, units: map[entorder.Status]int{}, count: map[entorder.Status]int{},
		value: map[entorder.Status]int64{}, best: map[id.User]standing{}}
	err := src.DB.ReadSnapshot(ctx, func(ctx context.Context, tx *ent.Tx) error {
		var err error
		b.items, err = tx.SaleItem.Query().Where(saleitem.SaleID(v.ID)).Order(ent.Asc(saleitem.FieldPosition)).All(ctx)
		if err != nil {
			return fmt.Errorf("read items: %w", err)
		}
		if err := b.readOrders(ctx, tx); err != nil {
			return fmt.Errorf("read orders: %w", err)
		}
		if b.failed, err = tx.OrderFailure.Query().Where(orderfailure.SaleID(v.ID)).Count(ctx); err != nil {
			return fmt.Errorf("count failures: %w", err)
		}
		if err := b.readLast(ctx, tx, src.DB.Dialect); err != nil {
			return fmt.Errorf("count people: %w", err)
		}
		for _, item := range b.items {
			if err := b.readMoves(ctx, tx, item.ID); err != nil {
				return fmt.Errorf("read ledger: %w", err)
			}
		}
		return nil
	})
	return b, err
}

func (b *book) readOrders(ctx context.Context, tx *ent.Tx) error {
	for last := (id.Order{}); ; {
		rows, err := tx.Order.Query().Where(entorder.SaleID(b.sale.ID), entorder.IDGT(last)).
			Order(ent.Asc(entorder.FieldID)).Limit(page).Select(entorder.FieldID, entorder.FieldReservedAt,
			entorder.FieldCreatedAt, entorder.FieldQuantity, entorder.FieldRefundedQuantity, entorder.FieldUnitPriceMinor,
			entorder.FieldStatus, entorder.FieldUserID, entorder.FieldItemID, entorder.FieldPaidAt).All(ctx)
		if err != nil {
			return err
		}
		for _, row := range rows {
			b.best[row.UserID] = max(b.best[row.UserID], standingOf(row))
			units := row.Quantity
			if o := order.FromRow(row); o.Status.IsLive() {
				units = o.Left()
				b.back += o.RefundedMinor()
			}
			b.units[row.Status] += units
			b.count[row.Status]++
			b.value[row.Status] += int64(units) * row.UnitPriceMinor
			e := entry{reserved: row.ReservedAt, written: row.CreatedAt, quantity: row.Quantity, paid: row.PaidAt,
				item: row.ItemID}
			if row.Status == entorder.StatusPAID || row.Status == entorder.StatusREFUNDING {
				e.net = int64(units) * row.UnitPriceMinor
			}
			b.orders = append(b.orders, e)
			last = row.ID
		}
		if len(rows) < page {
			return nil
		}
	}
}

func (b *book) readMoves(ctx context.Context, tx *ent.Tx, item id.Item) error {
	for last := uuid.Nil; ; {
		rows, err := tx.StockMovement.Query().Where(stockmovement.ItemID(item), stockmovement.IDGT(last),
			stockmovement.KindNEQ(stockmovement.KindHOLD)).Order(ent.Asc(stockmovement.FieldID)).Limit(page).All(ctx)
		if err != nil {
			return err
		}
		for _, row := range rows {
			b.moves = append(b.moves, movement{order.Movement(row.Kind), row.CreatedAt, row.Quantity, item})
			last = row.ID
		}
		if len(rows) < page {
			return nil
		}
	}
}

// moved sums the ledger's lines of the given kinds.
func (b *book) moved(kinds ...order.Movement) (units int) {
	for _, m := range b.moves {
		for _, k := range kinds {
			if m.kind == k {
				units += m.quantity
			}
		}
	}
	return units
}

// taken returns all units ever taken by orders.
func (b *book) taken() (units int) {
	for _, o := range b.orders {
		units += o.quantity
	}
	return units + b.moved(order.Reacquire)
}

// change is a number of units released or taken at a time.
type change struct {
	at    time.Time
	units int // signed: the units left change by it
	took  bool
}

// changes returns all changes of the units left, in order of time.
func (b *book) changes() []change {
	list := make([]change, 0, len(b.orders)+len(b.moves))
	for _, o := range b.orders {
		list = append(list, change{o.reserved, -o.quantity, true})
	}
	for _, m := range b.moves {
		switch m.kind {
		case order.Release, order.Restock, adjusted:
			list = append(list, change{m.at, m.quantity, false})
		case order.Reacquire:
			list = append(list, change{m.at, -m.quantity, true})
		case opened, order.Sell, order.Hold, order.Withdraw, order.NoMovement:
		}
	}
	sort.SliceStable(list, func(i, j int) bool { return list[i].at.Before(list[j].at) })
	return list
}

// addOrders adds the orders and their money. Like the units they are those of the book: the
// live figures may be a second older.
func (r *Report) addOrders(b *book) {
	currency := ""
	for _, item := range b.items {
		currency = item.Currency
	}
	value := func(more int64, statuses ...entorder.Status) string {
		sum := money.Amount{Minor: more, Currency: currency}
		for _, status := range statuses {
			sum.Minor += b.value[status]
		}
		return sum.Decimal()
	}
	r.Orders = Orders{
		Buyers: len(b.best), Written: len(b.orders), Paid: b.count[entorder.StatusPAID],
		Unpaid:  b.count[entorder.StatusPENDING_PAYMENT],
		Expired: b.count[entorder.StatusEXPIRED], Cancelled: b.count[entorder.StatusCANCELLED],
		Refunded: b.count[entorder.StatusREFUNDING] + b.count[entorder.StatusREFUNDED], Failed: b.failed,
		GMV: value(0, entorder.StatusPAID), Net: value(0, entorder.StatusPAID, entorder.StatusREFUNDING),
		RefundSum: value(b.back, entorder.StatusREFUNDED), Currency: currency,
	}
}

func (r *Report) addItems(b *book) {
	names := map[id.Item]string{}
	for _, item := range b.sale.Items {
		if item.Goods != nil {
			names[item.ID] = item.Goods.Name
		}
	}
	net := map[id.Item]int64{}
	for _, o := range b.orders {
		net[o.item] += o.net
	}
	r.Items = make([]Item, len(b.items))
	for i, row := range b.items {
		r.Items[i] = Item{
			ID: row.ID.Public(), Goods: names[row.ID], Total: row.Total, Available: row.Available,
			Held: row.Held, Sold: row.Sold, SoldOutAt: row.SoldOutAt, Currency: row.Currency,
			Price: money.Amount{Minor: row.PriceMinor, Currency: row.Currency}.Decimal(),
			Net:   money.Amount{Minor: net[row.ID], Currency: row.Currency}.Decimal(),
		}
		r.Units.Total += row.Total
		r.Units.Remaining += row.Available
		r.Units.Held += row.Held
		r.Units.Sold += row.Sold
	}
	r.Units.Returned = b.moved(order.Release, order.Restock)
	r.Units.Expired = b.units[entorder.StatusEXPIRED]
	r.Units.Withdrawn = b.moved(order.Withdraw)
	r.Units.Resold = max(0, b.taken()-r.Units.Total-r.Units.Withdrawn)
}
