package clock_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"seckill/internal/platform/clock"
)

// clocks are the three clocks of a Shared: how far each is ahead of the true time.
type clocks struct {
	shared          *clock.Shared
	actual          *clock.Fake
	redis, postgres time.Duration
}

type host struct {
	c     *clocks
	ahead time.Duration
}

func (h *host) Now() time.Time { return h.c.actual.Now().Add(h.ahead) }

func setup(t *testing.T) (*clocks, *host) {
	t.Helper()
	c := &clocks{actual: clock.NewFake(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))}
	h := &host{c: c}
	c.shared = clock.NewShared(h,
		func(context.Context) ([]time.Time, error) { return []time.Time{c.actual.Now().Add(c.redis)}, nil },
		func(context.Context) ([]time.Time, error) { return []time.Time{c.actual.Now().Add(c.postgres)}, nil },
		slog.New(slog.DiscardHandler))
	c.measure(t)
	return c, h
}

func (c *clocks) measure(t *testing.T) {
	t.Helper()
	if err := c.shared.Measure(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestOneWrongClockChangesTheSharedTimeBySecondsAtMost(t *testing.T) {
	t.Parallel()
	for _, wrong := range []time.Duration{2 * time.Hour, -2 * time.Hour} {
		for name, set := range map[string]func(*clocks, *host){
			"redis":    func(c *clocks, _ *host) { c.redis = wrong },
			"postgres": func(c *clocks, _ *host) { c.postgres = wrong },
			"host":     func(_ *clocks, h *host) { h.ahead = wrong },
		} {
			c, h := setup(t)
			c.redis, c.postgres = time.Second, -time.Second
			c.measure(t)
			set(c, h)
			c.measure(t)
			if off := c.shared.Now().Sub(c.actual.Now()); off.Abs() > time.Second {
				t.Errorf("%s is wrong by %s: the shared time is wrong by %s", name, wrong, off)
			}
			if err := c.shared.Agree(t.Context()); !errors.Is(err, clock.ErrDisagree) {
				t.Errorf("%s is wrong by %s: %v, want ErrDisagree", name, wrong, err)
			}
		}
	}
}

func TestClocksAgreeWithinTheBound(t *testing.T) {
	t.Parallel()
	c, _ := setup(t)
	c.redis, c.postgres = clock.MaxDifference, -clock.MaxDifference
	if err := c.shared.Agree(t.Context()); err != nil {
		t.Errorf("within the bound: %v", err)
	}
	c.redis += time.Millisecond
	if err := c.shared.Agree(t.Context()); !errors.Is(err, clock.ErrDisagree) {
		t.Errorf("beyond the bound: %v", err)
	}
	c.redis = 0
	if err := c.shared.Agree(t.Context()); err != nil {
		t.Errorf("again within the bound: %v", err)
	}
}

func TestAClockThatCannotBeReadAgreesWithNone(t *testing.T) {
	t.Parallel()
	away := errors.New("away")
	local := clock.NewFake(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	none := func(context.Context) ([]time.Time, error) { return nil, away }
	s := clock.NewShared(local, none, nil, slog.New(slog.DiscardHandler))
	if err := s.Agree(t.Context()); !errors.Is(err, away) {
		t.Errorf("agrees: %v", err)
	}
	if got := s.Now(); !got.Equal(local.Now()) {
		t.Errorf("before the first reading it is %s, want the local time", got)
	}
	slow := func(context.Context) ([]time.Time, error) {
		local.Advance(clock.MaxDifference + time.Second)
		return []time.Time{local.Now()}, nil
	}
	if err := clock.NewShared(local, slow, nil, slog.New(slog.DiscardHandler)).Agree(t.Context()); !errors.Is(err, clock.ErrDisagree) {
		t.Errorf("a reading that took too long: %v", err)
	}
}
