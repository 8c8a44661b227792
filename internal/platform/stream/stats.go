package stream

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/internal/platform/clock"
	"seckill/internal/platform/redisconn"
)

// countPage is how many entries one command reads when Redis does not report the number
// of unread entries.
const countPage = 1000

// Stats is the progress of a group on a stream.
type Stats struct {
	Length    int64         // entries in the stream, including finished ones that are not trimmed
	Unread    int64         // orders that no consumer has read
	Pending   int64         // orders that were read but not acknowledged
	OldestAge time.Duration // age of the oldest unread or pending entry, 0 when there is none
}

// Inspector reads statistics of streams, for metrics and the audit.
type Inspector struct {
	Client redis.UniversalClient
	Clock  clock.Clock
}

// Stats returns the statistics of a stream and a group. A missing stream or group has
// no pending entries, and all its entries are unread.
func (i Inspector) Stats(ctx context.Context, key, group string) (Stats, error) {
	stats, err := i.stats(ctx, key, group)
	if err != nil {
		return Stats{}, fmt.Errorf("statistics of %s: %w", key, err)
	}
	return stats, nil
}

func (i Inspector) stats(ctx context.Context, key, group string) (s Stats, err error) {
	if s.Length, err = i.Client.XLen(ctx, key).Result(); err != nil {
		return s, err
	}
	info, err := i.group(ctx, key, group)
	if err != nil {
		return s, err
	}
	oldest := ""
	if info.Pending > 0 {
		if s.Pending, oldest, err = i.pending(ctx, key, group); err != nil {
			return s, err
		}
	}
	from := nextID(info.LastDeliveredID)
	first, err := i.Client.XRangeN(ctx, key, from, "+", 1).Result()
	if err != nil {
		return s, err
	}
	if len(first) > 0 {
		if s.Unread, err = i.unread(ctx, key, first[0], info); err != nil {
			return s, err
		}
		if oldest == "" {
			oldest = first[0].ID
		}
	}
	if ms, _, err := redisconn.ParseEntryID(oldest); err == nil {
		s.OldestAge = max(0, i.Clock.Now().Sub(time.UnixMilli(int64(ms)))) //nolint:gosec // a time, far below the border
	}
	return s, nil
}

// group returns the group's info from Redis; a missing group has read nothing.
func (i Inspector) group(ctx context.Context, key, group string) (redis.XInfoGroup, error) {
	none := redis.XInfoGroup{LastDeliveredID: "0-0", Lag: -1}
	groups, err := i.Client.XInfoGroups(ctx, key).Result()
	if err != nil {
		if redis.HasErrorPrefix(err, "no such key") {
			return none, nil
		}
		return none, err
	}
	for _, g := range groups {
		if g.Name == group {
			if !strings.Contains(g.LastDeliveredID, "-") { // in-process Redis, before the first read
				g.LastDeliveredID += "-0"
			}
			return g, nil
		}
	}
	return none, nil
}

// unread returns the number of orders from the first unread entry on: the difference of
// the sums in the first and in the last entry. For entries without a sum, Redis reports
// their number as the lag of the group, unless single entries were deleted; the
// in-process Redis reports the length instead, without a count of read entries. In
// these cases, and while a stream has entries of both kinds, they are counted.
func (i Inspector) unread(ctx context.Context, key string, first redis.XMessage, info redis.XInfoGroup) (int64, error) {
	newest, err := i.Client.XRevRangeN(ctx, key, "+", "-", 1).Result()
	if err != nil || len(newest) == 0 {
		return 0, err
	}
	from, to := sumOf(first), sumOf(newest[0])
	switch {
	case from > 0 && to >= from:
		return to - from + ordersOf(first), nil
	case from == 0 && to == 0 && info.Lag >= 0 && info.EntriesRead > 0:
		return info.Lag, nil
	}
	var n int64
	for next := first.ID; ; {
		page, err := i.Client.XRangeN(ctx, key, next, "+", countPage).Result()
		if err != nil {
			return 0, err
		}
		for _, entry := range page {
			n += ordersOf(entry)
		}
		if len(page) < countPage {
			return n, nil
		}
		next = nextID(page[len(page)-1].ID)
	}
}

func ordersOf(entry redis.XMessage) int64 { return max(1, numberIn(entry, FieldCount)) }

// sumOf returns the sum of an entry; 0 when it has none.
func sumOf(entry redis.XMessage) int64 { return numberIn(entry, fieldSum) }

func numberIn(entry redis.XMessage, field string) int64 {
	text, _ := entry.Values[field].(string)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// pending returns the number of orders in pending entries, and the id of the oldest
// one. Consumers bound the orders that they have in flight.
func (i Inspector) pending(ctx context.Context, key, group string) (orders int64, oldest string, err error) {
	for start := "-"; ; {
		page, err := i.Client.XPendingExt(ctx, &redis.XPendingExtArgs{Stream: key, Group: group, Start: start, End: "+",
			Count: countPage}).Result()
		if errors.Is(err, redis.Nil) || redis.HasErrorPrefix(err, "NOGROUP") {
			return 0, "", nil // lost in the meantime
		}
		if err != nil || len(page) == 0 {
			return orders, oldest, err
		}
		if oldest == "" {
			oldest = page[0].ID
		}
		pipe := i.Client.Pipeline()
		entries := make([]*redis.XMessageSliceCmd, len(page))
		for n, p := range page {
			entries[n] = pipe.XRangeN(ctx, key, p.ID, p.ID, 1)
		}
		if _, err := pipe.Exec(ctx); err != nil {
			return 0, "", err
		}
		for _, reply := range entries {
			found := int64(1) // deleted, still pending
			if entry := reply.Val(); len(entry) > 0 {
				found = ordersOf(entry[0])
			}
			orders += found
		}
		if len(page) < countPage {
			return orders, oldest, nil
		}
		start = nextID(page[len(page)-1].ID)
	}
}

// Measure sets the depth gauges of some streams for a group. A gauge that cannot be
// read keeps its last value.
func (i Inspector) Measure(ctx context.Context, m *Metrics, group string, topics []string) error {
	var errs []error
	for _, topic := range topics {
		s, err := i.Stats(ctx, topic, group)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		m.depth(topic, s)
	}
	return errors.Join(errs...)
}
