package stream

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestMessagesThatBeginTogetherShareALimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const timeout = 3200 * time.Millisecond
		topic, end := context.WithCancel(t.Context())
		l := &limits{timeout: timeout}
		first, second := l.enter(topic), l.enter(topic)
		if first != second {
			t.Error("two messages at once have two limits")
		}
		other := l.enter(t.Context())
		if other == first {
			t.Error("messages of two topics share a limit")
		}
		l.leave(first)
		if first.ctx.Err() != nil {
			t.Fatal("a message that is done ended the time of another")
		}
		<-time.After(timeout / sharing)
		joined := l.enter(t.Context())
		<-time.After(time.Millisecond)
		late := l.enter(t.Context())
		if joined != other || late == other {
			t.Error("a limit is shared for too short or too long a time")
		}
		l.leave(other)
		l.leave(joined)
		if other.ctx.Err() == nil || late.ctx.Err() != nil {
			t.Error("a limit without a user goes on, or the next one ended")
		}
		end()
		if second.ctx.Err() == nil {
			t.Error("a limit outlives its topic")
		}
		<-time.After(timeout)
		synctest.Wait()
		if !errors.Is(late.ctx.Err(), context.DeadlineExceeded) {
			t.Errorf("after its time: %v", late.ctx.Err())
		}
	})
}
