package order

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"

	"seckill/ent"
	entorder "seckill/ent/order"
	"seckill/ent/orderfailure"
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

// ReturnReservations gives claims back in Redis: units, and the mark that the user has
// bought. It acts only where the holder is that claim, so that doing it again changes
// nothing. It returns the items whose gates are being built: their claims have to wait.
type ReturnReservations func(ctx context.Context, claims []Reservation) (building []uuid.UUID, err error)

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

// step gives back batches of claims and then marks their rows. A crash between the
// two repeats the return, which does nothing the second time. Claims that have to
// wait do not hold up those of other items behind them.
func (r returner) step(ctx context.Context) (map[string]int, error) {
	counts := map[string]int{}
	var waiting []uuid.UUID // items
	for range maxReturnBatches {
		claims, err := r.due(ctx, r.db, waiting)
		if err != nil {
			return counts, fmt.Errorf("find %s to give back: %w", r.what, err)
		}
		if len(claims) == 0 {
			break
		}
		building, err := r.give(ctx, claims)
		if err != nil {
			return counts, fmt.Errorf("give back %d %s: %w", len(claims), r.what, err)
		}
		given := slices.DeleteFunc(claims, func(c Reservation) bool { return slices.Contains(building, c.Item) })
		marked := 0
		err = r.db.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) (err error) {
			marked, err = r.mark(ctx, tx, given)
			return err
		})
		if err != nil {
			return counts, fmt.Errorf("mark %d %s as given back: %w", len(given), r.what, err)
		}
		counts[r.what] += marked
		for _, c := range given {
			counts["units"] += c.Quantity
		}
		if len(building) == 0 {
			break
		}
		waiting = append(waiting, building...)
	}
	return counts, nil
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
