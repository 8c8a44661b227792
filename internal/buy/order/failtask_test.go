package order_test

import (
	"sync"
	"testing"

	"seckill/internal/buy/order"
	"seckill/internal/platform/fault"
)

func TestATaskThatFailedStaysFailedWhenItsMessageComes(t *testing.T) {
	onBoth(t, stock{units: 5, limit: 1}, func(t *testing.T, e *env) {
		w, s, r := e.writer(nil), e.store(), e.request()
		e.submit(r)
		for i := range 2 {
			out := w.FailTask(t.Context(), r, "message lost")
			if out.Err != nil || out.Task.Failure != fault.Conflict || out.Replayed != (i == 1) {
				t.Fatalf("fail task: %+v", out)
			}
		}
		if got := e.task(s, r.Task); got.Status != order.Failed {
			t.Errorf("task %+v", got)
		}
		if out := e.write(w, r); out.Order != nil || !out.Replayed {
			t.Errorf("the late message: %+v", out)
		}
		if e.orders() != 0 || e.failures() != 1 || e.figures().available != 5 {
			t.Errorf("%d orders, %d failures, %+v", e.orders(), e.failures(), e.figures())
		}
	})
}

func TestATaskThatBecameAnOrderCannotFail(t *testing.T) {
	onBoth(t, stock{units: 5, limit: 1}, func(t *testing.T, e *env) {
		w, r := e.writer(nil), e.request()
		e.write(w, r)
		out := w.FailTask(t.Context(), r, "message lost")
		if out.Err != nil || out.Order == nil || !out.Replayed {
			t.Errorf("fail task: %+v", out)
		}
		e.conserved()
	})
}

// The handling of a message races with FailTask for the same task: the task ends once.
func TestATaskEndsOnceWhenItIsWrittenAndFailedAtOnce(t *testing.T) {
	onBoth(t, stock{units: 100, limit: 1}, func(t *testing.T, e *env) {
		writers := []*order.Writer{e.writer(nil), e.writer(nil)}
		var made sync.Map // tasks; two deliveries may share a batch and its outcome
		var wg sync.WaitGroup
		for _, r := range e.requests(60) {
			for i := range 4 {
				wg.Go(func() {
					for range 10 {
						var out order.Result
						if i%2 == 0 {
							out = writers[0].Write(t.Context(), r)[0]
						} else {
							out = writers[1].FailTask(t.Context(), r, "lost")
						}
						if out.Err == nil {
							if !out.Replayed && out.Order != nil {
								made.Store(r.Task, true)
							}
							return
						}
					}
					t.Error("ten tries failed")
				})
			}
		}
		wg.Wait()
		e.conserved()
		fresh := 0
		made.Range(func(any, any) bool { fresh++; return true })
		if n := e.orders(); n != fresh || n+e.failures() != 60 || e.figures().held != n {
			t.Errorf("%d orders, %d made, %d failures, %+v", n, fresh, e.failures(), e.figures())
		}
	})
}
