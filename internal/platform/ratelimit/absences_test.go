package ratelimit_test

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"seckill/internal/platform/clock"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/ratelimit"
)

type callerKey struct{}

// lookUps counts what is read by callers of a context.
type lookUps struct {
	*ratelimit.Absences
	clock *clock.Fake
	reads int
}

func newLookUps() *lookUps {
	l := &lookUps{clock: clock.NewFake(time.Now())}
	l.Absences = ratelimit.NewAbsences(l.clock, func(ctx context.Context) ratelimit.Caller {
		c, _ := ctx.Value(callerKey{}).(ratelimit.Caller)
		return c
	})
	return l
}

// find looks up an id n times, and returns how many look-ups were refused.
func (l *lookUps) find(t *testing.T, c ratelimit.Caller, exists bool, n int) (refused int) {
	t.Helper()
	ctx := context.WithValue(t.Context(), callerKey{}, c)
	for range n {
		found, err := ratelimit.Find(ctx, l.Absences, func(context.Context) (*int, error) {
			l.reads++
			if exists {
				return &l.reads, nil
			}
			return nil, nil
		})
		switch {
		case fault.CodeOf(err) == fault.RateLimited && found == nil:
			refused++
		case err != nil || (found != nil) != exists:
			t.Fatalf("found %v, %v", found, err)
		}
	}
	return refused
}

func TestIdsThatNothingHasCostABoundedNumberOfReads(t *testing.T) {
	t.Parallel()
	l := newLookUps()
	visitor := ratelimit.Caller{Ranges: ratelimit.Ranges(netip.MustParseAddr("192.0.2.7"))}
	user := func() ratelimit.Caller { return ratelimit.Caller{User: ratelimit.User(id.New[id.User]())} }
	if refused := l.find(t, visitor, false, 500); l.reads != 120 || refused != 380 {
		t.Errorf("a visitor: %d reads, %d refused", l.reads, refused)
	}
	l.reads = 0
	attacker := user() // of the same address: signed-in users have budgets of their own
	if refused := l.find(t, attacker, false, 500); l.reads != 60 || refused != 440 {
		t.Errorf("a user: %d reads, %d refused", l.reads, refused)
	}
	buyer := user()
	if refused := l.find(t, buyer, true, 500) + l.find(t, buyer, false, 1) + l.find(t, buyer, true, 500); refused != 0 {
		t.Errorf("a buyer was refused %d times", refused)
	}
	if refused := l.find(t, ratelimit.Caller{}, false, 500); refused != 0 {
		t.Errorf("the server itself was refused %d times", refused)
	}
	l.clock.Advance(time.Second)
	l.reads = 0
	if refused := l.find(t, attacker, false, 5); l.reads != 2 || refused != 3 {
		t.Errorf("a second later: %d reads, %d refused", l.reads, refused)
	}
	var off *ratelimit.Absences
	if _, err := ratelimit.Find(t.Context(), off, func(context.Context) (*int, error) { return nil, nil }); err != nil {
		t.Errorf("without limits: %v", err)
	}
}
