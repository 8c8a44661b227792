package order_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"seckill/ent"
	"seckill/internal/buy/order"
)

// refusedFacts are facts that cannot be written when an order moves.
type refusedFacts struct{ order.Facts }

var errFacts = errors.New("the outbox is full")

func (refusedFacts) Moved(context.Context, *ent.Tx, order.Status, ...*order.Order) error {
	return errFacts
}

// An order and what others are to learn of it are one commit.
func TestAnOrderDoesNotMoveWithoutItsFacts(t *testing.T) {
	onBoth(t, stock{units: 2, limit: 1}, func(t *testing.T, e *env) {
		facts := refusedFacts{e.webhooks()}
		o := e.write(e.writer(nil), e.request()).Order
		before := e.figures()
		if expired, err := order.Expire(t.Context(), e.db, facts, []*order.Order{o}, e.clock.Now()); !errors.Is(err, errFacts) {
			t.Errorf("expired %v, %v", expired, err)
		}
		if stored, err := e.store().Reload(t.Context(), o.ID); err != nil || stored.Status != order.PendingPayment {
			t.Errorf("the order is %+v, %v", stored, err)
		}
		w := e.writer(nil, func(cfg *order.WriterConfig) { cfg.Facts = facts })
		if result := w.Write(t.Context(), e.request())[0]; result.Err == nil {
			t.Errorf("written: %+v", result)
		}
		if after := e.figures(); after != before || e.orders() != 1 {
			t.Errorf("%+v, want %+v", after, before)
		}
	})
}

// I1 does not depend on the code that moves units.
func TestTheDatabaseRefusesStockThatDoesNotAddUp(t *testing.T) {
	onBoth(t, stock{units: 2, limit: 1}, func(t *testing.T, e *env) {
		for change, constraint := range map[string]string{
			"available = available + 1":                        "stock_conserved",
			"available = available - 3, total = total - 3":     "stock_not_negative",
			"held = -1, available = available + 1":             "stock_not_negative",
			"sold = sold - 1, available = available + 1":       "stock_not_negative",
			"total = total + 1, available = 0, held = 1":       "stock_conserved",
			"available = 0, held = 0, sold = 0, total = 0 - 1": "stock_conserved",
		} {
			err := e.db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) error {
				_, err := tx.ExecContext(ctx, "UPDATE sale_items SET "+change)
				return err
			})
			if err == nil || !strings.Contains(err.Error(), constraint) {
				t.Errorf("%s: %v, want %s", change, err, constraint)
			}
		}
	})
}
