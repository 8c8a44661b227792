package gather_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"seckill/internal/gather"
)

var errNegative = errors.New("negative")

// held is a desk for three questions a trip, one trip at a time, whose trips wait
// until they are let go. It answers tenfold.
type held struct {
	*gather.Desk[int, int]
	trips [][]int
	let   chan struct{}
}

func newHeld() *held {
	h := &held{let: make(chan struct{})}
	h.Desk = gather.New(gather.Config[int, int]{
		Most: 3, InFlight: 1, Waiting: 4, Timeout: time.Minute,
		Do: func(_ context.Context, questions []int) []gather.Result[int] {
			h.trips = append(h.trips, slices.Clone(questions))
			<-h.let
			results := make([]gather.Result[int], len(questions))
			for i, q := range questions {
				results[i].Value = 10 * q
				if q < 0 {
					results[i].Err = errNegative
				}
			}
			return results
		},
	})
	return h
}

func TestWhoAsksWhileOthersAreAnsweredGoesTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHeld()
		var wg sync.WaitGroup
		for _, q := range []int{1, 2, 3, -4, 5} {
			wg.Go(func() {
				answer, err := h.Ask(t.Context(), q)
				if q < 0 && !errors.Is(err, errNegative) || q > 0 && (answer != 10*q || err != nil) {
					t.Errorf("%d is answered with %d, %v", q, answer, err)
				}
			})
			synctest.Wait()
		}
		close(h.let)
		wg.Wait()
		if want := [][]int{{1}, {2, 3, -4}, {5}}; !slices.EqualFunc(h.trips, want, slices.Equal) {
			t.Errorf("trips %v, want %v", h.trips, want)
		}
	})
}

func TestTooManyAreToldAtOnceAndWhoLeavesHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHeld()
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for q := range 5 { // one on its way and four who wait
			wg.Go(func() {
				if _, err := h.Ask(ctx, q); !errors.Is(err, context.Canceled) {
					t.Errorf("who left is told %v", err)
				}
			})
			synctest.Wait()
		}
		if _, err := h.Ask(t.Context(), 6); !errors.Is(err, gather.ErrFull) {
			t.Errorf("one too many is told %v, want %v", err, gather.ErrFull)
		}
		cancel()
		wg.Wait()
		close(h.let)
		synctest.Wait()
		if answer, err := h.Ask(t.Context(), 7); answer != 70 || err != nil {
			t.Errorf("after them: %d %v", answer, err)
		}
	})
}

func TestATripThatFailsIsToldToAllAndEndsNothing(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(questions []int) []gather.Result[int]{
		"panic": func([]int) []gather.Result[int] { panic("odd") },
		"short": func(questions []int) []gather.Result[int] { return make([]gather.Result[int], len(questions)-1) },
		"error": func(questions []int) []gather.Result[int] { return gather.All[int](len(questions), errNegative) },
	} {
		good := false
		d := gather.New(gather.Config[int, int]{
			Most: 3, InFlight: 2, Waiting: 4, Timeout: time.Minute,
			Do: func(ctx context.Context, questions []int) []gather.Result[int] {
				if _, bounded := ctx.Deadline(); !bounded {
					t.Error("a trip without an end")
				}
				if good {
					return make([]gather.Result[int], len(questions))
				}
				return do(questions)
			},
		})
		if _, err := d.Ask(t.Context(), 1); err == nil {
			t.Errorf("%s: no error", name)
		}
		good = true
		if _, err := d.Ask(t.Context(), 1); err != nil {
			t.Errorf("%s: the next trip fails with %v", name, err)
		}
	}
}
