package order_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"

	"github.com/google/uuid"

	"seckill/internal/fault"
	"seckill/internal/order"
)

func TestFailedTasksAreReleasedAndThenMarked(t *testing.T) {
	onBoth(t, stock{units: 5, limit: 1}, func(t *testing.T, e *env) {
		requests := e.requests(12)
		e.deliver([]*order.Writer{e.writer(nil)}, requests)
		if e.failures() != 7 {
			t.Fatalf("%d failures", e.failures())
		}
		down := true
		released := map[uuid.UUID]int{}
		r := order.NewFailureReleaser(e.db, func(_ context.Context, failures []order.Failure) ([]uuid.UUID, error) {
			for _, f := range failures {
				if f.Code != fault.SoldOut || f.Item != e.item || f.Sale != e.sale || f.Quantity != 1 {
					t.Errorf("failure %+v", f)
				}
				released[f.ID]++
			}
			if down {
				return nil, errors.New("redis is away")
			}
			return nil, nil
		}, slog.New(slog.DiscardHandler))
		if _, err := r.Step(t.Context()); err == nil {
			t.Error("a failing release is no error")
		}
		down = false
		if counts, err := r.Step(t.Context()); err != nil || counts["released"] != 7 {
			t.Errorf("second step %v, %v", counts, err)
		}
		if counts, err := r.Step(t.Context()); err != nil || len(counts) != 0 {
			t.Errorf("third step %v, %v", counts, err)
		}
		if len(released) != 7 {
			t.Errorf("%d released", len(released))
		}
		for task, n := range released {
			if n != 2 {
				t.Errorf("task %s was offered %d times, want 2", task, n)
			}
		}
	})
}

func TestReleasersOfManyProcessesMarkEachFailureOnce(t *testing.T) {
	t.Parallel()
	e := setup(t, stock{units: 1, limit: 1})
	e.deliver([]*order.Writer{e.writer(nil)}, e.requests(51))
	var mu sync.Mutex
	var wg sync.WaitGroup
	marked := 0
	for range 4 {
		r := order.NewFailureReleaser(e.db, func(context.Context, []order.Failure) ([]uuid.UUID, error) { return nil, nil }, slog.New(slog.DiscardHandler))
		wg.Go(func() {
			counts, err := r.Step(t.Context())
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			marked += counts["released"]
		})
	}
	wg.Wait()
	if marked != 50 {
		t.Errorf("%d marked", marked)
	}
}

// However many failed tasks wait, those of other items behind them are released.
func TestReleasesAtAGateThatIsBeingBuiltWaitAndHoldUpNobody(t *testing.T) {
	t.Parallel()
	const many = 201 // more than one batch
	e := setup(t, stock{units: 0, limit: 1})
	e.deliver([]*order.Writer{e.writer(nil)}, e.requests(many))
	built := e.item
	e.item = e.addItem(e.sale, 0, 1)
	e.deliver([]*order.Writer{e.writer(nil)}, e.requests(1))
	waits := true
	r := order.NewFailureReleaser(e.db, func(context.Context, []order.Failure) ([]uuid.UUID, error) {
		if waits {
			return []uuid.UUID{built}, nil
		}
		return nil, nil
	}, slog.New(slog.DiscardHandler))
	for i, want := range []int{1, 0, 200, 1} {
		waits = i < 2
		if counts, err := r.Step(t.Context()); err != nil || counts["released"] != want {
			t.Errorf("step %d: %v %v, want %d tasks", i, counts, err, want)
		}
	}
}
