package stream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// Unfinished is the orders of a stream that a group has not acknowledged. Orders are numbered
// as they are appended, from 1; the sums of the entries are these numbers.
type Unfinished struct {
	Appended int64 // number of the newest order
	Read     int64 // number of the last order that a consumer has read

	held []span // entries that were read but not acknowledged, in order
}

// span is the orders of an entry.
type span struct {
	entry       string
	first, last int64 // numbers of its orders
	before      int64 // orders of the spans before it
}

// Done returns how many orders were acknowledged.
func (u Unfinished) Done() int64 {
	if len(u.held) == 0 {
		return u.Read
	}
	last := u.held[len(u.held)-1]
	return u.Read - last.before - (last.last - last.first + 1)
}

// Ahead returns how many unfinished orders were appended before the one of that number.
func (u Unfinished) Ahead(number int64) int64 {
	ahead := max(0, number-1-u.Read)
	i := sort.Search(len(u.held), func(i int) bool { return u.held[i].first >= number })
	if i == 0 {
		return ahead
	}
	last := u.held[i-1]
	return ahead + last.before + min(last.last, number-1) - last.first + 1
}

// Unfinished reads the orders that a group has not acknowledged. Entries that were held at
// an earlier reading, the zero value for none, are not read again.
func (i Inspector) Unfinished(ctx context.Context, key, group string, earlier Unfinished) (Unfinished, error) {
	u, err := i.unfinished(ctx, key, group, earlier)
	if err != nil {
		return Unfinished{}, fmt.Errorf("unfinished orders of %s: %w", key, err)
	}
	return u, nil
}

func (i Inspector) unfinished(ctx context.Context, key, group string, earlier Unfinished) (u Unfinished, err error) {
	// The sum is read before the first unread entry: if there is none, all orders up to the
	// sum were read.
	if u.Appended, err = i.Client.Get(ctx, SumKey(key)).Int64(); err != nil && !errors.Is(err, redis.Nil) {
		return u, err
	}
	info, err := i.group(ctx, key, group)
	if err != nil {
		return u, err
	}
	u.Read = u.Appended
	first, err := i.Client.XRangeN(ctx, key, nextID(info.LastDeliveredID), "+", 1).Result()
	if err != nil {
		return u, err
	}
	if len(first) > 0 {
		_, last := numbers(first[0])
		u.Read = max(0, last-ordersOf(first[0]))
		u.Appended = max(u.Appended, last)
	}
	if info.Pending > 0 {
		u.held, err = i.held(ctx, key, group, info.LastDeliveredID, earlier)
	}
	return u, err
}

// held returns the pending entries up to one.
func (i Inspector) held(ctx context.Context, key, group, upTo string, earlier Unfinished) ([]span, error) {
	known := make(map[string]span, len(earlier.held))
	for _, s := range earlier.held {
		known[s.entry] = s
	}
	var held []span
	for start := "-"; ; {
		page, err := i.Client.XPendingExt(ctx, &redis.XPendingExtArgs{Stream: key, Group: group, Start: start, End: upTo,
			Count: countPage}).Result()
		if redis.HasErrorPrefix(err, "NOGROUP") {
			return nil, nil // lost in the meantime
		}
		if err != nil && !errors.Is(err, redis.Nil) {
			return nil, err
		}
		var unknown []string
		for _, p := range page {
			if s, ok := known[p.ID]; ok {
				held = append(held, s)
			} else {
				unknown = append(unknown, p.ID)
			}
		}
		read, err := i.spans(ctx, key, unknown)
		if err != nil {
			return nil, err
		}
		held = append(held, read...)
		if len(page) < countPage {
			break
		}
		start = nextID(page[len(page)-1].ID)
	}
	slices.SortFunc(held, func(a, b span) int { return cmp.Compare(a.first, b.first) })
	var n int64
	for k := range held {
		held[k].before = n
		n += held[k].last - held[k].first + 1
	}
	return held, nil
}

// spans reads the orders of some entries; it leaves out those that were deleted, and those
// without a sum.
func (i Inspector) spans(ctx context.Context, key string, entries []string) ([]span, error) {
	if len(entries) == 0 {
		return nil, nil
	}
	pipe := i.Client.Pipeline()
	replies := make([]*redis.XMessageSliceCmd, len(entries))
	for n, entry := range entries {
		replies[n] = pipe.XRangeN(ctx, key, entry, entry, 1)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, err
	}
	var spans []span
	for _, reply := range replies {
		found, err := reply.Result()
		if err != nil {
			return nil, err
		}
		for _, entry := range found {
			if first, last := numbers(entry); last > 0 {
				spans = append(spans, span{entry: entry.ID, first: first, last: last})
			}
		}
	}
	return spans, nil
}

// numbers returns the numbers of the first and the last order of an entry; zero when it
// has no sum.
func numbers(entry redis.XMessage) (first, last int64) {
	if last = sumOf(entry); last == 0 {
		return 0, 0
	}
	return last - ordersOf(entry) + 1, last
}

// Numbered is a message with the number of its first order; 0 = unknown.
type Numbered struct {
	*Message
	First int64
}

const (
	// numberedPage is how many entries one command reads: a script appends one entry, and few
	// run in one millisecond.
	numberedPage = 16
	// numberedPages bounds the commands of one call.
	numberedPages = 8
	// appendSlack is by how much the id of an entry may be older than the clock reading of
	// the script that appended it: Redis may stop its clock while a script runs.
	appendSlack = 5 * time.Millisecond
)

// AppendedAt visits the messages of a stream from a time of Redis on, in order, until visit
// returns false. It reads a bounded number of them.
func (i Inspector) AppendedAt(ctx context.Context, key string, at time.Time, visit func(Numbered) bool) error {
	next := strconv.FormatInt(max(0, at.Add(-appendSlack).UnixMilli()), 10) + "-0"
	for range numberedPages {
		page, err := i.Client.XRangeN(ctx, key, next, "+", numberedPage).Result()
		if err != nil {
			return fmt.Errorf("messages of %s: %w", key, err)
		}
		for _, entry := range page {
			first, _ := numbers(entry)
			if msg, ok := FromEntry(entry); ok && !visit(Numbered{msg, first}) {
				return nil
			}
		}
		if len(page) < numberedPage {
			return nil
		}
		next = nextID(page[len(page)-1].ID)
	}
	return nil
}
