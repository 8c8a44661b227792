package stream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/internal/platform/clock"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/redisconn"
)

// countPage is how many entries one command reads.
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
	return i.progress(ctx, key, info, s)
}

// progress completes the statistics of a stream by what a group has read.
func (i Inspector) progress(ctx context.Context, key string, info redis.XInfoGroup, s Stats) (_ Stats, err error) {
	oldest := ""
	if info.Pending > 0 {
		if s.Pending, oldest, err = i.pending(ctx, key, info.Name); err != nil {
			return s, err
		}
	}
	if s.Length == 0 && oldest == "" {
		return s, nil
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
		s.OldestAge = max(0, i.Clock.Now().Sub(time.UnixMilli(int64(ms)))) // a time, far below the border
	}
	return s, nil
}

// group returns the group's info from Redis; a missing group has read nothing.
func (i Inspector) group(ctx context.Context, key, group string) (redis.XInfoGroup, error) {
	return groupIn(i.Client.XInfoGroups(ctx, key), group)
}

func groupIn(reply *redis.XInfoGroupsCmd, group string) (redis.XInfoGroup, error) {
	none := redis.XInfoGroup{LastDeliveredID: "0-0", Lag: -1}
	groups, err := reply.Result()
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

// pending returns the number of orders that the group has read and not acknowledged, and the id of the
// oldest entry.
func (i Inspector) pending(ctx context.Context, key, group string) (orders int64, oldest string, err error) {
	err = i.eachPending(ctx, key, group, func(id string, entry *redis.XMessage) {
		oldest = cmp.Or(oldest, id)
		if entry == nil { // deleted, still pending
			orders++
			return
		}
		orders += ordersOf(*entry)
	})
	return orders, oldest, err
}

// eachPending calls visit with the entries that a group has read and not acknowledged, oldest first; a
// deleted one is nil.
func (i Inspector) eachPending(ctx context.Context, key, group string,
	visit func(id string, entry *redis.XMessage),
) error {
	for start := "-"; ; {
		page, err := i.Client.XPendingExt(ctx, &redis.XPendingExtArgs{Stream: key, Group: group, Start: start, End: "+",
			Count: countPage}).Result()
		if errors.Is(err, redis.Nil) || redis.HasErrorPrefix(err, "NOGROUP") {
			return nil // lost in the meantime
		}
		if err != nil || len(page) == 0 {
			return err
		}
		pipe := i.Client.Pipeline()
		entries := collect.Map(page, func(p redis.XPendingExt) *redis.XMessageSliceCmd {
			return pipe.XRangeN(ctx, key, p.ID, p.ID, 1)
		})
		if _, err := pipe.Exec(ctx); err != nil {
			return err
		}
		for n, reply := range entries {
			if found := reply.Val(); len(found) > 0 {
				visit(page[n].ID, &found[0])
			} else {
				visit(page[n].ID, nil)
			}
		}
		if len(page) < countPage {
			return nil
		}
		start = nextID(page[len(page)-1].ID)
	}
}

// Measure sets the depth gauges of some streams for a group. A gauge that cannot be
// read keeps its last value.
func (i Inspector) Measure(ctx context.Context, m *Metrics, group string, topics []string) error {
	pipe := i.Client.Pipeline()
	lengths, groups := make([]*redis.IntCmd, len(topics)), make([]*redis.XInfoGroupsCmd, len(topics))
	for n, topic := range topics {
		lengths[n], groups[n] = pipe.XLen(ctx, topic), pipe.XInfoGroups(ctx, topic)
	}
	redisconn.ExecEach(ctx, pipe)
	var errs []error
	for n, topic := range topics {
		length, err := lengths[n].Result()
		info, groupErr := groupIn(groups[n], group)
		var s Stats
		if err = errors.Join(err, groupErr); err == nil {
			s, err = i.progress(ctx, topic, info, Stats{Length: length})
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("statistics of %s: %w", topic, err))
			continue
		}
		m.depth(topic, s)
	}
	return errors.Join(errs...)
}

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
	known := collect.Index(earlier.held, func(s span) string { return s.entry })
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
	replies := collect.Map(entries, func(entry string) *redis.XMessageSliceCmd {
		return pipe.XRangeN(ctx, key, entry, entry, 1)
	})
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

// Backlog calls visit with every message in a stream, oldest first: unread, pending,
// and handled but not trimmed yet. It skips entries that cannot be decoded; the router
// of the stream moves them to the dead letters.
func Backlog(ctx context.Context, client redis.UniversalClient, key string, visit func(msg *Message)) error {
	return backlogFrom(ctx, client, key, "-", visit)
}

// Unacknowledged is Backlog without the messages that the group has acknowledged. The pending ones
// come first: a message that is delivered in the meantime is visited twice.
func Unacknowledged(ctx context.Context, client redis.UniversalClient, key, group string,
	visit func(msg *Message, pending bool),
) error {
	i := Inspector{Client: client}
	info, err := i.group(ctx, key, group)
	if err != nil {
		return fmt.Errorf("read the group of %s: %w", key, err)
	}
	err = i.eachPending(ctx, key, group, func(_ string, entry *redis.XMessage) {
		if entry == nil {
			return
		}
		if msg, reason := unmarshal(entry.Values); reason == "" {
			visit(msg, true)
		}
	})
	if err != nil {
		return fmt.Errorf("read pending messages of %s: %w", key, err)
	}
	return backlogFrom(ctx, client, key, nextID(info.LastDeliveredID), func(msg *Message) { visit(msg, false) })
}

func backlogFrom(ctx context.Context, client redis.UniversalClient, key, first string, visit func(msg *Message)) error {
	for {
		entries, err := client.XRangeN(ctx, key, first, "+", countPage).Result()
		if err != nil {
			return fmt.Errorf("read messages of %s: %w", key, err)
		}
		for _, e := range entries {
			if msg, reason := unmarshal(e.Values); reason == "" {
				visit(msg)
			}
		}
		if len(entries) < countPage {
			return nil
		}
		first = nextID(entries[len(entries)-1].ID)
	}
}
