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
	"seckill/internal/periodic"
	"seckill/internal/postgres"
)

const (
	// returnBatch bounds one transaction, and maxReturnBatches one step.
	returnBatch      = 500
	maxReturnBatches = 10
	// returnEvery is the pause between steps: units of an order that ended are on
	// sale again about this long after.
	returnEvery = 250 * time.Millisecond
)

// ReturnClaims gives back in Redis what ended orders hold there: units, and the
// mark that the user has bought. It acts only where the holder is that claim, so
// that doing it again changes nothing. It returns the items whose gates are being
// built: their claims have to wait.
type ReturnClaims func(ctx context.Context, claims []Claim) (building []uuid.UUID, err error)

// Returner finishes orders whose units came back: their rows say that Redis is
// still to be told. Any number of processes may run it at once.
type Returner struct {
	db   *postgres.DB
	give ReturnClaims
	log  *slog.Logger
}

// NewReturner returns a returner.
func NewReturner(db *postgres.DB, give ReturnClaims, log *slog.Logger) *Returner {
	return &Returner{db: db, give: give, log: log}
}

// Loop returns the returner as a loop.
func (r *Returner) Loop() periodic.Loop {
	return periodic.Loop{Name: "return units", Every: returnEvery, Timeout: 5 * time.Second, Step: r.Step, Log: r.log}
}

// Step gives back a batch of claims and then marks the rows. A crash between the
// two repeats the return, which does nothing the second time: an order that took
// units again did so under another name, and its row is marked for that name only.
// Claims that have to wait do not hold up those of other items behind them.
func (r *Returner) Step(ctx context.Context) (map[string]int, error) {
	counts := map[string]int{}
	var waiting []uuid.UUID // items
	for range maxReturnBatches {
		rows, err := r.db.Ent.Order.Query().Where(entorder.ReturnDue(true), entorder.ItemIDNotIn(waiting...)).
			Order(ent.Asc(entorder.FieldID)).Limit(returnBatch).All(ctx)
		if err != nil {
			return counts, fmt.Errorf("find units to return: %w", err)
		}
		if len(rows) == 0 {
			break
		}
		claims := make([]Claim, len(rows))
		for i, row := range rows {
			claims[i] = FromRow(row).Claim()
		}
		building, err := r.give(ctx, claims)
		if err != nil {
			return counts, fmt.Errorf("return units of %d orders: %w", len(claims), err)
		}
		if err := r.mark(ctx, claims, building, counts); err != nil {
			return counts, err
		}
		if len(building) == 0 {
			break
		}
		waiting = append(waiting, building...)
	}
	return counts, nil
}

// mark notes that claims were given back, but for those of some items.
func (r *Returner) mark(ctx context.Context, claims []Claim, building []uuid.UUID, counts map[string]int) error {
	var first, second []uuid.UUID // orders that held units for the first time, or again
	units := 0
	for _, c := range claims {
		switch {
		case slices.Contains(building, c.Item):
			continue
		case c.Name == c.Order:
			first = append(first, c.Order)
		default:
			second = append(second, c.Order)
		}
		units += c.Quantity
	}
	marked := 0
	err := r.db.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		var err error
		marked, err = tx.Order.Update().Where(entorder.ReturnDue(true), entorder.Or(
			entorder.And(entorder.IDIn(first...), entorder.ClaimIDIsNil()),
			entorder.And(entorder.IDIn(second...), entorder.ClaimIDNotNil()),
		)).SetReturnDue(false).Save(ctx)
		return err
	})
	if err != nil {
		return fmt.Errorf("mark units of %d orders as returned: %w", len(first)+len(second), err)
	}
	counts["orders"] += marked
	counts["units"] += units
	return nil
}
