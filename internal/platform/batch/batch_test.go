package batch_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"seckill/internal/platform/batch"
)

var errNegative = errors.New("negative")

// blocked is a Batcher whose batches, one at a time and of at most three requests,
// block until release is closed. The result is ten times the request.
type blocked struct {
	*batch.Batcher[int, int]
	batches [][]int
	release chan struct{}
}

func newBlocked() *blocked {
	b := &blocked{release: make(chan struct{})}
	b.Batcher = batch.New(batch.Config[int, int]{
		MaxBatch: 3, MaxInFlight: 1, MaxWaiting: 4, Timeout: time.Minute,
		Process: func(_ context.Context, requests []int) []batch.Result[int] {
			b.batches = append(b.batches, slices.Clone(requests))
			<-b.release
			results := make([]batch.Result[int], len(requests))
			for i, q := range requests {
				results[i].Value = 10 * q
				if q < 0 {
					results[i].Err = errNegative
				}
			}
			return results
		},
	})
	return b
}

func TestRequestsThatArriveDuringABatchShareTheNext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBlocked()
		var wg sync.WaitGroup
		for _, q := range []int{1, 2, 3, -4, 5} {
			wg.Go(func() {
				response, err := b.Do(t.Context(), q)
				if q < 0 && !errors.Is(err, errNegative) || q > 0 && (response != 10*q || err != nil) {
					t.Errorf("response to %d is %d, %v", q, response, err)
				}
			})
			synctest.Wait()
		}
		close(b.release)
		wg.Wait()
		if want := [][]int{{1}, {2, 3, -4}, {5}}; !slices.EqualFunc(b.batches, want, slices.Equal) {
			t.Errorf("batches %v, want %v", b.batches, want)
		}
	})
}

func TestBatchesThatAreNotFullKeepTheirDistance(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const gather, quick = 5 * time.Millisecond, time.Millisecond
		began := time.Now()
		type start struct {
			after time.Duration
			size  int
		}
		var starts []start
		b := batch.New(batch.Config[int, int]{
			MaxBatch: 3, MaxInFlight: 1, MaxWaiting: 100, Timeout: time.Minute, Gather: gather,
			Process: func(_ context.Context, requests []int) []batch.Result[int] {
				starts = append(starts, start{time.Since(began), len(requests)})
				<-time.After(quick)
				return make([]batch.Result[int], len(requests))
			},
		})
		var wg sync.WaitGroup
		do := func(n int) {
			for range n {
				wg.Go(func() {
					if _, err := b.Do(t.Context(), 1); err != nil {
						t.Error(err)
					}
				})
			}
			synctest.Wait()
		}
		do(1)     // at once
		do(2)     // together, after gather
		wg.Wait() // at 6 ms
		<-time.After(2 * gather)
		do(1) // at once
		do(4) // three at once after the batch, one after gather
		wg.Wait()
		want := []start{{0, 1}, {gather, 2}, {16 * quick, 1}, {17 * quick, 3}, {22 * quick, 1}}
		if !slices.Equal(starts, want) {
			t.Errorf("batches began %v, want %v", starts, want)
		}
		do(1)
		do(1)
		if err := b.Close(t.Context()); err != nil { // waits for both
			t.Error(err)
		}
		wg.Wait()
	})
}

func TestAFullQueueRefusesAndCallersThatLeftAreNotProcessed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBlocked()
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for q := range 5 { // one in a batch and four queued
			wg.Go(func() {
				if _, err := b.Do(ctx, q); !errors.Is(err, context.Canceled) {
					t.Errorf("error %v after the caller left", err)
				}
			})
			synctest.Wait()
		}
		if _, err := b.Do(t.Context(), 6); !errors.Is(err, batch.ErrFull) {
			t.Errorf("error %v with a full queue, want %v", err, batch.ErrFull)
		}
		cancel()
		wg.Wait()
		close(b.release)
		synctest.Wait()
		if response, err := b.Do(t.Context(), 7); response != 70 || err != nil {
			t.Errorf("next request: %d %v", response, err)
		}
		if want := [][]int{{0}, {7}}; !slices.EqualFunc(b.batches, want, slices.Equal) {
			t.Errorf("batches %v, want %v", b.batches, want)
		}
	})
}

func TestBatchesAndQueueAreBoundedBySize(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var batches [][]int
		b := batch.New(batch.Config[int, int]{
			MaxBatch: 5, MaxInFlight: 1, MaxWaiting: 14, Timeout: time.Minute, Size: func(q int) int { return q },
			Process: func(_ context.Context, requests []int) []batch.Result[int] {
				batches = append(batches, slices.Clone(requests))
				<-release
				return make([]batch.Result[int], len(requests))
			},
		})
		var wg sync.WaitGroup
		for _, q := range []int{1, 2, 3, 1, 8} { // a request larger than a batch is one by itself
			wg.Go(func() {
				if _, err := b.Do(t.Context(), q); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		if _, err := b.Do(t.Context(), 1); !errors.Is(err, batch.ErrFull) {
			t.Errorf("with 14 waiting: %v", err)
		}
		close(release)
		wg.Wait()
		if want := [][]int{{1}, {2, 3}, {1}, {8}}; !slices.EqualFunc(batches, want, slices.Equal) {
			t.Errorf("batches %v, want %v", batches, want)
		}
	})
}

func TestCloseRefusesRequestsAndWaitsForTheEarlierOnes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBlocked()
		var wg sync.WaitGroup
		for q := range 3 {
			wg.Go(func() {
				if response, err := b.Do(t.Context(), q); response != 10*q || err != nil {
					t.Errorf("%d: %d %v", q, response, err)
				}
			})
			synctest.Wait()
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := b.Close(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("close while a batch is in flight: %v", err)
		}
		if _, err := b.Do(t.Context(), 9); !errors.Is(err, batch.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
		close(b.release)
		if err := b.Close(t.Context()); err != nil {
			t.Error(err)
		}
		wg.Wait()
		if want := [][]int{{0}, {1, 2}}; !slices.EqualFunc(b.batches, want, slices.Equal) {
			t.Errorf("batches %v, want %v", b.batches, want)
		}
		if err := newBlocked().Close(t.Context()); err != nil {
			t.Errorf("close an idle one: %v", err)
		}
	})
}

func TestAFailedBatchFailsItsRequestsAndNoOthers(t *testing.T) {
	t.Parallel()
	for name, process := range map[string]func(requests []int) []batch.Result[int]{
		"panic": func([]int) []batch.Result[int] { panic("odd") },
		"short": func(requests []int) []batch.Result[int] { return make([]batch.Result[int], len(requests)-1) },
		"error": func(requests []int) []batch.Result[int] { return batch.Fail[int](len(requests), errNegative) },
	} {
		good := false
		b := batch.New(batch.Config[int, int]{
			MaxBatch: 3, MaxInFlight: 2, MaxWaiting: 4, Timeout: time.Minute,
			Process: func(ctx context.Context, requests []int) []batch.Result[int] {
				if _, bounded := ctx.Deadline(); !bounded {
					t.Error("a batch without a deadline")
				}
				if good {
					return make([]batch.Result[int], len(requests))
				}
				return process(requests)
			},
		})
		if _, err := b.Do(t.Context(), 1); err == nil {
			t.Errorf("%s: no error", name)
		}
		good = true
		if _, err := b.Do(t.Context(), 1); err != nil {
			t.Errorf("%s: the next batch fails with %v", name, err)
		}
	}
}
