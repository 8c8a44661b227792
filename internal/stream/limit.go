package stream

import (
	"context"
	"sync"
	"time"
)

// limits gives handlers contexts with a deadline. Messages of one topic that begin
// within a small part of the time share one: a timer for each is a good part of
// what a message costs.
type limits struct {
	timeout time.Duration

	mu      sync.Mutex
	current *limit // what the next message gets; guarded by mu
}

// limit is a context that messages share.
type limit struct {
	ctx    context.Context
	cancel context.CancelFunc
	parent <-chan struct{} // Done of the context that it descends from
	until  time.Time       // when the last message may join
	users  int             // guarded by mu of limits
}

// sharing is the part of a handler's time within which messages share a limit,
// and by which that of the last of them is shorter.
const sharing = 32

// enter returns the limit of a message with a context. It ends with that context
// and has its values, of which messages of a topic have the same.
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

// leave says that the handler of a message is done.
func (l *limits) leave(c *limit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.users--
	l.release(c)
}

// release ends a limit that nobody has and nobody will get. Callers hold mu.
func (l *limits) release(c *limit) {
	if c != nil && c.users == 0 && c != l.current {
		c.cancel()
	}
}
