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

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"seckill/internal/clock"
	"seckill/internal/fault"
)

//go:embed lua/publish.lua
var publishSource string

// publishScript is the only writer of the revocation stream.
var publishScript = redis.NewScript(publishSource)

const (
	kindSessions = "sessions"
	kindUser     = "user"
	// publishBatch bounds the ids in one entry, so that an entry stays below 4 kB.
	publishBatch = 100
)

// RevocationsConfig is what Revocations needs.
type RevocationsConfig struct {
	Client redis.UniversalClient // short commands
	Tail   redis.UniversalClient // a client of its own for blocking reads
	Prefix string                // of every key, for example "sk:"
	// Keep is how long an ended session must be remembered: the life of an access
	// token plus the leeway of its check. 0 = DefaultAccessLife + 1 minute.
	Keep  time.Duration
	Clock clock.Clock
	Log   *slog.Logger
	// Ended returns the sessions that the record says were ended since an
	// instant. It is asked at the start and when Redis has lost the stream. May be nil.
	Ended func(ctx context.Context, since time.Time) ([]uuid.UUID, error)
}

// Revocations is this process's view of the sessions that were ended, kept in
// step with all other processes through a small Redis stream. Asking it costs a
// map look-up. It is safe for concurrent use.
//
// A session that was ended stays so; only its memory is dropped, once no access
// token of it can still be valid.
type Revocations struct {
	cfg    RevocationsConfig
	stream string
	ready  chan struct{}

	mu      sync.RWMutex
	ended   map[uuid.UUID]time.Time         // guarded by mu; session → when it may be forgotten
	unsent  map[uuid.UUID]time.Time         // guarded by mu; those of ended that Run has to announce
	watches map[uuid.UUID]map[*watch]func() // guarded by mu; session → what to call once it ends
	changed map[*watch]func(uuid.UUID)      // guarded by mu; what to call when a user changed
	sweepAt time.Time                       // guarded by mu
}

// watch is the identity of a registration. It has a size, so that each has an address of its own.
type watch struct{ _ byte }

// NewRevocations returns an empty view. Run keeps it in step.
func NewRevocations(cfg RevocationsConfig) *Revocations {
	if cfg.Keep == 0 {
		cfg.Keep = DefaultAccessLife + time.Minute
	}
	return &Revocations{
		cfg:     cfg,
		stream:  cfg.Prefix + "{auth}:announcements",
		ready:   make(chan struct{}),
		ended:   make(map[uuid.UUID]time.Time),
		unsent:  make(map[uuid.UUID]time.Time),
		watches: make(map[uuid.UUID]map[*watch]func()),
		changed: make(map[*watch]func(uuid.UUID)),
	}
}

// Revoked says whether a session was ended.
func (r *Revocations) Revoked(session uuid.UUID) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	_, ended := r.ended[session]
	return ended
}

// Revoke ends sessions in this process at once and tells every other process. An
// error is a fault UNAVAILABLE: others may not know yet. Nobody has to call again,
// and whose session it was cannot: Run tells them as soon as Redis answers.
func (r *Revocations) Revoke(ctx context.Context, sessions ...uuid.UUID) error {
	r.markEnded(sessions)
	for len(sessions) > 0 {
		n := min(len(sessions), publishBatch)
		if err := r.publish(ctx, kindSessions, sessions[:n]); err != nil {
			r.keepUnsent(sessions)
			return err
		}
		sessions = sessions[n:]
	}
	return nil
}

// keep remembers sessions whose end others were not told, for as long as that matters.
func (r *Revocations) keepUnsent(sessions []uuid.UUID) {
	until := r.cfg.Clock.Now().Add(r.cfg.Keep)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range sessions {
		r.unsent[s] = until
	}
}

// resend announces what could not be announced before. Twice is harmless.
func (r *Revocations) resend(ctx context.Context) error {
	for {
		batch := r.unsentBatch()
		if len(batch) == 0 {
			return nil
		}
		if err := r.publish(ctx, kindSessions, batch); err != nil {
			return err
		}
		r.mu.Lock()
		for _, s := range batch {
			delete(r.unsent, s)
		}
		r.mu.Unlock()
	}
}

// kept returns what resend has to send next, without what matters no more.
func (r *Revocations) unsentBatch() []uuid.UUID {
	now := r.cfg.Clock.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	var batch []uuid.UUID
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

// UserChanged tells every process, this one included, to forget what it knows
// about a person.
func (r *Revocations) UserChanged(ctx context.Context, user uuid.UUID) error {
	r.notifyChanged(user)
	return r.publish(ctx, kindUser, []uuid.UUID{user})
}

// OnRevoked calls fn once, as soon as this process learns that the session was
// ended, at once when it already was. fn must not block: cancel a context, close
// a channel. The returned function takes the registration back.
func (r *Revocations) OnRevoked(session uuid.UUID, fn func()) (unregister func()) {
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

// OnUserChanged calls fn each time a person's record changed anywhere. fn must
// not block. The returned function takes the registration back.
func (r *Revocations) OnUserChanged(fn func(user uuid.UUID)) (unregister func()) {
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

// Ready is closed once the view has caught up with the others. Before, sessions that
// were ended may still be taken for good.
func (r *Revocations) Ready() <-chan struct{} { return r.ready }

func (r *Revocations) publish(ctx context.Context, kind string, ids []uuid.UUID) error {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = id.String()
	}
	err := publishScript.Run(ctx, r.cfg.Client, []string{r.stream}, kind, strings.Join(texts, ","), r.cfg.Keep.Milliseconds()).Err()
	if err != nil && !errors.Is(err, redis.Nil) {
		return fault.Wrap(fault.Unavailable, "this cannot be made known everywhere now; try again shortly", fmt.Errorf("announce %s: %w", kind, err))
	}
	return nil
}

// end remembers sessions as ended and calls what waits for that.
func (r *Revocations) markEnded(sessions []uuid.UUID) {
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

func (r *Revocations) notifyChanged(user uuid.UUID) {
	r.mu.RLock()
	calls := make([]func(uuid.UUID), 0, len(r.changed))
	for _, fn := range r.changed {
		calls = append(calls, fn)
	}
	r.mu.RUnlock()
	for _, fn := range calls {
		fn(user)
	}
}

// sweep forgets sessions whose access tokens have all lapsed, at most once a minute.
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
