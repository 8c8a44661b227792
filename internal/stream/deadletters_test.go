package stream

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message/router/middleware"
	"github.com/google/go-cmp/cmp"

	"seckill/internal/fault"
	"seckill/internal/redisconn"
	"seckill/internal/testenv"
)

// aside makes the entry with an id a dead letter, as the router does.
func (r *rig) aside(entry string) {
	r.t.Helper()
	msg := NewMessage("message-"+entry, nil)
	msg.Metadata.Set(metaEntry, entry)
	msg.Metadata.Set(middleware.PoisonedTopicKey, r.topic)
	msg.Metadata.Set(middleware.ReasonForPoisonedKey, "no such sale")
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // the handler's deadline has passed
	msg.SetContext(ctx)
	if err := r.dead.Publish(r.dead.Key(), msg); err != nil {
		r.t.Fatal(err)
	}
}

func fieldsAre(pairs ...string) []Field {
	var fields []Field
	for i := 0; i < len(pairs); i += 2 {
		fields = append(fields, Field{Name: []byte(pairs[i]), Value: []byte(pairs[i+1])})
	}
	return fields
}

func TestALetterHoldsTheEntryAsItWas(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *rig) {
		// Arbitrary bytes, an order that no map keeps, a repeated name, no value.
		fields := []string{"z", "\x00\xff\xfe", "a", "1", "a", "2", "", "", "payload", "{}"}
		var values []any
		for _, f := range fields {
			values = append(values, f)
		}
		entry := r.add(values...)
		r.aside(entry)
		letters := r.letters()
		if len(letters) != 1 {
			t.Fatalf("letters: %+v", letters)
		}
		letter, err := r.dead.Inspect(t.Context(), letters[0].ID)
		if err != nil || letter == nil {
			t.Fatal(letter, err)
		}
		if diff := cmp.Diff(fieldsAre(fields...), letter.Fields); diff != "" {
			t.Error(diff)
		}
		if letter.Stream != r.topic || letter.Entry != entry || letter.Reason != "no such sale" || letter.MessageID != "message-"+entry || letter.At.IsZero() {
			t.Errorf("%+v", letter)
		}
	})
}

func TestALetterThatIsNoEntryIsNoCursor(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *rig) {
		for _, after := range []string{"some text", "1", "-", "(1-1", "1-x"} {
			if _, err := r.dead.List(t.Context(), after, 1); fault.CodeOf(err) != fault.BadInput {
				t.Errorf("after %q: %v", after, err)
			}
		}
	})
}

func TestAnEntryIsSetAsideOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *rig) {
		one, two := r.add("a", "1"), r.add("a", "2")
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() { r.aside(one); r.aside(two) })
		}
		all.Wait()
		ctx := t.Context()
		total, err := r.dead.Len(ctx)
		if err != nil || total != 2 {
			t.Errorf("%d letters, %v", total, err)
		}
		if n, err := r.dead.LenOf(ctx, r.topic); err != nil || n != 2 {
			t.Errorf("%d of the stream, %v", n, err)
		}
		if n, err := r.dead.LenOf(ctx, "another"); err != nil || n != 0 {
			t.Errorf("%d of another stream, %v", n, err)
		}
		if n := r.tally.of(DeadLettered); n != 2 {
			t.Errorf("counted %d", n)
		}
	})
}

// The command that notes the retry takes effect, and its reply is lost.
func TestTheOnlyRetryOfALetterSurvivesALostReply(t *testing.T) {
	t.Parallel()
	r := setup(t)
	proxy := testenv.NewProxy(t, testenv.RedisAddr(t))
	conn, err := redisconn.Open(t.Context(), testenv.RedisURLAt(proxy.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	dead := NewDeadLetters(DeadLettersConfig{Client: conn.Cmd, Key: r.dead.key, Log: silent(), Metrics: r.tally.metrics()})
	r.publish(0, 1)
	r.route(func(*Message) error { return Permanent(errors.New("sale not found")) }, nil)
	r.settled()
	first := r.letters()[0]
	proxy.LoseReplyTo(retriedSuffix)
	if done, err := dead.RetryOnce(t.Context(), first); !done || err != nil {
		t.Errorf("the first time: %v, %v", done, err)
	}
	r.settled()
	letters := r.letters()
	if len(letters) != 1 || letters[0].ID == first.ID || letters[0].MessageID != first.MessageID {
		t.Fatalf("letters: %+v", letters)
	}
	if done, err := dead.RetryOnce(t.Context(), letters[0]); done || err != nil {
		t.Errorf("the second time: %v, %v", done, err)
	}
}

func TestAReplayedMessageIsHandledOnceMore(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *rig) {
		r.publish(0, 1)
		var mu sync.Mutex
		cured := false      // guarded by mu
		var seen []*Message // guarded by mu
		r.route(func(msg *Message) error {
			mu.Lock()
			defer mu.Unlock()
			if !cured {
				return Permanent(errors.New("sale not found"))
			}
			seen = append(seen, msg.Copy())
			return nil
		}, nil)
		r.settled()
		// Replayed before the cause is removed, it becomes another letter.
		first := r.letters()[0]
		if outcome, err := r.dead.Replay(t.Context(), first.ID); outcome != Replayed || err != nil {
			t.Fatal(outcome, err)
		}
		r.settled()
		letters := r.letters()
		if len(letters) != 1 || letters[0].ID == first.ID || letters[0].MessageID != first.MessageID {
			t.Fatalf("letters: %+v", letters)
		}
		mu.Lock()
		cured = true
		mu.Unlock()
		// Eight operators concurrently.
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if outcome, err := r.dead.Replay(context.Background(), letters[0].ID); err != nil || outcome == NotReplayable {
					t.Error(outcome, err)
				}
			})
		}
		all.Wait()
		r.settled()
		mu.Lock()
		defer mu.Unlock()
		if len(seen) != 1 {
			t.Fatalf("handled %d times", len(seen))
		}
		if seen[0].UUID != name(0) || string(seen[0].Payload) != `{"number":0}` || seen[0].Metadata.Get("epoch") != "3" {
			t.Errorf("another message: %+v", seen[0])
		}
		if n, err := r.dead.Len(t.Context()); n != 0 || err != nil {
			t.Errorf("%d letters left, %v", n, err)
		}
		if n, err := r.dead.LenOf(t.Context(), r.topic); n != 0 || err != nil {
			t.Errorf("%d counted, %v", n, err)
		}
	})
}

func TestAReplayCutInTheMiddleIsFinishedByTheNext(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.aside(r.add("a", "1"))
	id := r.letters()[0].ID
	// The process was killed after the entry was appended, before the letter was
	// removed.
	err := r.dead.replay.Run(t.Context(), r.redis, []string{r.topic, SumKey(r.topic), r.topic + replayedSuffix + id}, 60_000, 1, "a", "1").Err()
	if err != nil {
		t.Fatal(err)
	}
	if outcome, err := r.dead.Replay(t.Context(), id); outcome != Replayed || err != nil {
		t.Fatal(outcome, err)
	}
	if n := r.redis.XLen(t.Context(), r.topic).Val(); n != 2 {
		t.Errorf("%d entries, want the first and one replay", n)
	}
	if outcome, err := r.dead.Replay(t.Context(), id); outcome != NoLetter || err != nil {
		t.Error(outcome, err)
	}
}

func TestADroppedLetterIsGone(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *rig) {
		ctx := t.Context()
		r.aside(r.add("a", "1"))
		id := r.letters()[0].ID
		if dropped, err := r.dead.Drop(ctx, id); !dropped || err != nil {
			t.Fatal(dropped, err)
		}
		if dropped, err := r.dead.Drop(ctx, id); dropped || err != nil {
			t.Error(dropped, err)
		}
		if letter, err := r.dead.Inspect(ctx, id); letter != nil || err != nil {
			t.Error(letter, err)
		}
		for _, id := range []string{"", "-", "+", "x", "1-1"} {
			if outcome, err := r.dead.Replay(ctx, id); outcome != NoLetter || err != nil {
				t.Errorf("%q: %s, %v", id, outcome, err)
			}
		}
	})
}

func TestLettersAreListedPageByPage(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *rig) {
		var want []string
		for i := range 25 {
			entry := r.add("n", i)
			r.aside(entry)
			want = append(want, entry)
		}
		var got []string
		after := ""
		for {
			page, err := r.dead.List(t.Context(), after, 10)
			if err != nil {
				t.Fatal(err)
			}
			if len(page) == 0 {
				break
			}
			for _, l := range page {
				got = append(got, l.Entry)
				after = l.ID
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestWhatCannotBeReplayedStays(t *testing.T) {
	t.Parallel()
	r := setup(t)
	gone := NewMessage("", nil) // could not be decoded, and Redis was emptied in the meantime
	gone.Metadata.Set(metaEntry, "5-1")
	gone.Metadata.Set(middleware.PoisonedTopicKey, r.topic)
	if err := r.dead.Publish("", gone); err != nil {
		t.Fatal(err)
	}
	known := decodeEntry(t, 3) // could be decoded: the decoded message is kept
	known.Metadata.Set(middleware.PoisonedTopicKey, r.topic)
	if err := r.dead.Publish("", known); err != nil {
		t.Fatal(err)
	}
	letters := r.letters()
	if outcome, err := r.dead.Replay(t.Context(), letters[0].ID); outcome != NotReplayable || err != nil {
		t.Error(outcome, err)
	}
	if outcome, err := r.dead.Replay(t.Context(), letters[1].ID); outcome != Replayed || err != nil {
		t.Error(outcome, err)
	}
	msg := r.next(r.subscribe(r.subscriber("one", nil)))
	if msg.UUID != name(3) || msg.Metadata.Get("epoch") != "3" {
		t.Errorf("%+v", msg)
	}
	msg.Ack()
	if n, err := r.dead.Len(t.Context()); n != 1 || err != nil {
		t.Errorf("%d letters, %v", n, err)
	}
}
