package stream

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/internal/testenv"
)

// garbage returns the fields of a corrupted entry.
func garbage(t testing.TB, rnd *rand.Rand, number int) []any {
	noise := func() string {
		b := make([]byte, rnd.IntN(40))
		for i := range b {
			b[i] = byte(rnd.Uint32())
		}
		return string(b)
	}
	fields := entryOf(t, number)
	switch rnd.IntN(6) {
	case 0:
		return []any{noise(), noise()}
	case 1:
		return fields[2:] // no id
	case 2:
		return append(append([]any{}, fields[:2]...), "epoch", noise()) // no payload
	case 3:
		fields[1] = ""
	case 4:
		return append(fields, fieldMetadata, "\x82\xa1a\xc1"+noise()) // a byte that msgpack does not define
	default:
		return append(fields, fieldMetadata, "\xdd\xff\xff\xff\xff"+noise()) // not a map
	}
	return fields
}

func TestManyBrokenEntriesStopNothing(t *testing.T) {
	t.Parallel()
	r := setup(t)
	const broken, good = 2 * manyMessages, manyMessages / 5
	rnd := rand.New(rand.NewPCG(1, 2))
	ctx := context.Background()
	for page := range 10 {
		_, err := r.redis.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i := range broken / 10 {
				p.XAdd(ctx, &redis.XAddArgs{Stream: r.topic, Values: garbage(t, rnd, 100_000+i)})
				if i%10 == 0 {
					p.XAdd(ctx, &redis.XAddArgs{Stream: r.topic, Values: entryOf(t, (page*broken/10+i)/10)})
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	var strange atomic.Int64
	r.route(func(msg *Message) error {
		if msg.UUID >= name(good) {
			strange.Add(1)
		}
		return r.effect(msg)
	}, func(c *RouterConfig) { c.HandlerTimeout = time.Minute })
	r.settled()
	distinct, counted, repeats := r.effects()
	if distinct != good || counted != good || repeats != 0 || strange.Load() != 0 {
		t.Errorf("%d good messages, %d effects, %d repeats, %d strange", distinct, counted, repeats, strange.Load())
	}
	dead := len(r.letters())
	if dead != broken || r.tally.of(DeadLettered) != broken || r.tally.of(MalformedSeen) != broken {
		t.Errorf("%d letters, counted %d, malformed %d", dead, r.tally.of(DeadLettered), r.tally.of(MalformedSeen))
	}
	if r.tally.of(RouterStopped) != 0 {
		t.Error("the router stopped")
	}
}

// Two workers with random failures; every message is published twice, and one worker is
// stopped and restarted during the test.
func TestManyMessagesHaveTheirEffectOnce(t *testing.T) {
	t.Parallel()
	r := setup(t)
	const total = manyMessages
	r.publish(0, total)
	r.publish(0, total)
	rnd := func(n int) bool { return rand.IntN(n) == 0 }
	var panics atomic.Int64
	flaky := func(msg *Message) error {
		switch {
		case rnd(50):
			panics.Add(1)
			panic("trouble")
		case rnd(20):
			return Retryable(errors.New("busy"))
		}
		if err := r.effect(msg); err != nil {
			return Retryable(err)
		}
		if rnd(50) {
			return errors.New("failed after its effect")
		}
		return nil
	}
	as := func(consumer string) func(*RouterConfig) {
		return func(c *RouterConfig) {
			c.NewSubscriber = func() (*Subscriber, error) {
				return r.subscriber(consumer, func(c *SubscriberConfig) {
					c.ClaimIdle, c.Drain, c.MaxInFlight = time.Second, 50*time.Millisecond, 128
				}), nil
			}
		}
	}
	r.route(flaky, as("one"))
	for range 5 {
		before, _, _ := r.effects()
		_, stop := r.route(flaky, as("two"))
		testenv.Eventually(t, patience, func() bool { now, _, _ := r.effects(); return now > before || now == total }, "no progress")
		stop()
	}
	r.settled()
	if distinct, counted, _ := r.effects(); distinct != total || counted != total {
		t.Errorf("%d messages, %d effects", distinct, counted)
	}
	if letters := r.letters(); len(letters) != 0 {
		t.Errorf("%d set aside: %+v", len(letters), letters[0])
	}
	t.Logf("%d panics, %d refusals, %d taken over", panics.Load(), r.tally.of(Nacked), r.tally.of(Claimed))
}
