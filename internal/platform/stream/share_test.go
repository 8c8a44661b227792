package stream

import (
	"sync/atomic"
	"testing"
	"time"

	"seckill/internal/testenv"
)

// counting acknowledges messages and counts them until the channel is closed.
func counting(messages <-chan *Message) *atomic.Int64 {
	var n atomic.Int64
	go func() {
		for msg := range messages {
			n.Add(1)
			msg.Ack()
		}
	}()
	return &n
}

func TestWorkersShareAStreamAgainWhenOneJoinsOrLeaves(t *testing.T) {
	t.Parallel()
	r := setup(t)
	const part = 60
	number := 0
	// feed appends messages one by one, each after the former is acknowledged, as a steady
	// sale does.
	feed := func(n int) {
		for range n {
			r.publish(number, 1)
			number++
			r.settled()
		}
	}
	first := counting(r.subscribe(r.subscriber("first", nil)))
	feed(part)
	if first.Load() != part {
		t.Fatalf("a single worker handled %d of %d", first.Load(), part)
	}

	joins := r.subscriber("second", nil)
	joined := time.Now()
	second := counting(r.subscribe(joins))
	testenv.Eventually(t, patience, func() bool { feed(1); return second.Load() > 0 }, "the new worker gets messages")
	t.Logf("the new worker got its first message after %s", time.Since(joined))
	a, b := first.Load(), second.Load()
	feed(part)
	if a, b = first.Load()-a, second.Load()-b; min(a, b) < part/4 || a+b != part {
		t.Errorf("the workers handled %d and %d of %d", a, b, part)
	}

	if err := joins.Close(); err != nil {
		t.Fatal(err)
	}
	left, a := time.Now(), first.Load()
	feed(part)
	if n := first.Load() - a; n != part {
		t.Errorf("the remaining worker handled %d of %d", n, part)
	}
	t.Logf("%d messages after the other had left took %s", part, time.Since(left))
}
