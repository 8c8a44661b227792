package stream

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"seckill/internal/platform/redisconn"
	"seckill/internal/testenv"
)

// tail is a process that reads a broadcast with Tail.
type tail struct {
	mu   sync.Mutex
	seen []string // payloads; guarded by mu
}

func (h *tail) handle(msg *Message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen = append(h.seen, string(msg.Payload))
}

func (h *tail) has(payload string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.seen {
		if s == payload {
			return true
		}
	}
	return false
}

func (h *tail) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.seen)
}

func broadcast(t *testing.T, conn *redisconn.Conn, key string, c *tally) *Broadcast {
	t.Helper()
	b, err := NewBroadcast(BroadcastConfig{
		Publish: conn.NewClient(), Read: conn.NewBlocking(), Key: key, Keep: 1000,
		Block: 50 * time.Millisecond, Log: silent(), Metrics: c.metrics(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

// follow starts Tail and returns when the end of the stream is known.
func follow(t *testing.T, b *Broadcast) *tail {
	t.Helper()
	h := &tail{}
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		if err := b.Tail(ctx, func() { close(ready) }, h.handle); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	select {
	case <-ready:
	case <-time.After(patience):
		t.Fatal("the end of the stream is not found")
	}
	return h
}

func send(t *testing.T, b *Broadcast, payload string) {
	t.Helper()
	if err := b.Send(context.Background(), NewMessage("m-"+payload, []byte(payload))); err != nil {
		t.Fatal(err)
	}
}

func TestEveryProcessSeesWhatIsSentWhileItTails(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *rig) {
		key := r.topic + ":bus"
		sender := broadcast(t, r.conn, key, r.tally)
		send(t, sender, "before")
		tails := []*tail{follow(t, sender), follow(t, broadcast(t, r.conn, key, r.tally)), follow(t, broadcast(t, r.conn, key, r.tally))}
		for i := range 500 {
			send(t, sender, strconv.Itoa(i))
		}
		for _, h := range tails {
			testenv.Eventually(t, patience, func() bool { return h.has("499") }, "not seen")
			if n := h.count(); n != 500 || h.has("before") {
				t.Errorf("%d seen", n)
			}
		}
	})
}

func TestABroadcastKeepsAboutAsManyMessagesAsItSays(t *testing.T) {
	t.Parallel()
	r := setup(t)
	b := broadcast(t, r.conn, r.topic, r.tally)
	for i := range 1500 {
		send(t, b, strconv.Itoa(i))
	}
	if n := r.redis.XLen(t.Context(), r.topic).Val(); n < 1000 || n > 1200 {
		t.Errorf("%d messages kept, want about 1000", n)
	}
}

func TestABrokenMessageDoesNotEndATail(t *testing.T) {
	t.Parallel()
	r := setup(t)
	b := broadcast(t, r.conn, r.topic, r.tally)
	h := follow(t, b)
	r.add("not", "a message")
	r.add(FieldID, "x", fieldMetadata, "\xc1", FieldPayload, "p")
	send(t, b, "after")
	testenv.Eventually(t, patience, func() bool { return h.has("after") }, "not seen")
	if n := r.tally.of(MalformedSeen); n != 2 || h.count() != 1 {
		t.Errorf("%d malformed, %d seen", n, h.count())
	}
}

func TestATailGoesOnAfterRedisWasAway(t *testing.T) {
	t.Parallel()
	server := testenv.RedisServer(t)
	c := newTally()
	b := broadcast(t, server.Conn(), "bus", c)
	h := follow(t, b)
	send(t, b, "one")
	testenv.Eventually(t, patience, func() bool { return h.has("one") }, "not seen")
	server.Restart()
	testenv.Eventually(t, patience, func() bool {
		return b.Send(context.Background(), NewMessage("two", []byte("two"))) == nil
	}, "cannot send")
	testenv.Eventually(t, patience, func() bool { return h.has("two") }, "not seen after the restart")
	server.FlushAll()
	send(t, b, "three")
	testenv.Eventually(t, patience, func() bool { return h.has("three") }, "not seen after the flush")

	// Emptied, and the clock of the new server is behind: its ids start below the old
	// ones.
	server.FlushAll()
	if err := server.Conn().Cmd.Do(t.Context(), "xadd", "bus", "5-1", FieldID, "four", fieldMetadata, "", FieldPayload, "four").Err(); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, patience, func() bool { return h.has("four") }, "waits for the old clock")
	if n := c.of(BusReset); n != 1 {
		t.Errorf("%d resets", n)
	}
}

func TestABroadcastRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	if _, err := NewBroadcast(BroadcastConfig{}); err == nil {
		t.Error("no clients")
	}
	r := setup(t)
	b := broadcast(t, r.conn, r.topic, r.tally)
	if err := b.Send(t.Context(), NewMessage("x", make([]byte, MaxPayload+1))); err == nil {
		t.Error("too large")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.Send(ctx, NewMessage("x", nil)); err == nil {
		t.Error("sent although the caller has gone")
	}
}
