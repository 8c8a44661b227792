package transport

import (
	"context"
	"sync"
	"time"
)

// deadline is a context with a time limit whose timer starts on the first call of Done.
// Most operations complete in memory (a refusal from the StockCache, a cached catalogue)
// and need no timer.
type deadline struct {
	context.Context // the parent
	at              time.Time

	mu    sync.Mutex
	armed context.Context // guarded by mu: the parent with the time limit; nil before the first Done
	stop  context.CancelFunc
	over  bool // guarded by mu: cancelled
}

// withDeadline is context.WithTimeout with a lazy timer. Call cancel of the result.
func withDeadline(parent context.Context, limit time.Duration) *deadline {
	d := &deadline{Context: parent, at: time.Now().Add(limit)}
	if at, ok := parent.Deadline(); ok && at.Before(d.at) {
		d.at = at
	}
	return d
}

func (d *deadline) arm() context.Context {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.armed == nil {
		d.armed, d.stop = context.WithDeadline(d.Context, d.at)
		if d.over {
			d.stop()
		}
	}
	return d.armed
}

func (d *deadline) cancel() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.over = true
	if d.stop != nil {
		d.stop()
	}
}

// Deadline returns the deadline.
func (d *deadline) Deadline() (time.Time, bool) { return d.at, true }

// Done starts the timer on the first call.
func (d *deadline) Done() <-chan struct{} { return d.arm().Done() }

// Err returns the reason why the context ended, or nil.
func (d *deadline) Err() error {
	d.mu.Lock()
	armed, over := d.armed, d.over
	d.mu.Unlock()
	switch {
	case armed != nil:
		return armed.Err() // a context's own error
	case over:
		return context.Canceled
	case d.Context.Err() != nil:
		return d.Context.Err() // as above
	case !time.Now().Before(d.at):
		return context.DeadlineExceeded
	}
	return nil
}

// Value asks the armed context first, so that package context links derived contexts to
// it directly instead of starting a goroutine for each.
func (d *deadline) Value(key any) any {
	d.mu.Lock()
	armed := d.armed
	d.mu.Unlock()
	if armed != nil {
		return armed.Value(key)
	}
	return d.Context.Value(key)
}
