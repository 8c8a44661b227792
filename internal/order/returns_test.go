package order_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"

	entorder "seckill/ent/order"
	"seckill/internal/id"
	"seckill/internal/order"
)

func TestAReturnIsMadeAgainUntilItIsNoted(t *testing.T) {
	onBoth(t, stock{units: 1, limit: 1}, func(t *testing.T, e *env) {
		o := e.move(e.write(e.writer(nil), e.request()).Order, order.Cancelled)
		var given []uuid.UUID
		away := true
		r := order.NewReturner(e.db, func(_ context.Context, claims []order.Claim) ([]uuid.UUID, error) {
			for _, c := range claims {
				given = append(given, c.Name)
			}
			if away {
				return nil, errors.New("redis is away")
			}
			return nil, nil
		}, slog.New(slog.DiscardHandler))
		if _, err := r.Step(t.Context()); err == nil {
			t.Error("a failing return is no error")
		}
		away = false
		for i, want := range []map[string]int{{"orders": 1, "units": 1}, nil} {
			got, err := r.Step(t.Context())
			if err != nil || got["orders"] != want["orders"] || got["units"] != want["units"] {
				t.Errorf("step %d: %v, %v, want %v", i, got, err, want)
			}
		}
		if len(given) != 2 || given[0] != o.ID || given[1] != o.ID {
			t.Errorf("given %v", given)
		}
	})
}

// A returner that is slow to note its return, while the order took its units
// again under another name, and ended again, must not note that one too.
func TestASlowReturnerDoesNotNoteAReturnThatItDidNotMake(t *testing.T) {
	onBoth(t, stock{units: 1, limit: 1}, func(t *testing.T, e *env) {
		o := e.move(e.write(e.writer(nil), e.request()).Order, order.Expired)
		quick := order.NewReturner(e.db, func(context.Context, []order.Claim) ([]uuid.UUID, error) { return nil, nil }, slog.New(slog.DiscardHandler))
		slow := order.NewReturner(e.db, func(ctx context.Context, claims []order.Claim) ([]uuid.UUID, error) {
			if _, err := quick.Step(ctx); err != nil {
				return nil, err
			}
			claim := id.New()
			paid, err := e.try(order.Move{Order: o, To: order.Paid, Claim: &claim, At: e.clock.Now(), Entry: entryOf(order.Paid)})
			if err != nil {
				return nil, err
			}
			e.move(e.move(paid, order.Refunding), order.Refunded)
			return nil, nil
		}, slog.New(slog.DiscardHandler))
		if _, err := slow.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := e.db.Ent.Order.Query().Where(entorder.ReturnDue(true)).CountX(t.Context()); n != 1 {
			t.Errorf("%d returns due: the second one is lost", n)
		}
	})
}

// However many claims wait, those of other items behind them are returned.
func TestReturnsToAGateThatIsBeingBuiltWaitAndHoldUpNobody(t *testing.T) {
	t.Parallel()
	const many = 501 // more than one batch
	e := setup(t, stock{units: many, limit: 1})
	e.deliver([]*order.Writer{e.writer(nil)}, e.requests(many))
	overdue, err := e.store().Overdue(t.Context(), e.clock.Now().Add(time.Hour), nil, many)
	e.must(err)
	_, err = order.Lapse(t.Context(), e.db, overdue, e.clock.Now())
	e.must(err)
	built := e.item
	e.item = e.addItem(e.sale, 1, 1)
	e.move(e.write(e.writer(nil), e.request()).Order, order.Cancelled)
	waits := true
	r := order.NewReturner(e.db, func(context.Context, []order.Claim) ([]uuid.UUID, error) {
		if waits {
			return []uuid.UUID{built}, nil
		}
		return nil, nil
	}, slog.New(slog.DiscardHandler))
	for i, want := range []int{1, 0, 500, 1} {
		waits = i < 2
		if counts, err := r.Step(t.Context()); err != nil || counts["orders"] != want || counts["units"] != want {
			t.Errorf("step %d: %v %v, want %d orders", i, counts, err, want)
		}
	}
}
