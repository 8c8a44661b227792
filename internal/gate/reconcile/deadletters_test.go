package reconcile

import (
	"strconv"
	"testing"
	"time"

	"seckill/internal/platform/clock"
	"seckill/internal/platform/deadletter"
	"seckill/internal/platform/stream"
	"seckill/internal/testdb"
)

func TestADeadLetterIsOverdueAfterSomeTime(t *testing.T) {
	t.Parallel()
	now := time.Now()
	at := clock.NewFake(now.Add(-5 * time.Minute))
	letters := deadletter.NewStore(deadletter.Config{DB: testdb.Postgres(t), Clock: at})
	add := func(entry int) {
		t.Helper()
		if _, err := letters.Add(t.Context(), stream.Letter{Stream: "s", Entry: strconv.Itoa(entry)}); err != nil {
			t.Fatal(err)
		}
	}
	const old = 3
	for i := range old {
		add(i)
	}
	at.Advance(5*time.Minute - time.Second)
	add(old)
	for before, want := range map[time.Time]int{now.Add(-overdueAfter): old, now: old + 1, now.Add(-time.Hour): 0} {
		if n, err := letters.CountBefore(t.Context(), before); err != nil || n != want {
			t.Errorf("before %s: %d letters (%v), want %d", now.Sub(before), n, err, want)
		}
	}
}
