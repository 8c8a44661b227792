package stream

import (
	"context"
	"sync"
	"time"
)

// limits provides handler contexts with a deadline. Messages of one topic that start
// within a small fraction of the timeout share one, because a timer for each is a large
// part of the cost of a message.
type limits struct {
	timeout time.Duration

	mu      sync.Mutex
	current *limit // context for the next message; guarded by mu
}

// limit is a context shared by messages.
type limit struct {
	ctx    context.Context
	cancel context.CancelFunc
	parent <-chan struct{} // Done of its parent context
	until  time.Time       // last time at which a message may join
	users  int             // guarded by mu of limits
}

// sharing is the fraction of a handler's timeout within which messages share a limit.
// The last of them has a timeout that is shorter by the same fraction.
const sharing = 32

// enter returns the limit for a message with the given context. It ends with that
// context and has its values, which are the same for all messages of a topic.
func (l *limits) enter(outer context.Context) *limit {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.current
	if c == nil || now.After(c.until) || c.parent != outer.Done() {
		old := c
		c = &limit{parent: outer.Done(), until: now.Add(l.timeout / sharing)}
		c.ctx, c.cancel = context.WithTimeout(outer, l.timeout)
		l.current = c
		l.release(old)
	}
	c.users++
	return c
}

// leave reports that the handler of a message has returned.
func (l *limits) leave(c *limit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.users--
	l.release(c)
}

// release cancels a limit that is unused and no longer current. Callers hold mu.
func (l *limits) release(c *limit) {
	if c != nil && c.users == 0 && c != l.current {
		c.cancel()
	}
}
