package stream

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/internal/clock"
)

// countPage is how many entries one command reads when Redis does not report the number
// of unread entries.
const countPage = 1000

// Stats is the progress of a group on a stream.
type Stats struct {
	Length    int64         // entries in the stream, including finished ones that are not trimmed
	Unread    int64         // entries that no consumer has read
	Pending   int64         // entries that were read but not acknowledged
	Dead      int64         // dead letters from this stream
	OldestAge time.Duration // age of the oldest unread or pending entry, 0 when there is none
}

// Inspector reads statistics of streams, for metrics and the audit.
type Inspector struct {
	Client redis.UniversalClient
	Dead   *DeadLetters
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
	if s.Dead, err = i.Dead.LenOf(ctx, key); err != nil {
		return s, err
	}
	info, err := i.group(ctx, key, group)
	if err != nil {
		return s, err
	}
	s.Pending = info.Pending
	oldest := ""
	if info.Pending > 0 {
		if oldest, err = i.oldestPending(ctx, key, group); err != nil {
			return s, err
		}
	}
	from := nextID(info.LastDeliveredID)
	first, err := i.Client.XRangeN(ctx, key, from, "+", 1).Result()
	if err != nil {
		return s, err
	}
	if len(first) > 0 {
		if s.Unread, err = i.unread(ctx, key, from, info); err != nil {
			return s, err
		}
		if oldest == "" {
			oldest = first[0].ID
		}
	}
	if ms, _, err := splitID(oldest); err == nil {
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

// unread returns the number of entries from an id on. Redis reports it as the lag of
// the group, unless single entries were deleted; the in-process Redis reports the
// length instead, without a count of read entries. In these cases the entries are
// counted.
func (i Inspector) unread(ctx context.Context, key, from string, info redis.XInfoGroup) (int64, error) {
	if info.Lag >= 0 && info.EntriesRead > 0 {
		return info.Lag, nil
	}
	var n int64
	for {
		page, err := i.Client.XRangeN(ctx, key, from, "+", countPage).Result()
		if err != nil {
			return 0, err
		}
		n += int64(len(page))
		if len(page) < countPage {
			return n, nil
		}
		from = nextID(page[len(page)-1].ID)
	}
}

func (i Inspector) oldestPending(ctx context.Context, key, group string) (string, error) {
	summary, err := i.Client.XPending(ctx, key, group).Result()
	if errors.Is(err, redis.Nil) || redis.HasErrorPrefix(err, "NOGROUP") {
		return "", nil // acknowledged or lost in the meantime
	}
	if err != nil {
		return "", err
	}
	return summary.Lower, nil
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
