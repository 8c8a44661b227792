package deadletter_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message/router/middleware"
	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"seckill/internal/platform/clock"
	"seckill/internal/platform/deadletter"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
	"seckill/internal/platform/redisconn"
	"seckill/internal/platform/stream"
	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

var quiet = slog.New(slog.DiscardHandler)

// inbox counts the reports of changes.
type inbox struct {
	mu sync.Mutex
	n  int // guarded by mu
}

func (i *inbox) Changed(context.Context) { i.mu.Lock(); defer i.mu.Unlock(); i.n++ }

func (i *inbox) reports() int { i.mu.Lock(); defer i.mu.Unlock(); return i.n }

// rig is a store with the stream that its letters come from.
type rig struct {
	t       *testing.T
	db      *postgres.DB
	redis   redis.UniversalClient
	clock   *clock.Fake
	inbox   *inbox
	store   *deadletter.Store
	letters *stream.DeadLetters
	topic   string
	key     string // of the letters of former releases
}

func newRig(t *testing.T, db *postgres.DB, conn *redisconn.Conn, prefix string) *rig {
	r := &rig{t: t, db: db, redis: conn.Cmd, clock: clock.NewFake(time.Now()), inbox: &inbox{}, topic: prefix + "{s07}:orders", key: prefix + "{dead}:orders"}
	r.store = deadletter.NewStore(deadletter.Config{DB: db, Clock: r.clock, Inbox: r.inbox})
	r.letters = stream.NewDeadLetters(stream.DeadLettersConfig{Client: conn.Cmd, Record: r.store, Key: r.key, Log: quiet})
	return r
}

// onBoth runs a test on Postgres and on SQLite.
func onBoth(t *testing.T, test func(t *testing.T, r *rig)) {
	t.Parallel()
	testdb.OnDatabases(t, func(t *testing.T, db *postgres.DB) {
		conn, prefix := testenv.Redis(t)
		test(t, newRig(t, db, conn, prefix))
	})
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// add appends an entry to the stream.
func (r *rig) add(values ...string) (entry string) {
	r.t.Helper()
	entry, err := r.redis.XAdd(r.t.Context(), &redis.XAddArgs{Stream: r.topic, Values: values}).Result()
	r.must(err)
	return entry
}

// aside makes an entry a dead letter, as the router does.
func (r *rig) aside(entry string) {
	r.t.Helper()
	msg := stream.NewMessage("message-"+entry, nil)
	msg.Metadata.Set("_stream_entry", entry)
	msg.Metadata.Set(middleware.PoisonedTopicKey, r.topic)
	msg.Metadata.Set(middleware.ReasonForPoisonedKey, "no such sale")
	r.must(r.letters.Publish("", msg))
}

func (r *rig) list() []stream.Letter {
	r.t.Helper()
	list, err := r.store.List(r.t.Context(), deadletter.List{Limit: 500, Fields: true})
	r.must(err)
	return list
}

func (r *rig) only() stream.Letter {
	r.t.Helper()
	list := r.list()
	if len(list) != 1 {
		r.t.Fatalf("%d letters: %+v", len(list), list)
	}
	return list[0]
}

func (r *rig) end(letter string, as deadletter.State) bool {
	r.t.Helper()
	ended, err := r.store.End(r.t.Context(), letter, as)
	r.must(err)
	return ended
}

// entries returns the raw entries of the stream, with repeated names.
func (r *rig) entries() (all [][]any) {
	r.t.Helper()
	reply, err := r.redis.Do(r.t.Context(), "xrange", r.topic, "-", "+").Slice()
	r.must(err)
	for _, e := range reply {
		all = append(all, e.([]any)[1].([]any))
	}
	return all
}

func fieldsAre(pairs ...string) (fields []stream.Field) {
	for i := 0; i < len(pairs); i += 2 {
		fields = append(fields, stream.Field{Name: []byte(pairs[i]), Value: []byte(pairs[i+1])})
	}
	return fields
}

func TestAReplayIsTheSameMessageAfterRedisWasEmptied(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		// Arbitrary bytes, an order that no map keeps, a repeated name, no value.
		fields := []string{"z", "\x00\xff\xfe", "a", "1", "a", "2", "", "", "payload", "{}"}
		entry := r.add(fields...)
		r.aside(entry)
		r.must(r.redis.Del(t.Context(), r.topic, stream.SumKey(r.topic)).Err())
		letter := r.only()
		if diff := cmp.Diff(fieldsAre(fields...), letter.Fields); diff != "" {
			t.Error(diff)
		}
		if letter.Stream != r.topic || letter.Entry != entry || letter.Reason != "no such sale" || letter.MessageID != "message-"+entry ||
			letter.At.Sub(r.clock.Now()).Abs() > time.Millisecond {
			t.Errorf("%+v", letter)
		}
		if ok, err := r.letters.Replay(t.Context(), letter); !ok || err != nil {
			t.Fatal(ok, err)
		}
		want := []any{"orders", "1", "orders_sum", "1"}
		for _, f := range fields {
			want = append(want, f)
		}
		if diff := cmp.Diff([][]any{want}, r.entries()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestALetterOfAnyBytesIsKept(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		dirty := "a\x00b\xff\xc3" + strings.Repeat("💥", 2000)
		fresh, err := r.store.Add(t.Context(), stream.Letter{
			Stream: dirty, Entry: dirty, MessageID: dirty, Handler: dirty, Reason: dirty, Deliveries: -1, Attempts: -1, Fields: fieldsAre(dirty, dirty),
		})
		if !fresh || err != nil {
			t.Fatal(fresh, err)
		}
		letter := r.only()
		for name, text := range map[string]string{
			"stream": letter.Stream, "entry": letter.Entry, "message": letter.MessageID, "handler": letter.Handler, "reason": letter.Reason,
		} {
			if !strings.HasPrefix(text, "a?b?") {
				t.Errorf("%s %q", name, text)
			}
		}
		if diff := cmp.Diff(fieldsAre(dirty, dirty), letter.Fields); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAnEntryHasOneOpenLetter(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		one, two := r.add("a", "1"), r.add("a", "2")
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() { r.aside(one); r.aside(two) })
		}
		all.Wait()
		if n, err := r.store.Count(t.Context()); err != nil || n != 2 || r.inbox.reports() != 2 {
			t.Errorf("%d letters, %d reports, %v", n, r.inbox.reports(), err)
		}
		// Redis goes back to an older state and delivers the entry again.
		for _, as := range []deadletter.State{deadletter.Replayed, deadletter.Retried, deadletter.Dropped} {
			before := r.list()[0]
			if before.Entry != one {
				before = r.list()[1]
			}
			if !r.end(before.ID, as) || r.end(before.ID, deadletter.Dropped) {
				t.Errorf("%s: not ended once", as)
			}
			if gone, err := r.store.Letter(t.Context(), before.ID); gone != nil || err != nil {
				t.Errorf("%s: %+v, %v", as, gone, err)
			}
			r.aside(one)
			if n, err := r.store.Count(t.Context()); err != nil || n != 2 {
				t.Errorf("%s: %d letters, %v", as, n, err)
			}
		}
	})
}

// Redis was emptied, and its clock set back.
func TestAnotherMessageUnderTheIdOfAnEntryIsAnotherLetter(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		for _, message := range []string{"one", "two", "two", "one"} {
			if _, err := r.store.Add(t.Context(), stream.Letter{Stream: r.topic, Entry: "5-1", MessageID: message}); err != nil {
				t.Fatal(err)
			}
		}
		if list := r.list(); len(list) != 2 || list[0].MessageID != "one" || list[1].MessageID != "two" {
			t.Errorf("%+v", list)
		}
	})
}

func TestLettersAreListedPageByPage(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		var want, got []string
		for i := range 25 {
			entry := fmt.Sprintf("%d-1", i)
			_, err := r.store.Add(t.Context(), stream.Letter{Stream: r.topic, Entry: entry, Fields: fieldsAre("a", "1")})
			r.must(err)
			want = append(want, entry)
		}
		_, err := r.store.Add(t.Context(), stream.Letter{Stream: "another", Entry: "1-1"})
		r.must(err)
		for after := ""; ; {
			page, err := r.store.List(t.Context(), deadletter.List{After: after, Stream: r.topic, Limit: 10})
			r.must(err)
			for _, l := range page {
				got, after = append(got, l.Entry), l.ID
				if l.Fields != nil {
					t.Errorf("fields in a list: %+v", l)
				}
			}
			if len(page) < 10 {
				break
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		for _, after := range []string{"some text", "1-1", id.New[id.User]().Public()} {
			if _, err := r.store.List(t.Context(), deadletter.List{After: after}); fault.CodeOf(err) != fault.BadInput {
				t.Errorf("after %q: %v", after, err)
			}
			if l, err := r.store.Letter(t.Context(), after); l != nil || err != nil {
				t.Errorf("letter %q: %+v, %v", after, l, err)
			}
			if r.end(after, deadletter.Dropped) {
				t.Errorf("%q was ended", after)
			}
		}
	})
}

func TestEndedLettersAreDeletedAfterAMonth(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		r.aside(r.add("a", "1"))
		ended := r.only()
		if known, err := r.store.Retried(t.Context(), ended.MessageID); known || err != nil {
			t.Error(known, err)
		}
		r.end(ended.ID, deadletter.Retried)
		r.aside(r.add("a", "2"))
		for _, step := range []struct {
			days, deleted int
			known         bool
		}{{29, 0, true}, {2, 1, false}} {
			r.clock.Advance(time.Duration(step.days) * 24 * time.Hour)
			counts, err := r.store.Purge(t.Context())
			if err != nil || counts["dead_letters_deleted"] != step.deleted {
				t.Errorf("after %d more days: %v, %v", step.days, counts, err)
			}
			if known, err := r.store.Retried(t.Context(), ended.MessageID); known != step.known || err != nil {
				t.Errorf("after %d more days: retried %v, %v", step.days, known, err)
			}
		}
		r.only()
	})
}

// Eight operators at once, and one whose process was killed between the two steps.
func TestAReplayIsAppendedOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		r.aside(r.add("a", "1"))
		letter := r.only()
		if ok, err := r.letters.Replay(t.Context(), letter); !ok || err != nil { // killed here
			t.Fatal(ok, err)
		}
		var all sync.WaitGroup
		var mu sync.Mutex
		ended := 0
		for range 8 {
			all.Go(func() {
				ok, err := r.letters.Replay(context.Background(), letter)
				if !ok || err != nil {
					t.Error(ok, err)
				}
				first, err := r.store.End(context.Background(), letter.ID, deadletter.Replayed)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Error(err)
				}
				if first {
					ended++
				}
			})
		}
		all.Wait()
		if n := len(r.entries()); n != 2 || ended != 1 {
			t.Errorf("%d entries, want the first and one replay; ended %d times", n, ended)
		}
	})
}

// old writes a letter as release 0.1 does, and returns its id.
func (r *rig) old(at time.Time, entry, message, fields string) string {
	r.t.Helper()
	letter, err := r.redis.XAdd(r.t.Context(), &redis.XAddArgs{Stream: r.key, ID: fmt.Sprintf("%d-*", at.UnixMilli()), Values: []string{
		"stream", r.topic, "entry", entry, "message", message, "handler", "orders", "reason", "no\x00\xff", "deliveries", "2", "attempts", "1", "fields", fields,
	}}).Result()
	r.must(err)
	r.must(r.redis.HSet(r.t.Context(), r.key+":index", "e:"+r.topic+"/"+entry, letter).Err())
	r.must(r.redis.HIncrBy(r.t.Context(), r.key+":index", "n:"+r.topic, 1).Err())
	return letter
}

func TestLettersOfAnOlderReleaseAreImportedOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		at := r.clock.Now().Add(-time.Hour)
		old := r.old(at, "1-1", "m\x001", `[{"n":"YQ==","v":"AP8="},{"n":"YQ==","v":"Mg=="}]`)
		values := r.redis.XRange(t.Context(), r.key, old, old).Val()[0].Values
		r.old(at.Add(time.Minute), "2-1", "", "damaged")
		replayed := r.old(at.Add(2*time.Minute), "3-1", "m3", "[]") // by a process that was killed before it removed the letter
		r.must(r.redis.Set(t.Context(), r.topic+":replayed:"+replayed, 1, time.Hour).Err())
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if err := r.letters.Import(context.Background()); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		list := r.list()
		if len(list) != 2 {
			t.Fatalf("%+v", list)
		}
		first := list[0]
		if first.Entry != "1-1" || first.MessageID != "m?1" || first.Reason != "no??" || first.Deliveries != 2 || first.At.UnixMilli() != at.UnixMilli() {
			t.Errorf("%+v", first)
		}
		if diff := cmp.Diff(fieldsAre("a", "\x00\xff", "a", "2"), first.Fields); diff != "" {
			t.Error(diff)
		}
		if list[1].Entry != "2-1" || !strings.HasPrefix(list[1].Reason, "unreadable letter") || list[1].Fields != nil {
			t.Errorf("%+v", list[1])
		}
		if n := r.redis.Exists(t.Context(), r.key, r.key+":index").Val(); n != 0 && r.redis.XLen(t.Context(), r.key).Val()+r.redis.HLen(t.Context(), r.key+":index").Val() != 0 {
			t.Errorf("letters are left in Redis")
		}
		// Decided, and found in Redis again: a process was killed before it removed the letter, or Redis went back.
		r.end(first.ID, deadletter.Dropped)
		r.must(r.redis.XAdd(t.Context(), &redis.XAddArgs{Stream: r.key + "2", ID: old, Values: values}).Err())
		r.must(r.redis.Rename(t.Context(), r.key+"2", r.key).Err())
		r.must(r.letters.Import(t.Context()))
		if list := r.list(); len(list) != 1 || list[0].Entry != "2-1" || r.redis.XLen(t.Context(), r.key).Val() != 0 {
			t.Errorf("%+v", list)
		}
	})
}

// A record that refuses keeps the entry pending and the message where it is.
func TestALetterStaysInRedisWhileTheRecordRefusesIt(t *testing.T) {
	t.Parallel()
	conn, prefix := testenv.Redis(t)
	r := newRig(t, testdb.Postgres(t), conn, prefix)
	r.old(r.clock.Now(), "1-1", "m", "[]")
	_, err := r.db.SQL.ExecContext(t.Context(), "ALTER TABLE dead_letters RENAME TO away")
	r.must(err)
	if err := r.letters.Import(t.Context()); err == nil {
		t.Error("no error")
	}
	if n := r.redis.XLen(t.Context(), r.key).Val(); n != 1 {
		t.Errorf("%d letters in Redis", n)
	}
	_, err = r.db.SQL.ExecContext(t.Context(), "ALTER TABLE away RENAME TO dead_letters")
	r.must(err)
	r.must(r.letters.Import(t.Context()))
	r.only()
}
