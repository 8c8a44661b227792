package reconcile

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/internal/reservation"
	"seckill/internal/stream"
	"seckill/internal/testenv"
)

func TestADeadLetterIsOverdueAfterSomeTime(t *testing.T) {
	t.Parallel()
	conn, prefix := testenv.Redis(t)
	keys := reservation.Keys{Prefix: prefix}
	letters := stream.NewDeadLetters(stream.DeadLettersConfig{
		Client: conn.Cmd, Key: keys.DeadLetters(), Log: slog.New(slog.DiscardHandler),
	})
	s := installation{Config{DeadLetters: letters}}
	now := time.Now()
	const old = letterPage + 3
	set := func(at time.Time, seq int) {
		t.Helper()
		err := conn.Cmd.XAdd(t.Context(), &redis.XAddArgs{
			Stream: keys.DeadLetters(), ID: fmt.Sprintf("%d-%d", at.UnixMilli(), seq), Values: []string{"stream", "s"},
		}).Err()
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range old {
		set(now.Add(-5*time.Minute), i)
	}
	set(now.Add(-time.Second), 0)
	for before, want := range map[time.Time]int{now.Add(-overdueAfter): old, now: old + 1, now.Add(-time.Hour): 0} {
		if n, err := s.lettersBefore(t.Context(), before); err != nil || n != want {
			t.Errorf("before %s: %d letters (%v), want %d", now.Sub(before), n, err, want)
		}
	}
}
