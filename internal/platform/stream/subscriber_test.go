package stream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/internal/testenv"
)

func TestABatchIsHandedOutWithoutWaitingForAcknowledgements(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *rig) {
		ids := r.publish(0, 300)
		messages := r.subscribe(r.subscriber("one", nil))
		var got []*Message
		for range ids {
			got = append(got, r.next(messages))
		}
		for i, msg := range got {
			if msg.UUID != name(i) || EntryID(msg) != ids[i] {
				t.Fatalf("%d: %s of %s", i, msg.UUID, EntryID(msg))
			}
			msg.Ack()
		}
		r.settled()
		// Acks are counted after the reply of Redis, which is after settled.
		testenv.Eventually(t, patience, func() bool { return r.tally.of(Acked) == 300 }, "not all are counted")
	})
}

func TestMessagesInFlightAreBounded(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *rig) {
		r.publish(0, 30)
		messages := r.subscribe(r.subscriber("one", func(c *SubscriberConfig) { c.MaxInFlight = 10 }))
		var held []*Message
		for range 10 {
			held = append(held, r.next(messages))
		}
		r.none(messages, 300*time.Millisecond)
		for range 20 {
			held[0].Ack()
			held = append(held[1:], r.next(messages))
		}
		for _, msg := range held {
			msg.Ack()
		}
		r.settled()
	})
}

// commands counts commands by name.
type commands struct{ acks, reads atomic.Int64 }

func (c *commands) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (c *commands) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		switch cmd.Name() {
		case "xack":
			c.acks.Add(1)
		case "xreadgroup":
			c.reads.Add(1)
		}
		return next(ctx, cmd)
	}
}

func (c *commands) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func TestAcknowledgementsGoToRedisInGroups(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.publish(0, 2048)
	counted := &commands{}
	messages := r.subscribe(r.subscriber("one", func(c *SubscriberConfig) { c.Client.AddHook(counted) }))
	for range 2048 {
		go func(msg *Message) { msg.Ack() }(r.next(messages))
	}
	r.settled()
	// Single acknowledgements of 2,048 messages would be 2,048 commands.
	if n := counted.acks.Load(); n > 200 {
		t.Errorf("%d XACKs", n)
	}
	t.Logf("2048 messages: %d XREADGROUPs, %d XACKs", counted.reads.Load(), counted.acks.Load())
}

// The first entry after a pause is read at once; those that follow are collected.
func TestEntriesThatFollowEachOtherAreReadTogether(t *testing.T) {
	t.Parallel()
	r := setup(t)
	const n, gather = 300, 20 * time.Millisecond
	counted := &commands{}
	messages := r.subscribe(r.subscriber("one", func(c *SubscriberConfig) { c.Gather = gather; c.Client.AddHook(counted) }))
	began := time.Now()
	go func() {
		for i := range n {
			r.publish(i, 1)
		}
	}()
	for range n {
		r.next(messages).Ack()
	}
	took := time.Since(began)
	reads, most := counted.reads.Load(), int64(took/gather)+3
	if reads > most {
		t.Errorf("%d messages in %v: %d reads, want at most %d", n, took, reads, most)
	}
	r.settled()
}

func TestASlowHandlerHoldsBackNoAcknowledgement(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *rig) {
		r.publish(0, 100)
		messages := r.subscribe(r.subscriber("one", nil))
		var held []*Message
		for i := range 100 {
			if msg := r.next(messages); i == 0 || i == 99 {
				held = append(held, msg)
			} else {
				msg.Ack()
			}
		}
		testenv.Eventually(t, patience, func() bool { return r.pending() == 2 }, "the others are not acknowledged")
		for _, msg := range held {
			msg.Ack()
		}
		r.settled()
	})
}

func TestARefusedMessageComesAgainAsACopyAfterTheDelay(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *rig) {
		r.publish(0, 2)
		messages := r.subscribe(r.subscriber("one", func(c *SubscriberConfig) {
			c.NackDelay, c.NackDelayMax = 100*time.Millisecond, 250*time.Millisecond
		}))
		refused, other := r.next(messages), r.next(messages)
		other.Ack()
		const ms = time.Millisecond
		for attempt, least := range []time.Duration{100 * ms, 200 * ms, 250 * ms, 250 * ms} {
			before := time.Now()
			refused.Nack()
			again := r.next(messages)
			if took := time.Since(before); took < least {
				t.Errorf("try %d came after %v", attempt+2, took)
			}
			if again == refused || again.UUID != refused.UUID || again.Metadata.Get("epoch") != "3" {
				t.Fatalf("not a copy: %+v", again)
			}
			if Attempt(again) != attempt+2 || Deliveries(again) != 1 {
				t.Errorf("attempt %d, delivery %d", Attempt(again), Deliveries(again))
			}
			if err := again.Context().Err(); err != nil {
				t.Fatal(err)
			}
			refused = again
		}
		if n := r.pending(); n != 1 {
			t.Errorf("%d pending", n)
		}
		refused.Ack()
		r.settled()
	})
}

func TestWhatWasPublishedBeforeTheGroupIsRead(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *rig) {
		r.publish(0, 3)
		messages := r.subscribe(r.subscriber("one", nil))
		for i := range 3 {
			if msg := r.next(messages); msg.UUID != name(i) {
				t.Errorf("%s came %d.", msg.UUID, i)
			}
		}
	})
}

func TestCloseWaitsForHandlersAndKeepsTheirAcknowledgements(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *rig) {
		r.publish(0, 5)
		s := r.subscriber("one", func(c *SubscriberConfig) { c.Drain = testenv.Wait })
		messages := r.subscribe(s)
		var held []*Message
		for range 5 {
			held = append(held, r.next(messages))
		}
		closed := make(chan error, 1)
		go func() { closed <- s.Close() }()
		select {
		case <-closed:
			t.Fatal("closed with handlers at work")
		case <-time.After(300 * time.Millisecond):
		}
		for _, msg := range held {
			if err := msg.Context().Err(); err != nil {
				t.Fatalf("a handler lost its context in the drain: %v", err)
			}
			msg.Ack()
		}
		if err := <-closed; err != nil {
			t.Fatal(err)
		}
		if _, open := <-messages; open {
			t.Error("the channel is open")
		}
		if n := r.pending(); n != 0 {
			t.Errorf("%d acknowledgements lost", n)
		}
		if err := s.cfg.Client.Ping(t.Context()).Err(); !errors.Is(err, redis.ErrClosed) {
			t.Errorf("the client answers: %v", err)
		}
		if _, err := s.Subscribe(t.Context(), r.topic); !errors.Is(err, ErrClosed) {
			t.Errorf("subscribed after close: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestCloseDoesNotWaitForEverAndHandsBackWhatIsLeft(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *rig) {
		r.publish(0, 3)
		first := r.subscriber("one", func(c *SubscriberConfig) { c.Drain, c.ClaimIdle = 200*time.Millisecond, time.Hour })
		messages := r.subscribe(first)
		stuck, refused, done := r.next(messages), r.next(messages), r.next(messages)
		refused.Nack()
		done.Ack()
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		if stuck.Context().Err() == nil {
			t.Error("the stuck handler was not cancelled")
		}
		// Another name: entries that are not handed back would be redelivered after an
		// hour.
		others := r.subscribe(r.subscriber("two", func(c *SubscriberConfig) { c.ClaimIdle = time.Hour }))
		got := []string{r.next(others).UUID, r.next(others).UUID}
		slices.Sort(got)
		if want := []string{name(0), name(1)}; !slices.Equal(got, want) {
			t.Errorf("taken over: %v", got)
		}
		r.none(others, 200*time.Millisecond)
	})
}

func TestCloseTriesARefusedMessageOnceMore(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *rig) {
		r.publish(0, 3)
		s := r.subscriber("one", func(c *SubscriberConfig) {
			c.NackDelay, c.NackDelayMax, c.Drain, c.ClaimIdle = time.Hour, time.Hour, testenv.Wait, time.Hour
		})
		messages := r.subscribe(s)
		late := r.next(messages) // its handler is still running when Close is called
		r.next(messages).Nack()
		r.next(messages).Nack()
		testenv.Eventually(t, testenv.Wait, func() bool { return r.tally.of(Nacked) == 2 }, "two messages wait for their next try")
		closed := make(chan error, 1)
		go func() { closed <- s.Close() }()
		if again := r.next(messages); again.UUID == name(1) {
			again.Ack()
			r.next(messages).Nack()
		} else {
			again.Nack()
			r.next(messages).Ack()
		}
		late.Nack()
		r.next(messages).Ack()
		if msg, open := <-messages; open {
			t.Errorf("%s was handed out after its last try", msg.UUID)
		}
		if err := <-closed; err != nil {
			t.Fatal(err)
		}
		if n := r.pending(); n != 1 {
			t.Errorf("%d messages are pending, want the one whose last try was refused", n)
		}
		two := r.subscriber("two", func(c *SubscriberConfig) { c.ClaimIdle = time.Hour })
		if msg := r.next(r.subscribe(two)); msg.UUID != name(2) {
			t.Errorf("%s was handed back", msg.UUID)
		}
	})
}

func TestTheEndOfTheContextDrainsOneTopic(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.publish(0, 1)
	s := r.subscriber("one", func(c *SubscriberConfig) { c.Drain = patience })
	ctx, cancel := context.WithCancel(t.Context())
	messages, err := s.Subscribe(ctx, r.topic)
	if err != nil {
		t.Fatal(err)
	}
	msg := r.next(messages)
	if _, err := s.Subscribe(t.Context(), r.topic); err == nil {
		t.Fatal("subscribed twice")
	}
	cancel()
	msg.Ack()
	if _, open := <-messages; open {
		t.Fatal("the channel is open")
	}
	if n := r.pending(); n != 0 {
		t.Errorf("%d pending", n)
	}
	r.publish(1, 1)
	msg = r.next(r.subscribe(s))
	if msg.UUID != name(1) {
		t.Errorf("%s after subscribing again", msg.UUID)
	}
	msg.Ack()
}

func TestASubscriberRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	r := setup(t)
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", PoolSize: 3})
	defer client.Close()
	whole := SubscriberConfig{Client: client, Group: "g", Consumer: "c", Log: silent()}
	for want, spoil := range map[string]func(*SubscriberConfig){
		"client":   func(c *SubscriberConfig) { c.Client = nil },
		"group":    func(c *SubscriberConfig) { c.Group = "" },
		"consumer": func(c *SubscriberConfig) { c.Consumer = "" },
		"log":      func(c *SubscriberConfig) { c.Log = nil },
		"block":    func(c *SubscriberConfig) { c.Block = time.Microsecond },
	} {
		cfg := whole
		spoil(&cfg)
		if _, err := NewSubscriber(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	s, err := NewSubscriber(whole)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Subscribe(t.Context(), r.topic); err != nil {
		t.Fatalf("a Redis that is away refused a subscription: %v", err)
	}
	if _, err := s.Subscribe(t.Context(), r.topic+"2"); err == nil {
		t.Error("a pool of three serves two topics")
	}
}

func TestManyTopicsShareOneSubscriber(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *rig) {
		s := r.subscriber("one", nil)
		base := r.topic
		for shard := range 16 {
			r.topic = fmt.Sprintf("%s:%d", base, shard)
			r.publish(shard*100, 100)
			messages := r.subscribe(s)
			go func() {
				for msg := range messages {
					msg.Ack()
				}
			}()
		}
		for shard := range 16 {
			r.topic = fmt.Sprintf("%s:%d", base, shard)
			r.settled()
		}
		if time.Since(s.LastRead()) > time.Minute {
			t.Errorf("last read %v", s.LastRead())
		}
	})
}
