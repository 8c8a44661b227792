package stream

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/redis/go-redis/v9"

	"seckill/internal/platform/clock"
)

// ledger records the state of every entry in every group.
type ledger struct {
	*rig
	rnd     *rand.Rand
	all     []string                       // ids in order
	read    map[string]int                 // group -> number of entries of all that it has read
	pending map[string]map[string]struct{} // group -> ids
}

func newLedger(r *rig, seed uint64) *ledger {
	l := &ledger{rig: r, rnd: rand.New(rand.NewPCG(seed, 1)), read: map[string]int{}, pending: map[string]map[string]struct{}{}}
	return l
}

func (l *ledger) group(name string) {
	l.t.Helper()
	if err := l.redis.XGroupCreateMkStream(context.Background(), l.topic, name, "0").Err(); err != nil {
		l.t.Fatal(err)
	}
	l.pending[name] = map[string]struct{}{}
}

// act performs one random operation for one group.
func (l *ledger) act(group string) {
	l.t.Helper()
	ctx := context.Background()
	switch l.rnd.IntN(3) {
	case 0:
		l.all = append(l.all, l.publish(len(l.all), 1+l.rnd.IntN(20))...)
	case 1:
		streams, err := l.redis.XReadGroup(ctx, &redis.XReadGroupArgs{
			Group: group, Consumer: "c", Streams: []string{l.topic, ">"}, Count: int64(1 + l.rnd.IntN(15)), Block: -1,
		}).Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			l.t.Fatal(err)
		}
		for _, s := range streams {
			for _, m := range s.Messages {
				if want := l.all[l.read[group]]; m.ID != want {
					l.t.Fatalf("%s read %s, want %s: an unread entry was trimmed", group, m.ID, want)
				}
				l.read[group]++
				l.pending[group][m.ID] = struct{}{}
			}
		}
	default:
		for id := range l.pending[group] {
			if l.rnd.IntN(2) == 0 {
				if err := l.redis.XAck(ctx, l.topic, group, id).Err(); err != nil {
					l.t.Fatal(err)
				}
				delete(l.pending[group], id)
			}
		}
	}
}

// check compares the stream with the entries that must still exist.
func (l *ledger) check() {
	l.t.Helper()
	entries, err := l.redis.XRange(context.Background(), l.topic, "-", "+").Result()
	if err != nil {
		l.t.Fatal(err)
	}
	there := map[string]bool{}
	for _, e := range entries {
		there[e.ID] = true
	}
	for group, ids := range l.pending {
		for id := range ids {
			if !there[id] {
				l.t.Fatalf("%s is pending in %s and was trimmed", id, group)
			}
		}
		for _, id := range l.all[l.read[group]:] {
			if !there[id] {
				l.t.Fatalf("%s is unread in %s and was trimmed", id, group)
			}
		}
	}
}

func TestTrimmingNeverLosesAnEntry(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *rig) {
		groups := []string{"orders", "audit"}
		l := newLedger(r, 7)
		for _, g := range groups {
			l.group(g)
		}
		trimmer := NewTrimmer(r.redis, []string{r.topic, r.topic + ":never-written"}, r.tally.metrics())
		for range 600 {
			l.act(groups[l.rnd.IntN(2)])
			if l.rnd.IntN(4) == 0 {
				if _, err := trimmer.Step(t.Context()); err != nil {
					t.Fatal(err)
				}
				l.check()
			}
		}
		// Everything is read and acknowledged: one entry remains.
		for _, g := range groups {
			l.drain(g)
		}
		if _, err := trimmer.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := r.redis.XLen(t.Context(), r.topic).Val(); n != 1 {
			t.Errorf("%d entries left of %d", n, len(l.all))
		}
		if n := r.tally.of(Trimmed); n != len(l.all)-1 {
			t.Errorf("%d trimmed of %d", n, len(l.all))
		}
	})
}

// drain reads and acknowledges all entries of a group.
func (l *ledger) drain(group string) {
	l.t.Helper()
	ctx := context.Background()
	streams, err := l.redis.XReadGroup(ctx, &redis.XReadGroupArgs{
		Group: group, Consumer: "c", Streams: []string{l.topic, ">"}, Block: -1,
	}).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		l.t.Fatal(err)
	}
	for _, s := range streams {
		for _, m := range s.Messages {
			l.pending[group][m.ID] = struct{}{}
			l.read[group]++
		}
	}
	for id := range l.pending[group] {
		if err := l.redis.XAck(ctx, l.topic, group, id).Err(); err != nil {
			l.t.Fatal(err)
		}
		delete(l.pending[group], id)
	}
}

func TestAStreamWithoutAGroupIsNotTrimmed(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *rig) {
		r.publish(0, 10)
		counts, err := NewTrimmer(r.redis, []string{r.topic}, nil).Step(t.Context())
		if err != nil || counts["trimmed"] != 0 {
			t.Error(counts, err)
		}
		if n := r.redis.XLen(t.Context(), r.topic).Val(); n != 10 {
			t.Errorf("%d entries", n)
		}
	})
}

func TestOneSickStreamDoesNotKeepTheOthersFromBeingTrimmed(t *testing.T) {
	t.Parallel()
	r := setup(t)
	if err := r.redis.Set(t.Context(), r.topic+"x", "no stream", 0).Err(); err != nil {
		t.Fatal(err)
	}
	r.publish(0, 5)
	l := newLedger(r, 1)
	l.group("orders")
	l.drain("orders")
	counts, err := NewTrimmer(r.redis, []string{r.topic + "x", r.topic}, nil).Step(t.Context())
	if err == nil || counts["trimmed"] != 4 {
		t.Error(counts, err)
	}
}

func TestStatisticsAreTrue(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *rig) {
		l := newLedger(r, 11)
		ctx := t.Context()
		now := clock.NewFake(systemClock{}.Now().Add(1e12))
		look := func() Stats {
			t.Helper()
			s, err := Inspector{Client: r.redis, Clock: now}.Stats(ctx, r.topic, "orders")
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		if s := look(); s != (Stats{}) {
			t.Errorf("no stream: %+v", s)
		}
		l.all = append(l.all, l.publish(0, 3)...)
		if s := look(); s.Unread != 3 || s.Pending != 0 || s.OldestAge == 0 {
			t.Errorf("no group: %+v", s)
		}
		l.group("orders")
		trimmer := NewTrimmer(r.redis, []string{r.topic}, nil)
		for range 300 {
			l.act("orders")
			if l.rnd.IntN(5) == 0 {
				if _, err := trimmer.Step(ctx); err != nil {
					t.Fatal(err)
				}
			}
			if l.rnd.IntN(20) == 0 && l.read["orders"] < len(l.all) { // an operator deletes an unread entry
				i := l.read["orders"] + l.rnd.IntN(len(l.all)-l.read["orders"])
				if err := r.redis.XDel(ctx, r.topic, l.all[i]).Err(); err != nil {
					t.Fatal(err)
				}
				l.all = append(l.all[:i:i], l.all[i+1:]...)
			}
			s := look()
			if int(s.Unread) != len(l.all)-l.read["orders"] || int(s.Pending) != len(l.pending["orders"]) {
				t.Fatalf("%+v, want %d unread and %d pending", s, len(l.all)-l.read["orders"], len(l.pending["orders"]))
			}
			var unread, pending int64
			err := Unacknowledged(ctx, r.redis, r.topic, "orders", func(_ *Message, read bool) {
				if read {
					pending++
				} else {
					unread++
				}
			})
			if err != nil || unread != s.Unread || pending != s.Pending {
				t.Fatalf("unacknowledged: %d unread and %d pending, %v; want %d and %d", unread, pending, err, s.Unread, s.Pending)
			}
			if left := s.Unread + s.Pending; (left == 0) != (s.OldestAge == 0) {
				t.Fatalf("%+v", s)
			}
		}
	})
}

func TestTheBacklogHoldsEveryMessageThatIsNotTrimmed(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *rig) {
		const total = 2500 // more than two pages
		r.publish(0, total)
		r.add("not", "a message")
		r.read("one", 100)
		next := 0
		err := Backlog(t.Context(), r.redis, r.topic, func(msg *Message) {
			if msg.UUID != name(next) || msg.Metadata.Get("epoch") != "3" {
				t.Errorf("%s came %d.", msg.UUID, next)
			}
			next++
		})
		if err != nil || next != total {
			t.Errorf("%d messages, %v", next, err)
		}
		if err := Backlog(t.Context(), r.redis, r.topic+"none", func(*Message) { t.Error("a message") }); err != nil {
			t.Error(err)
		}
	})
}
