package stream

import (
	"context"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/internal/testenv"
)

func TestALostGroupIsMadeAgainAndReadingGoesOn(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *rig) {
		r.publish(0, 3)
		messages := r.subscribe(r.subscriber("one", func(c *SubscriberConfig) { c.Block = 0 }))
		for range 3 {
			r.next(messages).Ack()
		}
		testenv.Eventually(t, patience, func() bool { return r.pending() == 0 }, "not acknowledged")
		if err := r.redis.XGroupDestroy(t.Context(), r.topic, "orders").Err(); err != nil {
			t.Fatal(err)
		}
		r.publish(3, 3)
		seen := map[string]bool{}
		for !seen[name(3)] || !seen[name(4)] || !seen[name(5)] { // the new group starts at the first entry
			msg := r.next(messages)
			seen[msg.UUID] = true
			msg.Ack()
		}
		r.settled()
		if n := r.tally.of(GroupLost); n != 1 {
			t.Errorf("counted %d times", n)
		}
	})
}

func TestWhatWasInFlightWhenTheGroupWasLostComesAgain(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *rig) {
		r.publish(0, 1)
		messages := r.subscribe(r.subscriber("one", nil))
		before := r.next(messages)
		if err := r.redis.XGroupDestroy(t.Context(), r.topic, "orders").Err(); err != nil {
			t.Fatal(err)
		}
		again := r.next(messages)
		if again.UUID != before.UUID {
			t.Errorf("%s", again.UUID)
		}
		before.Ack() // has no effect on the entry of the new group
		r.none(messages, 200*time.Millisecond)
		if n := r.pending(); n != 1 {
			t.Errorf("%d pending", n)
		}
		again.Ack()
		r.settled()
	})
}

func TestAnEmptiedRedisIsReadAgain(t *testing.T) {
	t.Parallel()
	server := testenv.RedisServer(t)
	r := newRig(t, server.Conn(), "flush:")
	r.publish(0, 10)
	messages := r.subscribe(r.subscriber("one", func(c *SubscriberConfig) { c.Block = 0 }))
	held := r.next(messages)
	for range 9 {
		r.next(messages).Ack()
	}
	server.FlushAll()
	r.publish(10, 5)
	for i := range 5 {
		msg := r.next(messages)
		if msg.UUID != name(10+i) {
			t.Errorf("%s", msg.UUID)
		}
		msg.Ack()
	}
	held.Ack()
	r.settled()
	if n := r.tally.of(GroupLost); n != 1 {
		t.Errorf("counted %d times", n)
	}
}

func TestNothingIsLostWhenRedisIsKilledAgainAndAgain(t *testing.T) {
	t.Parallel()
	server := testenv.RedisServer(t)
	r := newRig(t, server.Conn(), "kill:")
	const total = 3000
	r.publish(0, total)
	go r.handle(r.subscribe(r.subscriber("one", func(c *SubscriberConfig) { c.MaxInFlight = 64 })))
	for round := range 4 {
		want := int64((round + 1) * total / 10)
		testenv.Eventually(t, patience, func() bool {
			distinct, _, _ := r.effects()
			return distinct >= want
		}, "no progress after a restart")
		server.Restart() // kill -9, and a restart with its append-only file
	}
	testenv.Eventually(t, testenv.Wait, func() bool {
		s, err := Inspector{Client: r.redis, Clock: systemClock{}}.Stats(context.Background(), r.topic, "orders")
		return err == nil && s.Unread == 0 && s.Pending == 0
	}, "entries are left")
	distinct, counted, _ := r.effects()
	if distinct != total || counted != total {
		t.Errorf("%d messages, %d effects", distinct, counted)
	}
	if n := r.tally.of(GroupLost); n != 0 {
		t.Errorf("%d groups lost", n)
	}
	testenv.RecordFault(t, testenv.FaultRow{
		Fault: "Redis killed 4 times amid messages (messages, not orders)", Accepted: total, Stored: int(distinct),
	})
	t.Logf("%d failed reads, %d failed acknowledgements", r.tally.of(ReadFailed), r.tally.of(AckFailed))
}

func TestASilentRedisIsWaitedForAndCloseIsBounded(t *testing.T) {
	t.Parallel()
	server := testenv.RedisServer(t)
	r, calm := newRig(t, server.ShortConn(), "pause:"), newRig(t, server.Conn(), "pause:")
	calm.publish(0, 1)
	s := r.subscriber("one", nil)
	messages := r.subscribe(s)
	r.next(messages).Ack()
	calm.settled()
	server.Pause()
	testenv.Eventually(t, patience, func() bool { return r.tally.of(ReadFailed) > 0 }, "the silence was not noticed")
	server.Resume()
	calm.publish(1, 1)
	r.next(messages).Ack()
	calm.settled()

	server.Pause()
	defer server.Resume()
	began := time.Now()
	_ = s.Close()
	if took := time.Since(began); took > testenv.Wait {
		t.Errorf("closed after %v", took)
	}
}

// lostReplies is a network that drops the first replies of XREADGROUP: Redis has
// assigned the entries to the consumer, which never receives them.
type lostReplies struct {
	commands
	left atomic.Int64
}

func (l *lostReplies) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if cmd.Name() == "xreadgroup" && err == nil && l.left.Add(-1) >= 0 {
			cmd.SetErr(io.ErrUnexpectedEOF)
			return io.ErrUnexpectedEOF
		}
		return err
	}
}

func TestEntriesWhoseReplyWasLostAreTakenAtOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *rig) {
		r.publish(0, 900)
		lost := &lostReplies{}
		lost.left.Store(2)
		messages := r.subscribe(r.subscriber("one", func(c *SubscriberConfig) {
			c.ClaimIdle = time.Hour
			c.Client.AddHook(lost)
		}))
		seen := map[string]bool{}
		for len(seen) < 900 {
			msg := r.next(messages)
			if seen[msg.UUID] {
				t.Errorf("%s twice", msg.UUID)
			}
			seen[msg.UUID] = true
			msg.Ack()
		}
		r.settled()
	})
}
