// Package clock makes time a parameter. Production code takes a Clock in its
// constructor and reads it once per operation. It does not wait: packages periodic and batch do.
package clock

import (
	"sync"
	"time"
)

// Clock returns the current time.
type Clock interface {
	// Now returns the current time.
	Now() time.Time
}

// System is the clock of the machine, in UTC.
type System struct{}

// Now returns the current time in UTC.
func (System) Now() time.Time { return time.Now().UTC() }

// OrSystem returns a clock, or System for nil.
func OrSystem(c Clock) Clock {
	if c == nil {
		return System{}
	}
	return c
}

// UTC returns a time as the database keeps it; nil = none.
func UTC(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	u := t.UTC()
	return &u
}

// Fake is a clock that changes only by Advance. It is safe for concurrent use.
type Fake struct {
	mu  sync.Mutex
	now time.Time // guarded by mu
}

// NewFake returns a Fake set to now.
func NewFake(now time.Time) *Fake { return &Fake{now: now.UTC()} }

// Now returns the time of the clock.
func (f *Fake) Now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

// Advance moves the clock by d and returns its new time.
func (f *Fake) Advance(d time.Duration) time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = f.now.Add(d)
	return f.now
}
