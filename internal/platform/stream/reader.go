package stream

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/redis/go-redis/v9"

	"seckill/internal/platform/periodic"
)

// fromStart is the start of a new group: it includes every existing entry.
const fromStart = "0"

// reader is the reading part of a subscription. It is used by one goroutine.
type reader struct {
	*subscription
	retry *backoff.ExponentialBackOff

	grouped   bool      // the group is known to exist
	seen      bool      // the group has existed before
	ownFrom   string    // where the search for own pending entries continues; "" when it is complete
	claimNext time.Time // when to look for idle entries
	freshNext time.Time // when to refresh the entries in work
}

func newReader(s *subscription) *reader {
	return &reader{subscription: s, retry: newBackoff(), ownFrom: "-"}
}

// run executes steps until stop ends. A failed step does not end it.
func (r *reader) run(stop context.Context) {
	for stop.Err() == nil {
		err := r.step(stop)
		if err == nil {
			r.retry.Reset()
			continue
		}
		r.grouped = false
		if !goneAway(err) {
			r.cfg.Metrics.count(ReadFailed, r.topic, 1)
			r.log().Warn("read stream", slog.Any("error", err))
			r.ownFrom = "-" // a lost reply may have assigned entries to this consumer
		}
		pause(stop, r.retry.NextBackOff())
	}
}

// goneAway reports that the group or the stream does not exist; createGroup counts it.
func goneAway(err error) bool {
	return redis.HasErrorPrefix(err, "NOGROUP") || redis.HasErrorPrefix(err, "UNBLOCKED")
}

// step does the most urgent work: create the group, refresh entries, take over its own
// previous entries, take over idle entries of other workers, read new entries.
func (r *reader) step(stop context.Context) error {
	if !r.grouped {
		if err := r.createGroup(); err != nil {
			return err
		}
	}
	now := time.Now()
	if !now.Before(r.freshNext) {
		r.freshNext = now.Add(r.cfg.ClaimIdle / 3)
		if err := r.keep(now); err != nil {
			return err
		}
	}
	count := r.readSize()
	if count <= 0 {
		r.awaitFree(stop)
		return nil
	}
	if r.ownFrom != "" {
		return r.takeOwn(count)
	}
	if !now.Before(r.claimNext) {
		r.claimNext = now.Add(r.cfg.ClaimEvery)
		return r.takeIdle(count)
	}
	return r.readNew(count)
}

// maxEntries bounds the entries of one read: with 256 orders in each, they are what the
// writer accepts.
const maxEntries = 64

// readSize returns how many entries to read: those whose orders are expected to fit into
// a batch and into the window.
func (r *reader) readSize() int {
	orders := min(r.cfg.Batch, r.window.free())
	if orders <= 0 {
		return 0
	}
	if r.perEntry <= 1 {
		return orders
	}
	return min(maxEntries, max(1, orders/r.perEntry))
}

// createGroup ensures that the group exists. When a group that existed before is
// missing, Redis was emptied or replaced, or is an older copy: all entries of the
// stream are read again, and entries in flight no longer count as read. Handlers are
// idempotent.
func (r *reader) createGroup() error {
	ctx, cancel := command(0)
	defer cancel()
	err := r.cfg.Client.XGroupCreateMkStream(ctx, r.topic, r.cfg.Group, fromStart).Err()
	existed := redis.HasErrorPrefix(err, "BUSYGROUP")
	if err != nil && !existed {
		return err
	}
	if r.seen && !existed {
		r.cfg.Metrics.count(GroupLost, r.topic, 1)
		r.log().Error("consumer group was lost; it is there again and reads from the first entry")
		r.window.forget()
	}
	r.grouped, r.seen = true, true
	return nil
}

// readNew reads entries that no consumer has. It cannot be interrupted; Block bounds
// it. Entries that arrive while stop ends are still dispatched: this consumer owns
// them, and the drain waits for them.
func (r *reader) readNew(count int) error {
	block := r.cfg.Block
	if block >= periodic.Tick {
		block = max(time.Millisecond, periodic.UntilTick(block)) // idle streams wake the process together
	}
	ctx, cancel := command(block)
	defer cancel()
	streams, err := r.cfg.Client.XReadGroup(ctx, &redis.XReadGroupArgs{
		Group: r.cfg.Group, Consumer: r.cfg.Consumer,
		Streams: []string{r.topic, ">"},
		Count:   int64(count),
		Block:   block,
	}).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return err
	}
	r.readAt.Store(time.Now().UnixNano())
	for _, s := range streams {
		if len(s.Messages) > 0 {
			r.cfg.Metrics.count(Read, r.topic, len(s.Messages))
			r.dispatch(s.Messages, nil)
		}
	}
	return nil
}

// awaitFree waits until entries leave the window, at most for Block.
func (r *reader) awaitFree(stop context.Context) {
	timer := time.NewTimer(r.cfg.Block)
	defer timer.Stop()
	select {
	case <-r.window.freed:
	case <-timer.C:
	case <-stop.Done():
	}
	r.readAt.Store(time.Now().UnixNano()) // a full window is not a failure
}

// command returns the context of one command that blocks for up to block. It is not
// derived from the subscription's context, because an interrupted command loses its
// reply, and its entries would wait until ClaimIdle.
func command(block time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), block+commandTimeout)
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
