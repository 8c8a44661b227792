package stream

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message/router/middleware"

	"seckill/internal/platform/redisconn"
	"seckill/internal/testenv"
)

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
		if ok, err := r.dead.Replay(t.Context(), r.letters()[0]); !ok || err != nil {
			t.Fatal(ok, err)
		}
		r.settled()
		letters := r.letters()
		if len(letters) != 2 || letters[0].Entry == letters[1].Entry || letters[0].MessageID != letters[1].MessageID {
			t.Fatalf("letters: %+v", letters)
		}
		mu.Lock()
		cured = true
		mu.Unlock()
		// Eight operators concurrently.
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if ok, err := r.dead.Replay(context.Background(), letters[1]); err != nil || !ok {
					t.Error(ok, err)
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
	})
}

// The script takes effect, and its reply is lost.
func TestAReplaySurvivesALostReply(t *testing.T) {
	t.Parallel()
	r := setup(t)
	proxy := testenv.NewProxy(t, testenv.RedisAddr(t))
	conn, err := redisconn.Open(t.Context(), testenv.RedisURLAt(proxy.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	letter := Letter{ID: "1", Stream: r.topic, Fields: []Field{{Name: []byte("a"), Value: []byte("1")}}}
	proxy.LoseReplyTo(replayedSuffix)
	if ok, err := NewDeadLetters(DeadLettersConfig{Client: conn.Cmd}).Replay(t.Context(), letter); !ok || err != nil {
		t.Error(ok, err)
	}
	if n := r.redis.XLen(t.Context(), r.topic).Val(); n != 1 {
		t.Errorf("%d entries", n)
	}
}

func TestWhatCannotBeReplayedStays(t *testing.T) {
	t.Parallel()
	r := setup(t)
	gone := NewMessage("", nil) // could not be decoded, and Redis was emptied in the meantime
	gone.Metadata.Set(metaEntry, "5-1")
	gone.Metadata.Set(middleware.PoisonedTopicKey, r.topic)
	known := decodeEntry(t, 3) // could be decoded: the decoded message is kept
	known.Metadata.Set(middleware.PoisonedTopicKey, r.topic)
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // the handler's deadline has passed
	known.SetContext(ctx)
	if err := r.dead.Publish("", gone, known); err != nil {
		t.Fatal(err)
	}
	letters := r.letters()
	if ok, err := r.dead.Replay(t.Context(), letters[0]); ok || err != nil {
		t.Error(ok, err)
	}
	if ok, err := r.dead.Replay(t.Context(), letters[1]); !ok || err != nil {
		t.Error(ok, err)
	}
	msg := r.next(r.subscribe(r.subscriber("one", nil)))
	if msg.UUID != name(3) || msg.Metadata.Get("epoch") != "3" {
		t.Errorf("%+v", msg)
	}
	msg.Ack()
}
