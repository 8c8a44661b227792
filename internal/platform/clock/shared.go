package clock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// Bounds of the differences between clocks.
const (
	// MaxDifference is how far apart the clocks may be for an act that cannot be undone,
	// and how long reading one may take for it.
	MaxDifference = 5 * time.Second
	// maxSkew is the difference above which an error is logged: far above NTP's, and
	// little compared to the windows of sales.
	maxSkew = 500 * time.Millisecond
	// maxReading is how long reading a clock may take for Now to use it.
	maxReading = time.Second
)

// ErrDisagree reports that the clocks differ by more than MaxDifference, or that one was
// not read in time.
var ErrDisagree = errors.New("the clocks of redis, postgres and this host disagree: run NTP on all of them")

// Read returns the current time of a server. With several servers it returns the times of
// all of them.
type Read func(ctx context.Context) ([]time.Time, error)

// Source names a server whose clock Shared reads.
type Source int

// The sources.
const (
	Redis Source = iota
	Postgres
	sources
)

func (s Source) String() string { return [sources]string{"redis", "postgres"}[s] }

// Shared is the clock that all processes share: the median of the clocks of Redis,
// Postgres and this host, so that a single wrong clock does not change it. Without a
// source for Postgres it is the clock of Redis. It is safe for concurrent use.
type Shared struct {
	local Clock
	start time.Time // of the process; offsets are relative to the time elapsed since
	read  [sources]Read
	log   *slog.Logger

	mu      sync.RWMutex
	offsets [sources]time.Duration // guarded by mu
	known   [sources]bool          // guarded by mu; whether an offset was measured
	skewed  [sources]bool          // guarded by mu; whether it was more than maxSkew
}

// NewShared returns a clock that shows the local time until Redis is observed. A nil Read
// stands for a source that does not exist.
func NewShared(local Clock, redis, postgres Read, log *slog.Logger) *Shared {
	return &Shared{local: local, start: local.Now(), read: [sources]Read{redis, postgres}, log: log}
}

// Now returns the shared time in UTC.
func (s *Shared) Now() time.Time {
	now := s.local.Now()
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.at(now)
}

// at returns the shared time at a local time; the caller holds mu.
func (s *Shared) at(now time.Time) time.Time {
	wall := now.Round(0).UTC()
	if !s.known[Redis] {
		return wall
	}
	redis := s.steady(now).Add(s.offsets[Redis])
	if !s.known[Postgres] {
		return redis
	}
	return median(wall, redis, s.steady(now).Add(s.offsets[Postgres]))
}

// steady returns the local time without changes of the wall clock since the start.
func (s *Shared) steady(now time.Time) time.Time {
	return s.start.Round(0).UTC().Add(now.Sub(s.start))
}

func median(a, b, c time.Time) time.Time {
	if a.After(b) {
		a, b = b, a
	}
	switch {
	case c.Before(a):
		return a
	case c.After(b):
		return b
	default:
		return c
	}
}

// Known reports whether the clock of Redis was observed.
func (s *Shared) Known() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.known[Redis]
}

// Observe records that a source showed a time between the local times sent and received.
// It logs when the clock begins and ends to differ from the local one. A reading that
// took too long is ignored.
func (s *Shared) Observe(ctx context.Context, source Source, shown, sent, received time.Time) {
	took := received.Sub(sent)
	if took > maxReading {
		return
	}
	middle := sent.Add(took / 2)
	ahead := shown.Sub(middle.Round(0))
	skewed := ahead.Abs()-took/2 > maxSkew
	s.mu.Lock()
	changed := skewed != s.skewed[source]
	s.offsets[source], s.known[source], s.skewed[source] = shown.Sub(s.steady(middle)), true, skewed
	s.mu.Unlock()
	switch {
	case changed && skewed:
		s.log.ErrorContext(ctx, "the clock of this host differs from that of a server: run NTP on both",
			slog.String("server", source.String()), slog.Duration("server_is_ahead_by", ahead))
	case changed:
		s.log.InfoContext(ctx, "the clock of this host agrees with that of a server again",
			slog.String("server", source.String()))
	}
}

// Measure reads the clocks of all sources once.
func (s *Shared) Measure(ctx context.Context) error {
	for source := range sources {
		shown, sent, received, err := s.readOne(ctx, source)
		if err != nil {
			return err
		}
		if len(shown) > 0 {
			s.Observe(ctx, source, shown[0], sent, received)
		}
	}
	return nil
}

// Agree reads all clocks and returns an error, which wraps ErrDisagree, unless they are
// within MaxDifference of the shared time. It is called before every act that cannot be
// undone and depends on the time.
func (s *Shared) Agree(ctx context.Context) error {
	for source := range sources {
		shown, sent, received, err := s.readOne(ctx, source)
		if err != nil {
			return err
		}
		took := received.Sub(sent)
		if took > MaxDifference {
			return fmt.Errorf("%w (reading that of %s took %s)", ErrDisagree, source, took.Round(time.Millisecond))
		}
		for _, t := range shown {
			if ahead := t.Sub(sent.Add(took / 2).Round(0)); ahead.Abs() > MaxDifference {
				return fmt.Errorf("%w (%s is %s ahead of this host)", ErrDisagree, source, ahead.Round(time.Millisecond))
			}
		}
		if len(shown) > 0 {
			s.Observe(ctx, source, shown[0], sent, received)
		}
	}
	return nil
}

// readOne reads a source between two local times. It returns no time for a source that
// does not exist.
func (s *Shared) readOne(ctx context.Context, source Source) (shown []time.Time, sent, received time.Time, err error) {
	if s.read[source] == nil {
		return nil, sent, received, nil
	}
	sent = s.local.Now()
	shown, err = s.read[source](ctx)
	if err != nil {
		return nil, sent, received, fmt.Errorf("read the clock of %s: %w", source, err)
	}
	return shown, sent, s.local.Now(), nil
}
