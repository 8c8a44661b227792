package stream

import (
	"time"

	"github.com/redis/go-redis/v9"
)

// takeOwn takes one page of the entries that are pending under our own name and
// not in flight: those of an earlier life of this process, and those of a read
// whose reply was lost. There is no idle time to wait for.
func (r *reader) takeOwn(room int) error {
	page, err := r.pending(redis.XPendingExtArgs{Start: r.ownFrom, Consumer: r.cfg.Consumer}, room)
	if err != nil {
		return err
	}
	if _, err := r.take(page, 0); err != nil {
		return err
	}
	r.ownFrom = ""
	if len(page) == room {
		r.ownFrom = nextID(page[len(page)-1].ID)
	}
	return nil
}

// maxClaimPages bounds one search for idle entries when our own fill page after page.
const maxClaimPages = 8

// takeIdle takes over entries that no consumer has kept fresh for ClaimIdle. XPENDING
// and XCLAIM stand where XAUTOCLAIM would be shorter: they tell how often an
// entry was delivered, and leave alone what is in flight here. XCLAIM checks the
// idle time again, so that of two workers only one gets an entry.
func (r *reader) takeIdle(room int) error {
	from := "-"
	for range maxClaimPages {
		page, err := r.pending(redis.XPendingExtArgs{Start: from, Idle: r.cfg.ClaimIdle}, room)
		if err != nil {
			return err
		}
		taken, err := r.take(page, r.cfg.ClaimIdle)
		if err != nil || len(page) < room {
			return err
		}
		if taken > 0 {
			r.claimNext = time.Time{} // there are more: go on at the next step
		}
		from = nextID(page[len(page)-1].ID)
		if room = min(r.cfg.Batch, r.window.room()); room <= 0 {
			return nil
		}
	}
	return nil
}

// pending lists pending entries, count of them at most.
func (r *reader) pending(args redis.XPendingExtArgs, count int) ([]redis.XPendingExt, error) {
	ctx, cancel := command(0)
	defer cancel()
	args.Stream, args.Group, args.End, args.Count = r.topic, r.cfg.Group, "+", int64(count)
	return r.cfg.Client.XPendingExt(ctx, &args).Result()
}

// take claims what is not in flight here, hands it out and returns how many that
// were. An entry that was deleted meanwhile does not come back from XCLAIM, which
// drops it from the pending list.
func (r *reader) take(page []redis.XPendingExt, idle time.Duration) (int, error) {
	if len(page) == 0 {
		return 0, nil
	}
	flying := map[string]bool{}
	for _, id := range r.window.left() {
		flying[id] = true
	}
	deliveries := make(map[string]int64, len(page))
	ids := make([]string, 0, len(page))
	for _, p := range page {
		if !flying[p.ID] {
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

// keep tells Redis which entries are being worked on, so that their idle time
// starts again. JUSTID leaves the count of deliveries as it is.
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
