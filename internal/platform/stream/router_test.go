package stream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seckill/internal/platform/fault"
	"seckill/internal/testenv"
)

// route runs a router with one handler until the returned function is called, at the
// latest until the end of the test.
func (r *rig) route(handle func(msg *Message) error, adjust func(*RouterConfig)) (*Router, func()) {
	r.t.Helper()
	cfg := RouterConfig{
		NewSubscriber: func() (*Subscriber, error) {
			return r.subscriber("one", func(c *SubscriberConfig) { c.Drain = testenv.Wait }), nil
		},
		Handlers:    []Handler{{Name: "test", Topics: []string{r.topic}, Handle: handle}},
		DeadLetters: r.dead,
		Log:         silent(),
		Metrics:     r.tally.metrics(),
	}
	if adjust != nil {
		adjust(&cfg)
	}
	router, err := NewRouter(cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- router.Run(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			r.t.Errorf("run: %v", err)
		}
	})
	r.t.Cleanup(stop)
	return router, stop
}

// effect is a handler that counts each message once.
func (r *rig) effect(msg *Message) error { return effect(msg.Context(), r.redis, r.topic, msg) }

func (r *rig) letters() []Letter {
	r.t.Helper()
	r.kept.mu.Lock()
	defer r.kept.mu.Unlock()
	return slices.Clone(r.kept.letters)
}

func TestAPanickingHandlerIsTriedAgainAndSetAsideInTheEnd(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *rig) {
		r.publish(0, 20)
		var panics atomic.Int64
		r.route(func(msg *Message) error {
			if msg.UUID == name(7) {
				panics.Add(1)
				_ = msg.Payload[len(msg.Payload):][0]
			}
			return r.effect(msg)
		}, func(c *RouterConfig) { c.MaxFailures = 5 })
		r.settled()
		if n := panics.Load(); n != 5 {
			t.Errorf("%d tries", n)
		}
		letters := r.letters()
		if len(letters) != 1 || letters[0].MessageID != name(7) || letters[0].Attempts != 5 || !strings.Contains(letters[0].Reason, "failed 5 times: panic: runtime error: index out of range [0] with length 0") {
			t.Fatalf("letters: %+v", letters)
		}
		if distinct, counted, _ := r.effects(); distinct != 19 || counted != 19 {
			t.Errorf("%d messages, %d effects", distinct, counted)
		}
		if r.tally.of(RouterStopped) != 0 {
			t.Error("a panic stopped the router")
		}
	})
}

func TestAPermanentErrorIsSetAsideAtOnceAndOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *rig) {
		r.publish(0, 3)
		var tries atomic.Int64
		r.route(func(msg *Message) error {
			if msg.UUID != name(1) {
				return r.effect(msg)
			}
			tries.Add(1)
			// Past the deadline: with watermill's Timeout the poison middleware would
			// publish with a cancelled context, and repeat forever.
			<-msg.Context().Done()
			return fmt.Errorf("no such sale: %w", Permanent(errors.New("sale unknown")))
		}, func(c *RouterConfig) { c.HandlerTimeout = 50 * time.Millisecond })
		r.settled()
		if n := tries.Load(); n != 1 {
			t.Errorf("%d tries", n)
		}
		letters := r.letters()
		if len(letters) != 1 || letters[0].Reason != "no such sale: sale unknown" || letters[0].Stream != r.topic || letters[0].Handler == "" {
			t.Fatalf("letters: %+v", letters)
		}
		if n := r.tally.of(DeadLettered); n != 1 {
			t.Errorf("counted %d", n)
		}
	})
}

// refused is an error of Postgres as the driver returns it.
type refused struct{ state string }

func (r refused) Error() string    { return "pq: " + r.state }
func (r refused) SQLState() string { return r.state }

func TestAnOutageSetsNoGoodOrderAside(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.publish(0, 200)
	outage := []error{
		&net.OpError{Op: "dial", Err: errors.New("connection refused")},
		fmt.Errorf("insert orders: %w", refused{"57P03"}), refused{"40001"}, refused{"55P03"}, refused{"53300"}, refused{"08006"},
		context.DeadlineExceeded, fault.New(fault.Unavailable, "later"), Retryable(errors.New("queue full")),
	}
	var tries atomic.Int64
	r.route(func(msg *Message) error {
		if n := tries.Add(1); n <= 3000 {
			return outage[int(n)%len(outage)]
		}
		return r.effect(msg)
	}, func(c *RouterConfig) {
		c.MaxFailures = 2
		c.NewSubscriber = func() (*Subscriber, error) {
			return r.subscriber("one", func(c *SubscriberConfig) {
				c.NackDelay, c.NackDelayMax = 5*time.Millisecond, 20*time.Millisecond
			}), nil
		}
	})
	r.settled()
	if letters := r.letters(); len(letters) != 0 {
		t.Errorf("%d good orders set aside: %+v", len(letters), letters[0])
	}
	if distinct, _, _ := r.effects(); distinct != 200 {
		t.Errorf("%d messages handled", distinct)
	}
}

func TestWhatIsLaterAndWhatIsNot(t *testing.T) {
	t.Parallel()
	for _, err := range []error{
		errors.New("bug"), fault.New(fault.Internal, ""), fault.New(fault.BadInput, ""), refused{"23505"}, refused{"42P01"}, refused{"0800"},
		Permanent(context.DeadlineExceeded), fmt.Errorf("wrapped: %w", Permanent(refused{"57P03"})),
	} {
		if IsRetryable(err) {
			t.Errorf("%v counts as later", err)
		}
	}
	if !IsPermanent(fmt.Errorf("a: %w", Permanent(errors.New("b")))) || IsPermanent(Retryable(errors.New("b"))) || IsPermanent(nil) {
		t.Error("permanent")
	}
}

func TestASlowHandlerLosesItsContextAndIsTriedAgain(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.publish(0, 1)
	var tries atomic.Int64
	r.route(func(msg *Message) error {
		if tries.Add(1) < 4 {
			<-msg.Context().Done()
			return msg.Context().Err()
		}
		return effect(context.WithoutCancel(msg.Context()), r.redis, r.topic, msg)
	}, func(c *RouterConfig) { c.HandlerTimeout, c.MaxFailures = 20*time.Millisecond, 1 })
	r.settled()
	if n := tries.Load(); n != 4 {
		t.Errorf("%d tries", n)
	}
	if letters := r.letters(); len(letters) != 0 {
		t.Errorf("a slow database set an order aside: %+v", letters)
	}
}

func TestTheDeadlineIsTheHandlersAlone(t *testing.T) {
	t.Parallel()
	msg := NewMessage("a", nil)
	outer := msg.Context()
	_, err := deadline(time.Millisecond)(func(msg *Message) ([]*Message, error) {
		<-msg.Context().Done()
		return nil, msg.Context().Err()
	})(msg)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if msg.Context() != outer {
		t.Error("the message keeps a context that is over")
	}
}

func TestAMessageThatKillsItsWorkersIsSetAside(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.publish(0, 2)
	r.read("dead", 1)
	for range 3 { // three more workers read it and crashed
		if err := r.redis.Do(t.Context(), "xautoclaim", r.topic, "orders", "dead", 0, "0").Err(); err != nil {
			t.Fatal(err)
		}
	}
	r.route(r.effect, func(c *RouterConfig) {
		c.MaxDeliveries = 4
		c.NewSubscriber = func() (*Subscriber, error) {
			return r.subscriber("one", func(c *SubscriberConfig) { c.ClaimIdle = 50 * time.Millisecond }), nil
		}
	})
	r.settled()
	letters := r.letters()
	if len(letters) != 1 || letters[0].MessageID != name(0) || letters[0].Deliveries != 5 || letters[0].Reason != "delivered 5 times without an answer" {
		t.Fatalf("letters: %+v", letters)
	}
	if distinct, _, _ := r.effects(); distinct != 1 {
		t.Errorf("%d messages handled", distinct)
	}
}

func TestWhileTheRecordRefusesTheLetterTheEntryStaysPending(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.publish(0, 1)
	r.kept.refuse(errors.New("the database is away"))
	r.route(func(*Message) error { return Permanent(errors.New("no")) }, nil)
	testenv.Eventually(t, patience, func() bool { return r.tally.of(DeadFailed) >= 2 }, "not tried again")
	if r.pending() != 1 {
		t.Fatal("the entry was acknowledged and is nowhere")
	}
	r.kept.refuse(nil)
	r.settled()
	if len(r.letters()) != 1 {
		t.Error("no letter")
	}
}

func TestARouterThatEndsByItselfIsReportedAndStartedAgain(t *testing.T) {
	t.Parallel()
	r := setup(t)
	var mu sync.Mutex
	var subscribers []*Subscriber // guarded by mu
	router, _ := r.route(r.effect, func(c *RouterConfig) {
		c.NewSubscriber = func() (*Subscriber, error) {
			mu.Lock()
			defer mu.Unlock()
			subscribers = append(subscribers, r.subscriber("one", nil))
			return subscribers[len(subscribers)-1], nil
		}
	})
	r.publish(0, 100)
	r.settled()
	mu.Lock()
	victim := subscribers[0]
	mu.Unlock()
	if err := victim.Close(); err != nil {
		t.Fatal(err)
	}
	r.publish(100, 100)
	testenv.Eventually(t, patience, func() bool { distinct, _, _ := r.effects(); return distinct == 200 }, "the messages are read")
	if n := r.tally.of(RouterStopped); n != 1 {
		t.Errorf("the router stopped %d times", n)
	}
	if time.Since(router.LastRead()) > time.Minute {
		t.Errorf("last read %v", router.LastRead())
	}
}

// written is an in-memory log.
type written struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

func (w *written) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(p)
}

func (w *written) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

func TestNoPayloadReachesTheLog(t *testing.T) {
	t.Parallel()
	r := setup(t)
	const secret = "4929-1234-5678-9012"
	fields, err := Entry(NewMessage("card", []byte(secret)))
	if err != nil {
		t.Fatal(err)
	}
	for range 6 {
		r.add(fields...)
	}
	r.add("broken", secret)
	log := &written{}
	var tries atomic.Int64
	_, stop := r.route(func(msg *Message) error {
		switch tries.Add(1) % 3 {
		case 0:
			panic(string(msg.Payload))
		case 1:
			panic(msg)
		}
		return fmt.Errorf("order refused: %w", errors.New(strings.Repeat("long ", 500)))
	}, func(c *RouterConfig) {
		c.MaxFailures = 3
		c.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		c.DeadLetters = NewDeadLetters(DeadLettersConfig{Client: r.redis, Record: r.kept, Log: c.Log})
	})
	r.settled()
	stop()
	newLogger(slog.New(slog.NewTextHandler(log, nil))).Error("Cannot publish messages", errors.New("x"), map[string]any{"not_sent_message": secret, "topic": "orders"})
	text := log.String() // the router may log one more line after it has ended
	if strings.Contains(text, secret) {
		t.Error("the payload is in the log")
	}
	for _, want := range []string{"Handler returned error", "panic with a", "Cannot publish messages", "topic=orders", "message set aside"} {
		if !strings.Contains(text, want) {
			t.Errorf("the log does not say %q", want)
		}
	}
	if n := strings.Count(text, "Handler returned error"); n > 3 {
		t.Errorf("the same error %d times in a second", n)
	}
}
