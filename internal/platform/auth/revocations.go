package auth

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/internal/platform/clock"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

//go:embed lua/publish.lua
var publishSource string

// publishScript is the only writer of the revocation stream.
var publishScript = redis.NewScript(publishSource)

const (
	kindSessions = "sessions"
	kindUser     = "user"
	// publishBatch limits the ids in one entry, so that an entry stays below 4 kB.
	publishBatch = 100
)

// RevocationsConfig configures Revocations.
type RevocationsConfig struct {
	Client redis.UniversalClient // short commands
	Tail   redis.UniversalClient // separate client for blocking reads
	Prefix string                // of every key, for example "sk:"
	// Keep is how long an ended session is remembered: the life of an access token plus
	// the leeway of its check. 0 = DefaultAccessLife + 1 minute.
	Keep  time.Duration
	Clock clock.Clock
	Log   *slog.Logger
	Store SessionStore // nil = the stream alone is read
	// Release frees what sessions held that this process has ended, such as tickets of waiting
	// rooms. It may be repeated, and is after an error. nil = that ends by itself.
	Release func(ctx context.Context, sessions ...id.Session) error
}

// SessionStore reads sessions from Postgres; account.Store implements it.
type SessionStore interface {
	// Ended returns the sessions that ended since a time. It is called at the start and when
	// Redis has lost the stream.
	Ended(ctx context.Context, since time.Time) ([]id.Session, error)
}

// Revocations is the process's copy of the revoked sessions, synchronised with all other
// processes through a small Redis stream. A lookup is a map access. It is safe for
// concurrent use.
//
// An ended session stays ended; its entry is removed when no access token of it can still
// be valid.
type Revocations struct {
	cfg    RevocationsConfig
	stream string
	ready  chan struct{}

	mu      sync.RWMutex
	ended   map[id.Session]time.Time         // guarded by mu; session → when it may be removed
	unsent  map[id.Session]time.Time         // guarded by mu; those of ended that Run has to publish
	watches map[id.Session]map[*watch]func() // guarded by mu; session → callbacks for its end
	changed map[*watch]func(id.User)         // guarded by mu; callbacks for a changed user
	sweepAt time.Time                        // guarded by mu
}

// watch identifies a registration. It is not zero-sized, so that each has a unique
// address.
type watch struct{ _ byte }

// NewRevocations returns an empty copy. Run synchronises it.
func NewRevocations(cfg RevocationsConfig) *Revocations {
	if cfg.Keep == 0 {
		cfg.Keep = DefaultAccessLife + time.Minute
	}
	return &Revocations{
		cfg:     cfg,
		stream:  cfg.Prefix + "{auth}:announcements",
		ready:   make(chan struct{}),
		ended:   make(map[id.Session]time.Time),
		unsent:  make(map[id.Session]time.Time),
		watches: make(map[id.Session]map[*watch]func()),
		changed: make(map[*watch]func(id.User)),
	}
}

// Revoked reports whether a session was ended.
func (r *Revocations) Revoked(session id.Session) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	_, ended := r.ended[session]
	return ended
}

// Revoke ends sessions in this process at once, publishes their end to all others and
// releases what they held. An error is a fault UNAVAILABLE: other processes may not know
// yet. The caller need not retry: Run publishes and releases as soon as Redis answers.
func (r *Revocations) Revoke(ctx context.Context, sessions ...id.Session) error {
	r.markEnded(sessions)
	for len(sessions) > 0 {
		n := min(len(sessions), publishBatch)
		if err := publish(ctx, r, kindSessions, sessions[:n]); err != nil {
			r.keepUnsent(sessions)
			return err
		}
		if err := r.release(ctx, sessions[:n]); err != nil {
			r.keepUnsent(sessions[:n])
			r.cfg.Log.WarnContext(ctx, "what ended sessions held is released later", slog.Any("error", err))
		}
		sessions = sessions[n:]
	}
	return nil
}

func (r *Revocations) release(ctx context.Context, sessions []id.Session) error {
	if r.cfg.Release == nil {
		return nil
	}
	return r.cfg.Release(ctx, sessions...)
}

// keepUnsent stores sessions whose end was not published, or which hold something, while
// that matters.
func (r *Revocations) keepUnsent(sessions []id.Session) {
	until := r.cfg.Clock.Now().Add(r.cfg.Keep)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range sessions {
		r.unsent[s] = until
	}
}

// resend publishes and releases the sessions of unsent. Doing so twice is harmless.
func (r *Revocations) resend(ctx context.Context) error {
	for {
		batch := r.unsentBatch()
		if len(batch) == 0 {
			return nil
		}
		if err := publish(ctx, r, kindSessions, batch); err != nil {
			return err
		}
		if err := r.release(ctx, batch); err != nil {
			return fmt.Errorf("release what ended sessions held: %w", err)
		}
		r.mu.Lock()
		for _, s := range batch {
			delete(r.unsent, s)
		}
		r.mu.Unlock()
	}
}

// unsentBatch returns what resend has to send next, without expired entries.
func (r *Revocations) unsentBatch() []id.Session {
	now := r.cfg.Clock.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	var batch []id.Session
	for s, until := range r.unsent {
		switch {
		case now.After(until):
			delete(r.unsent, s)
		case len(batch) < publishBatch:
			batch = append(batch, s)
		}
	}
	return batch
}

// UserChanged invalidates the cached user in all processes, including this one.
func (r *Revocations) UserChanged(ctx context.Context, user id.User) error {
	r.notifyChanged(user)
	return publish(ctx, r, kindUser, []id.User{user})
}

// OnRevoked calls fn once, as soon as this process learns that the session was ended, or
// at once if it was already. fn must not block: cancel a context, close a channel. The
// returned function removes the registration.
func (r *Revocations) OnRevoked(session id.Session, fn func()) (unregister func()) {
	w := new(watch)
	r.mu.Lock()
	if _, ended := r.ended[session]; ended {
		r.mu.Unlock()
		fn()
		return func() {}
	}
	if r.watches[session] == nil {
		r.watches[session] = make(map[*watch]func(), 1)
	}
	r.watches[session][w] = fn
	r.mu.Unlock()
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.watches[session], w)
		if len(r.watches[session]) == 0 {
			delete(r.watches, session)
		}
	}
}

// OnUserChanged calls fn each time a user was changed in any process. fn must not block.
// The returned function removes the registration.
func (r *Revocations) OnUserChanged(fn func(user id.User)) (unregister func()) {
	w := new(watch)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changed[w] = fn
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.changed, w)
	}
}

// Ready is closed once the stream has been read up to its end. Before that, Revoked may
// return false for sessions that were ended.
func (r *Revocations) Ready() <-chan struct{} { return r.ready }

func publish[T fmt.Stringer](ctx context.Context, r *Revocations, kind string, ids []T) error {
	texts := collect.Map(ids, func(id T) string { return id.String() })
	err := publishScript.Run(ctx, r.cfg.Client, []string{r.stream}, kind, strings.Join(texts, ","),
		r.cfg.Keep.Milliseconds()).Err()
	if err != nil && !errors.Is(err, redis.Nil) {
		return fault.Wrap(fault.Unavailable, "The change cannot be published now. Please try again shortly.",
			fmt.Errorf("publish %s: %w", kind, err))
	}
	return nil
}

// markEnded stores sessions as ended and calls their callbacks.
func (r *Revocations) markEnded(sessions []id.Session) {
	now := r.cfg.Clock.Now()
	var calls []func()
	r.mu.Lock()
	for _, s := range sessions {
		r.ended[s] = now.Add(r.cfg.Keep)
		for _, fn := range r.watches[s] {
			calls = append(calls, fn)
		}
		delete(r.watches, s)
	}
	r.mu.Unlock()
	for _, fn := range calls {
		fn()
	}
}

func (r *Revocations) notifyChanged(user id.User) {
	r.mu.RLock()
	calls := make([]func(id.User), 0, len(r.changed))
	for _, fn := range r.changed {
		calls = append(calls, fn)
	}
	r.mu.RUnlock()
	for _, fn := range calls {
		fn(user)
	}
}

// sweep removes sessions whose access tokens have all expired, at most once a minute.
func (r *Revocations) sweep() {
	now := r.cfg.Clock.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Before(r.sweepAt) {
		return
	}
	r.sweepAt = now.Add(time.Minute)
	for s, until := range r.ended {
		if now.After(until) {
			delete(r.ended, s)
		}
	}
}
