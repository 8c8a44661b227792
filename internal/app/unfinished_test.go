package app

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

func TestALetterIsUnfinishedOnceAPersonHadTheTimeToDecide(t *testing.T) {
	t.Parallel()
	conn, prefix := testenv.Redis(t)
	a := &App{keys: reservation.Keys{Prefix: prefix}}
	a.deadLetters = stream.NewDeadLetters(stream.DeadLettersConfig{
		Client: conn.Cmd, Key: a.keys.DeadLetters(), Log: slog.New(slog.DiscardHandler),
	})
	now := time.Now()
	const old = letterPage + 3
	set := func(at time.Time, seq int) {
		t.Helper()
		err := conn.Cmd.XAdd(t.Context(), &redis.XAddArgs{
			Stream: a.keys.DeadLetters(), ID: fmt.Sprintf("%d-%d", at.UnixMilli(), seq), Values: []string{"stream", "s"},
		}).Err()
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range old {
		set(now.Add(-5*time.Minute), i)
	}
	set(now.Add(-time.Second), 0)
	for before, want := range map[time.Time]int{now.Add(-patience): old, now: old + 1, now.Add(-time.Hour): 0} {
		if n, err := a.lettersBefore(t.Context(), before); err != nil || n != want {
			t.Errorf("before %s: %d letters (%v), want %d", now.Sub(before), n, err, want)
		}
	}
}
