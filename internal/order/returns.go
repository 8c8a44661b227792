package order

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"

	"seckill/ent"
	entorder "seckill/ent/order"
	"seckill/ent/orderfailure"
	"seckill/internal/fault"
	"seckill/internal/periodic"
	"seckill/internal/postgres"
)

const (
	// returnBatch bounds one transaction, and maxReturnBatches one step.
	returnBatch      = 500
	maxReturnBatches = 10
	returnTimeout    = 5 * time.Second
	// orderReturnEvery is the pause between steps: units of an order that ended are
	// on sale again about this long after.
	orderReturnEvery = 250 * time.Millisecond
	// taskReturnEvery is the pause between steps: a buyer whose task failed may try
	// again about this long after.
	taskReturnEvery = 500 * time.Millisecond
)

// ReturnReservations returns reservations in Redis: their units go back to stock and
// their buyers may buy again. It acts only where the record belongs to the
// reservation, so that a repetition changes nothing. It returns the items whose
// reservations have to wait: their gates are being rebuilt, or cannot be reached. An
// error without items means that nothing was returned.
type ReturnReservations func(ctx context.Context, reservations []Reservation) (waiting []uuid.UUID, err error)

// OrderReturns returns the loop that gives back what ended orders hold in Redis:
// their rows say that it is still to be done. Any number of processes may run it at
// once.
func OrderReturns(db *postgres.DB, give ReturnReservations, log *slog.Logger) periodic.Loop {
	r := returner{db: db, give: give, what: "orders", due: ordersDue, mark: markOrders}
	return periodic.Loop{Name: "return units", Every: orderReturnEvery, Timeout: returnTimeout, Step: r.step, Log: log}
}

// TaskReturns returns the loop that does the same for failed tasks.
func TaskReturns(db *postgres.DB, give ReturnReservations, log *slog.Logger) periodic.Loop {
	r := returner{db: db, give: give, what: "tasks", due: tasksDue, mark: markTasks}
	return periodic.Loop{Name: "release failed tasks", Every: taskReturnEvery, Timeout: returnTimeout, Step: r.step, Log: log}
}

// returner gives back claims whose rows in one table say that they are due.
type returner struct {
	db   *postgres.DB
	give ReturnReservations
	what string // what the rows are: name of the count, and in errors
	// due finds a batch of claims, but for those of some items.
	due func(ctx context.Context, db *postgres.DB, but []uuid.UUID) ([]Reservation, error)
	// mark notes that claims were given back, and returns how many it noted.
	mark func(ctx context.Context, tx *ent.Tx, given []Reservation) (int, error)
}

// step returns batches of reservations and then marks their rows. A crash between the
// two repeats the return, which does nothing the second time. Reservations that have
// to wait delay no other item's.
func (r returner) step(ctx context.Context) (map[string]int, error) {
	counts := map[string]int{}
	var waiting []uuid.UUID // items
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

func ordersDue(ctx context.Context, db *postgres.DB, but []uuid.UUID) ([]Reservation, error) {
	rows, err := db.Ent.Order.Query().Where(entorder.ReturnDue(true), entorder.ItemIDNotIn(but...)).
		Order(ent.Asc(entorder.FieldID)).Limit(returnBatch).All(ctx)
	claims := make([]Reservation, len(rows))
	for i, row := range rows {
		claims[i] = FromRow(row).Reservation()
	}
	return claims, err
}

// markOrders marks rows for the names that were given back only: an order that took
// units again meanwhile did so under another name, and still has to return them.
func markOrders(ctx context.Context, tx *ent.Tx, given []Reservation) (int, error) {
	var first, second []uuid.UUID // orders that held units for the first time, or again
	for _, c := range given {
		if c.Name == c.Order {
			first = append(first, c.Order)
		} else {
			second = append(second, c.Order)
		}
	}
	return tx.Order.Update().Where(entorder.ReturnDue(true), entorder.Or(
		entorder.And(entorder.IDIn(first...), entorder.ClaimIDIsNil()),
		entorder.And(entorder.IDIn(second...), entorder.ClaimIDNotNil()),
	)).SetReturnDue(false).Save(ctx)
}

func tasksDue(ctx context.Context, db *postgres.DB, but []uuid.UUID) ([]Reservation, error) {
	rows, err := db.Ent.OrderFailure.Query().Where(orderfailure.Released(false), orderfailure.ItemIDNotIn(but...)).
		Order(ent.Asc(orderfailure.FieldID)).Limit(returnBatch).All(ctx)
	claims := make([]Reservation, len(rows))
	for i, row := range rows {
		claims[i] = Reservation{
			Name: row.ID, Order: row.ID, Sale: row.SaleID, Item: row.ItemID, User: row.UserID, Quantity: row.Quantity,
			Oversold: row.Code == string(fault.SoldOut),
		}
	}
	return claims, err
}

func markTasks(ctx context.Context, tx *ent.Tx, given []Reservation) (int, error) {
	ids := make([]uuid.UUID, len(given))
	for i, c := range given {
		ids[i] = c.Name
	}
	return tx.OrderFailure.Update().Where(orderfailure.IDIn(ids...), orderfailure.Released(false)).SetReleased(true).Save(ctx)
}
