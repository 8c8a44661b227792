package auth

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"seckill/internal/platform/id"
	"seckill/internal/platform/periodic"
	"seckill/internal/platform/redisconn"
)

const (
	tailBatch = 1000 // entries per read, below 4 MB
	// below the 1 s in which an ended session must be known, also when Redis lost the stream
	tailBlock = 400 * time.Millisecond
	tailRetry = 200 * time.Millisecond // after a fault

	// recordEvery is the interval of reading Postgres for sessions ended, or users
	// disabled, by SQL. Such sessions end within twice that.
	recordEvery   = 4 * time.Second
	recordTimeout = 2 * time.Second
	// recordOverlap covers transactions that commit late and clock differences.
	recordOverlap = 30 * time.Second
)

// Run synchronises the copy until ctx ends, and then returns nil. It first reads all
// entries that still matter, then follows the stream, sends what Revoke could not, and
// reads Postgres every few seconds for changes made by SQL. An error is logged once per
// outage; after an outage Postgres is read as at the start.
func (r *Revocations) Run(ctx context.Context) error {
	var watching sync.WaitGroup
	watching.Go(func() { r.watchRecord(ctx) })
	defer watching.Wait()
	t := &tail{r: r, entries: redisconn.NewTail(r.cfg.Tail, r.stream, tailBatch)}
	broken := false
	for ctx.Err() == nil {
		err := errors.Join(r.resend(ctx), t.step(ctx))
		switch {
		case err == nil:
			if broken {
				r.cfg.Log.InfoContext(ctx, "announcements are sent and read again")
				t.restored = false
			}
			broken = false
		case ctx.Err() != nil:
			return nil
		default:
			if !broken {
				r.cfg.Log.ErrorContext(ctx, "announcements cannot be sent or read", slog.Any("error", err))
			}
			broken = true
			_ = periodic.Sleep(ctx, tailRetry) // the loop looks at ctx
		}
		r.sweep()
	}
	return nil
}

// watchRecord reads Postgres until ctx ends. An error is logged once per outage.
func (r *Revocations) watchRecord(ctx context.Context) {
	if r.cfg.Store == nil {
		return
	}
	ticker := time.NewTicker(recordEvery)
	defer ticker.Stop()
	failed := false
	since := r.cfg.Clock.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := r.cfg.Clock.Now()
		err := r.readRecord(ctx, since.Add(-recordOverlap))
		switch {
		case err == nil:
			since = now
		case !failed && ctx.Err() == nil:
			r.cfg.Log.WarnContext(ctx, "ended sessions cannot be read", slog.Any("error", err))
		}
		failed = err != nil
	}
}

func (r *Revocations) readRecord(ctx context.Context, since time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	ended, err := r.cfg.Store.Ended(ctx, since)
	if err == nil {
		r.markEnded(ended)
	}
	return err
}

// tail is the read position of Run.
type tail struct {
	r        *Revocations
	entries  *redisconn.Tail
	restored bool // whether Postgres was read since the start, the last loss or the last outage
}

// step reads Postgres if necessary, then reads one batch and applies it.
func (t *tail) step(ctx context.Context) error {
	if !t.restored {
		if err := t.restore(ctx); err != nil {
			return err
		}
	}
	block := tailBlock
	if !t.caughtUp() {
		block = -1 // return existing entries without blocking
	}
	entries, lost, err := t.entries.Next(ctx, block)
	switch {
	case err != nil:
		return err
	case lost:
		t.restored = false
	case len(entries) == 0 && !t.caughtUp():
		close(t.r.ready)
	}
	for _, entry := range entries {
		t.r.apply(ctx, entry)
	}
	return nil
}

// restore applies the sessions recently ended in Postgres: Redis may have lost entries.
func (t *tail) restore(ctx context.Context) error {
	if t.r.cfg.Store != nil {
		ended, err := t.r.cfg.Store.Ended(ctx, t.r.cfg.Clock.Now().Add(-t.r.cfg.Keep))
		if err != nil {
			return err
		}
		t.r.markEnded(ended)
	}
	t.restored = true
	return nil
}

func (t *tail) caughtUp() bool {
	select {
	case <-t.r.ready:
		return true
	default:
		return false
	}
}

// apply applies one entry. An unreadable entry is logged and skipped, so that it does not
// block later ones.
func (r *Revocations) apply(ctx context.Context, entry redis.XMessage) {
	kind, _ := entry.Values["kind"].(string)
	list, _ := entry.Values["ids"].(string)
	var sessions []id.Session
	var users []id.User
	for text := range strings.SplitSeq(list, ",") {
		u, err := uuid.Parse(text)
		if err != nil {
			r.cfg.Log.WarnContext(ctx, "revocation entry is unreadable", slog.String("entry", entry.ID))
			continue
		}
		sessions, users = append(sessions, id.Session(u)), append(users, id.User(u))
	}
	switch kind {
	case kindSessions:
		r.markEnded(sessions)
	case kindUser:
		for _, user := range users {
			r.notifyChanged(user)
		}
	default:
		r.cfg.Log.WarnContext(ctx, "revocation entry of unknown kind", slog.String("entry", entry.ID))
	}
}
