package order

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"seckill/ent"
	entorder "seckill/ent/order"
	"seckill/ent/orderevent"
	"seckill/ent/orderfailure"
	"seckill/ent/predicate"
	"seckill/ent/stockmovement"
	"seckill/ent/waitlistentry"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/periodic"
	"seckill/internal/platform/postgres"
)

const (
	// returnBatch bounds one transaction, and maxReturnBatches one step.
	returnBatch      = 500
	maxReturnBatches = 10
	returnTimeout    = 5 * time.Second
	// orderReturnEvery is the pause between steps: units of an ended order are
	// available again after about this time.
	orderReturnEvery = 250 * time.Millisecond
	// CancelGrace is the time in which a buyer may cancel an order without a count.
	CancelGrace = time.Minute
	// freeCancels is the number of cancellations in a sale that are not counted within
	// CancelGrace.
	freeCancels = 2
	// taskReturnEvery is the pause between steps: a buyer whose task failed may try
	// again after about this time.
	taskReturnEvery = 500 * time.Millisecond
	// idleReturn is the longest pause while nothing is returned.
	idleReturn = time.Second
)

// ReturnReservations returns reservations in Redis: their units go back to stock and
// their buyers may buy again. It changes a record only when the record belongs to the
// reservation, so repeating it has no effect. It returns the items whose reservations
// must wait because their gates are being rebuilt or cannot be reached. An error
// without items means that nothing was returned.
type ReturnReservations func(ctx context.Context, reservations []Reservation) (waiting []id.Item, err error)

// OrderReturns returns the loop that returns the reservations of ended orders in Redis;
// their rows mark what is due by a clock. Any number of processes may run it at the same time.
func OrderReturns(db *postgres.DB, give ReturnReservations, c clock.Clock, log *slog.Logger) periodic.Loop {
	due := func(ctx context.Context, db *postgres.DB, but []id.Item) ([]Reservation, error) {
		return ordersDue(ctx, db, c.Now(), but)
	}
	r := returner{db: db, give: give, what: "orders", due: due, mark: markOrders}
	return periodic.Loop{Name: "return units", Every: orderReturnEvery, Idle: idleReturn, Timeout: returnTimeout,
		HasWork: db.AnyRows(func() *sql.Selector {
			return postgres.First(postgres.Rows(entorder.Table, entorder.ReturnDue(true)), entorder.FieldID)
		}),
		Step: r.step, Log: log}
}

// TaskReturns returns the same loop for failed tasks.
func TaskReturns(db *postgres.DB, give ReturnReservations, log *slog.Logger) periodic.Loop {
	r := returner{db: db, give: give, what: "tasks", due: tasksDue, mark: markTasks}
	return periodic.Loop{Name: "release failed tasks", Every: taskReturnEvery, Idle: idleReturn, Timeout: returnTimeout,
		HasWork: db.AnyRows(func() *sql.Selector {
			return postgres.First(postgres.Rows(orderfailure.Table, orderfailure.Released(false)), orderfailure.FieldID)
		}),
		Step: r.step, Log: log}
}

// returner returns the reservations that the rows of one table mark as due.
type returner struct {
	db   *postgres.DB
	give ReturnReservations
	what string // name of the rows in counts and errors
	// due returns a batch of due reservations, without those of the items in but.
	due func(ctx context.Context, db *postgres.DB, but []id.Item) ([]Reservation, error)
	// mark marks reservations as returned, and reports how many rows it marked.
	mark func(ctx context.Context, tx *ent.Tx, given []Reservation) (int, error)
}

// step returns batches of reservations and then marks their rows. After a crash between
// the two, the return is repeated, which has no effect. Reservations that must wait do
// not delay those of other items.
func (r returner) step(ctx context.Context) (map[string]int, error) {
	counts := map[string]int{}
	var waiting []id.Item // items
	var failed []error
	for range maxReturnBatches {
		due, err := r.due(ctx, r.db, waiting)
		if err != nil {
			return counts, errors.Join(append(failed, fmt.Errorf("find %s to return: %w", r.what, err))...)
		}
		if len(due) == 0 {
			break
		}
		wait, err := r.give(ctx, due)
		if err != nil {
			failed = append(failed, fmt.Errorf("return %d %s: %w", len(due), r.what, err))
			if len(wait) == 0 {
				break
			}
		}
		returned := slices.DeleteFunc(due, func(c Reservation) bool { return slices.Contains(wait, c.Item) })
		if err := r.markReturned(ctx, returned, counts); err != nil {
			failed = append(failed, err)
			break
		}
		if len(wait) == 0 {
			break
		}
		waiting = append(waiting, wait...)
	}
	return counts, errors.Join(failed...)
}

func (r returner) markReturned(ctx context.Context, returned []Reservation, counts map[string]int) error {
	marked := 0
	err := r.db.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) (err error) {
		marked, err = r.mark(ctx, tx, returned)
		return err
	})
	if err != nil {
		return fmt.Errorf("mark %d %s as returned: %w", len(returned), r.what, err)
	}
	counts[r.what] += marked
	for _, c := range returned {
		counts["units"] += c.Quantity
	}
	return nil
}

// mayReturn selects orders whose moment of return has come, or for whose item buyers wait: the
// units are for the waitlist, and no other buyer can take them.
func mayReturn(now time.Time) predicate.Order {
	return entorder.Or(entorder.ReturnAtIsNil(), entorder.ReturnAtLTE(now), func(s *sql.Selector) {
		line := sql.Dialect(s.Dialect()).Table(waitlistentry.Table)
		s.Where(sql.In(s.C(entorder.FieldItemID), sql.Dialect(s.Dialect()).Select(line.C(waitlistentry.FieldItemID)).
			From(line).
			Where(sql.EQ(line.C(waitlistentry.FieldStatus), waitlistentry.StatusWAITING))))
	})
}

func ordersDue(ctx context.Context, db *postgres.DB, now time.Time, but []id.Item) ([]Reservation, error) {
	rows, err := db.Ent.Order.Query().Where(entorder.ReturnDue(true), entorder.ItemIDNotIn(but...), mayReturn(now)).
		Order(ent.Asc(entorder.FieldID)).Limit(returnBatch).All(ctx)
	reservations := make([]Reservation, len(rows))
	refunded := map[uuid.UUID]int{} // ledger key → index of its reservation
	var ended []*ent.Order          // which may count against their buyers
	for i, row := range rows {
		reservations[i] = FromRow(row).Reservation()
		switch row.Status {
		case entorder.StatusPAID, entorder.StatusREFUNDING, entorder.StatusREFUNDED:
			key := row.ID.UUID()
			if row.ReturnKey != nil {
				key, reservations[i].Refund = row.ReturnKey.UUID(), *row.ReturnKey
			}
			if row.Status != entorder.StatusREFUNDED {
				reservations[i].Keep = reservations[i].Quantity
			}
			refunded[key] = i
		case entorder.StatusCANCELLED, entorder.StatusEXPIRED:
			ended = append(ended, row)
		default:
		}
	}
	if err == nil && len(ended) > 0 {
		err = countExpiries(ctx, db, ended, reservations)
	}
	if err != nil || len(refunded) == 0 {
		return reservations, err
	}
	lines, err := db.Ent.StockMovement.Query().Where(
		stockmovement.OrderIDIn(slices.Collect(maps.Keys(refunded))...), stockmovement.KindIn(stockmovement.KindRESTOCK,
			stockmovement.KindWITHDRAW),
	).All(ctx)
	if err != nil {
		return nil, err
	}
	for _, line := range lines {
		r := &reservations[refunded[line.OrderID]]
		r.Quantity, r.Withdrawn = line.Quantity, line.Kind == stockmovement.KindWITHDRAW
	}
	return reservations, nil
}

// countExpiries marks the reservations of orders that their buyers cancelled late, or
// after other cancellations of the same account or person in the sale, as expired: they withheld units from others.
// Orders that an operator expired do not count: their buyers are not to blame.
func countExpiries(ctx context.Context, db *postgres.DB, ended []*ent.Order, reservations []Reservation) error {
	ids, users := make([]id.Order, len(ended)), make([]id.User, len(ended))
	var sales []id.Sale // those with person keys
	for i, row := range ended {
		ids[i], users[i] = row.ID, row.UserID
		if row.PersonKeys != nil && !slices.Contains(sales, row.SaleID) {
			sales = append(sales, row.SaleID)
		}
	}
	events, err := db.Ent.OrderEvent.Query().Where(orderevent.OrderIDIn(ids...), orderevent.Or(
		orderevent.And(orderevent.CodeEQ(orderevent.CodeCANCELLED), orderevent.ActorEQ(orderevent.ActorBUYER)),
		orderevent.And(orderevent.CodeEQ(orderevent.CodeLAPSED), orderevent.ActorEQ(orderevent.ActorOPERATOR)),
	)).All(ctx)
	if err != nil || len(events) == 0 {
		return err
	}
	var sums []struct {
		UserID id.User `json:"user_id"`
		SaleID id.Sale `json:"sale_id"`
		Count  int     `json:"count"`
	}
	err = db.Ent.Order.Query().Where(entorder.UserIDIn(users...), entorder.StatusEQ(entorder.StatusCANCELLED)).
		GroupBy(entorder.FieldUserID, entorder.FieldSaleID).Aggregate(ent.Count()).Scan(ctx, &sums)
	if err != nil {
		return err
	}
	type buyer struct {
		subject string // an account or a person key
		sale    id.Sale
	}
	cancelled := map[buyer]int{}
	for _, sum := range sums {
		cancelled[buyer{sum.UserID.String(), sum.SaleID}] = sum.Count
	}
	var shared []struct {
		PersonKeys string  `json:"person_keys"`
		SaleID     id.Sale `json:"sale_id"`
		Count      int     `json:"count"`
	}
	err = db.Ent.Order.Query().Where(entorder.SaleIDIn(sales...), entorder.StatusEQ(entorder.StatusCANCELLED),
		entorder.PersonKeysNotNil()).
		GroupBy(entorder.FieldPersonKeys, entorder.FieldSaleID).Aggregate(ent.Count()).Scan(ctx, &shared)
	if err != nil {
		return err
	}
	for _, sum := range shared {
		for key := range strings.SplitSeq(sum.PersonKeys, ",") {
			cancelled[buyer{key, sum.SaleID}] += sum.Count
		}
	}
	often := func(o *Order) bool {
		subjects := []string{o.User.String(), string(o.Persons.Contact), string(o.Persons.Address)}
		return slices.ContainsFunc(subjects, func(s string) bool { return cancelled[buyer{s, o.Sale}] > freeCancels })
	}
	for _, e := range events {
		row := ended[slices.Index(ids, e.OrderID)]
		i := slices.IndexFunc(reservations, func(r Reservation) bool { return r.Order == e.OrderID })
		reservations[i].Expired = e.Code == orderevent.CodeCANCELLED &&
			(e.CreatedAt.Sub(row.CreatedAt) > CancelGrace || often(FromRow(row)))
	}
	return nil
}

// Expiries are what a person withheld from others in a sale.
type Expiries struct {
	Count int
	Last  time.Time
}

// expiriesPage bounds the orders in one statement of ExpiriesOf.
const expiriesPage = 2000

// ExpiriesOf returns the orders of a sale that expired, or were cancelled late, after a time, by
// user id and by person key, as the gate counts them.
func ExpiriesOf(ctx context.Context, db *postgres.DB, saleID id.Sale, since time.Time) (map[string]Expiries, error) {
	found := map[string]Expiries{}
	for after := (id.Order{}); ; {
		rows, err := db.Ent.Order.Query().Where(
			entorder.SaleID(saleID), entorder.IDGT(after), entorder.StatusIn(entorder.StatusEXPIRED, entorder.StatusCANCELLED),
			func(s *sql.Selector) { s.Where(sql.GT(s.C(entorder.FieldUpdatedAt), since)) },
		).Order(ent.Asc(entorder.FieldID)).Limit(expiriesPage).All(ctx)
		if err != nil || len(rows) == 0 {
			return found, err
		}
		reservations := collect.Map(rows, func(row *ent.Order) Reservation { return FromRow(row).Reservation() })
		if err := countExpiries(ctx, db, rows, reservations); err != nil {
			return nil, err
		}
		for i, r := range reservations {
			if !r.Expired {
				continue
			}
			for _, subject := range append([]string{r.User.String()}, r.Persons.Persons()...) {
				e := found[subject]
				if e.Count++; rows[i].UpdatedAt.After(e.Last) {
					e.Last = rows[i].UpdatedAt
				}
				found[subject] = e
			}
		}
		after = rows[len(rows)-1].ID
	}
}

// markOrders marks only rows with the returned reservation name and partial refund. An
// order that has since reacquired units did so under another name, and one that has since
// been refunded again has another key: it still has to return those units.
func markOrders(ctx context.Context, tx *ent.Tx, given []Reservation) (int, error) {
	var (
		first, second, parts []id.Order
		refunds              []id.Refund
	) // orders with their original reservation, with a reacquired one, or refunded in part
	for _, c := range given {
		switch {
		case !c.Refund.IsZero():
			parts, refunds = append(parts, c.Order), append(refunds, c.Refund)
		case c.Name == id.Task(c.Order):
			first = append(first, c.Order)
		default:
			second = append(second, c.Order)
		}
	}
	return tx.Order.Update().Where(entorder.ReturnDue(true), entorder.Or(
		entorder.And(entorder.IDIn(first...), entorder.ClaimIDIsNil(), entorder.ReturnKeyIsNil()),
		entorder.And(entorder.IDIn(second...), entorder.ClaimIDNotNil(), entorder.ReturnKeyIsNil()),
		entorder.And(entorder.IDIn(parts...), entorder.ReturnKeyIn(refunds...)),
	)).SetReturnDue(false).Save(ctx)
}

func tasksDue(ctx context.Context, db *postgres.DB, but []id.Item) ([]Reservation, error) {
	rows, err := db.Ent.OrderFailure.Query().Where(orderfailure.Released(false), orderfailure.ItemIDNotIn(but...)).
		Order(ent.Asc(orderfailure.FieldID)).Limit(returnBatch).All(ctx)
	reservations := collect.Map(rows, func(row *ent.OrderFailure) Reservation {
		return Reservation{
			Name: row.ID, Order: id.Order(row.ID), Sale: row.SaleID, Item: row.ItemID, User: row.UserID, Quantity: row.Quantity,
			Oversold: row.Code == string(fault.SoldOut),
		}
	})
	return reservations, err
}

func markTasks(ctx context.Context, tx *ent.Tx, given []Reservation) (int, error) {
	ids := collect.Map(given, func(c Reservation) id.Task { return c.Name })
	return tx.OrderFailure.Update().Where(orderfailure.IDIn(ids...), orderfailure.Released(false)).SetReleased(true).
		Save(ctx)
}
