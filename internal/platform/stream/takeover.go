package stream

import (
	"time"

	"github.com/redis/go-redis/v9"
)

// takeOwn takes one page of the entries that are pending for this consumer and not in
// flight: those of a previous process of the same name, and those of a read whose reply
// was lost. It needs no idle time.
func (r *reader) takeOwn(count int) error {
	page, err := r.pending(redis.XPendingExtArgs{Start: r.ownFrom, Consumer: r.cfg.Consumer}, count)
	if err != nil {
		return err
	}
	if _, err := r.take(page, 0); err != nil {
		return err
	}
	r.ownFrom = ""
	if len(page) == count {
		r.ownFrom = nextID(page[len(page)-1].ID)
	}
	return nil
}

// maxClaimPages bounds one search for idle entries when many pages contain only entries
// in flight here.
const maxClaimPages = 8

// takeIdle takes over entries that no consumer has refreshed for ClaimIdle. It uses
// XPENDING and XCLAIM instead of the shorter XAUTOCLAIM, because they report the number
// of deliveries and can exclude entries in flight here. XCLAIM checks the idle time
// again, so that only one of two workers gets an entry.
func (r *reader) takeIdle(count int) error {
	from := "-"
	for range maxClaimPages {
		page, err := r.pending(redis.XPendingExtArgs{Start: from, Idle: r.cfg.ClaimIdle}, count)
		if err != nil {
			return err
		}
		taken, err := r.take(page, r.cfg.ClaimIdle)
		if err != nil || len(page) < count {
			return err
		}
		if taken > 0 {
			r.claimNext = time.Time{} // there are more: continue in the next step
		}
		from = nextID(page[len(page)-1].ID)
		if count = r.readSize(); count <= 0 {
			return nil
		}
	}
	return nil
}

// pending lists up to count pending entries.
func (r *reader) pending(args redis.XPendingExtArgs, count int) ([]redis.XPendingExt, error) {
	ctx, cancel := command(0)
	defer cancel()
	args.Stream, args.Group, args.End, args.Count = r.topic, r.cfg.Group, "+", int64(count)
	return r.cfg.Client.XPendingExt(ctx, &args).Result()
}

// take claims and dispatches the entries that are not in flight here, and returns how
// many it dispatched. XCLAIM omits an entry that was deleted in the meantime, and drops
// it from the pending list.
func (r *reader) take(page []redis.XPendingExt, idle time.Duration) (int, error) {
	if len(page) == 0 {
		return 0, nil
	}
	inFlight := map[string]bool{}
	for _, id := range r.window.left() {
		inFlight[id] = true
	}
	deliveries := make(map[string]int64, len(page))
	ids := make([]string, 0, len(page))
	for _, p := range page {
		if !inFlight[p.ID] {
			ids = append(ids, p.ID)
			deliveries[p.ID] = p.RetryCount + 1
		}
	}
	if len(ids) == 0 {
		return 0, nil
	}
	ctx, cancel := command(0)
	defer cancel()
	entries, err := r.cfg.Client.XClaim(ctx, &redis.XClaimArgs{
		Stream: r.topic, Group: r.cfg.Group, Consumer: r.cfg.Consumer, MinIdle: idle, Messages: ids,
	}).Result()
	if err != nil {
		return 0, err
	}
	if len(entries) > 0 {
		r.cfg.Metrics.count(Claimed, r.topic, len(entries))
		r.dispatch(entries, deliveries)
	}
	return len(entries), nil
}

// keep resets the idle time of entries in work. JUSTID leaves the number of deliveries
// unchanged.
func (r *reader) keep(now time.Time) error {
	ids := r.window.stale(now.Add(-r.cfg.ClaimIdle/6), now.Add(-r.cfg.ClaimIdle), now)
	for len(ids) > 0 {
		n := min(len(ids), r.cfg.Batch)
		ctx, cancel := command(0)
		err := r.cfg.Client.XClaimJustID(ctx, &redis.XClaimArgs{
			Stream: r.topic, Group: r.cfg.Group, Consumer: r.cfg.Consumer, Messages: ids[:n],
		}).Err()
		cancel()
		if err != nil {
			return err
		}
		ids = ids[n:]
	}
	return nil
}
