package stream

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"seckill/internal/platform/redisconn"
	"seckill/internal/testenv"
)

func TestMain(m *testing.M) {
	if os.Getenv(workerURL) != "" {
		os.Exit(worker()) // a separate process that the tests kill
	}
	testenv.Main(m)
}

// patience bounds the wait for an expected event.
const patience = testenv.Wait

// rig is a Redis with the fixtures for tests of one stream.
type rig struct {
	t     testing.TB
	conn  *redisconn.Conn
	redis redis.UniversalClient
	topic string // stream used only by this test
	dead  *DeadLetters
	kept  *record
	tally *tally
	pad   string // appended to the payload of published messages
}

func setup(t testing.TB) *rig {
	t.Helper()
	conn, prefix := testenv.Redis(t)
	return newRig(t, conn, prefix)
}

// setupMini returns a rig on an in-process Redis, as used by the demo.
func setupMini(t testing.TB) *rig {
	t.Helper()
	server := miniredis.NewMiniRedis()
	server.ClockTTL(true)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	conn, err := redisconn.Open(t.Context(), testenv.RedisURLAt(server.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return newRig(t, conn, "mini:")
}

func newRig(t testing.TB, conn *redisconn.Conn, prefix string) *rig {
	r := &rig{t: t, conn: conn, redis: conn.Cmd, topic: prefix + "{s07}:orders", kept: &record{}, tally: newTally()}
	r.dead = NewDeadLetters(DeadLettersConfig{
		Client: r.redis, Record: r.kept, Key: prefix + "{dead}:orders", Log: silent(), Metrics: r.tally.metrics(),
	})
	return r
}

// record keeps the letters of a test in memory: package deadletter imports this one.
type record struct {
	mu      sync.Mutex
	letters []Letter // guarded by mu
	refuses error    // guarded by mu
}

// Add implements Record.
func (r *record) Add(_ context.Context, l Letter) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	same := func(other Letter) bool { return other.Stream == l.Stream && other.Entry == l.Entry }
	if r.refuses != nil || slices.ContainsFunc(r.letters, same) {
		return false, r.refuses
	}
	l.ID = strconv.Itoa(len(r.letters))
	r.letters = append(r.letters, l)
	return true, nil
}

func (r *record) refuse(err error) { r.mu.Lock(); defer r.mu.Unlock(); r.refuses = err }

// onBoth runs a test on a real Redis and on the in-process one.
func onBoth(t *testing.T, test func(t *testing.T, r *rig)) {
	t.Run("redis", func(t *testing.T) { t.Parallel(); test(t, setup(t)) })
	t.Run("in-process", func(t *testing.T) { t.Parallel(); test(t, setupMini(t)) })
}

func silent() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// subscriber returns a subscriber with short timeouts; the test closes it.
func (r *rig) subscriber(consumer string, adjust func(*SubscriberConfig)) *Subscriber {
	r.t.Helper()
	cfg := SubscriberConfig{
		Client: r.conn.NewBlocking(), Group: "orders", Consumer: consumer,
		Block: 50 * time.Millisecond, ClaimEvery: 50 * time.Millisecond, NackDelay: 10 * time.Millisecond,
		Drain: 2 * time.Second, Log: silent(), Metrics: r.tally.metrics(),
	}
	if adjust != nil {
		adjust(&cfg)
	}
	s, err := NewSubscriber(cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = s.Close() })
	return s
}

func (r *rig) subscribe(s *Subscriber) <-chan *Message {
	r.t.Helper()
	messages, err := s.Subscribe(context.Background(), r.topic)
	if err != nil {
		r.t.Fatal(err)
	}
	return messages
}

// publish appends n messages, numbered from first, in one round trip, and returns the
// ids of their entries.
func (r *rig) publish(first, n int) []string {
	r.t.Helper()
	ids := make([]string, 0, n)
	for n > 0 {
		page := min(n, 1000)
		cmds, err := r.redis.Pipelined(context.Background(), func(p redis.Pipeliner) error {
			for i := range page {
				p.XAdd(context.Background(), &redis.XAddArgs{Stream: r.topic, Values: r.entry(first + i)})
			}
			return nil
		})
		if err != nil {
			r.t.Fatal(err)
		}
		for _, c := range cmds {
			ids = append(ids, c.(*redis.StringCmd).Val())
		}
		first, n = first+page, n-page
	}
	return ids
}

func (r *rig) entry(number int) []any { return paddedEntry(r.t, number, r.pad) }

func entryOf(t testing.TB, number int) []any { return paddedEntry(t, number, "") }

func paddedEntry(t testing.TB, number int, pad string) []any {
	t.Helper()
	fields, err := Entry(NewMessage(name(number), []byte(`{"number":`+strconv.Itoa(number)+`}`+pad)))
	if err != nil {
		t.Fatal(err)
	}
	return append(fields, "epoch", "3", "at", "1700000000000")
}

func name(number int) string { return fmt.Sprintf("message-%06d", number) }

// add appends an entry with arbitrary fields.
func (r *rig) add(values ...any) string {
	r.t.Helper()
	id, err := r.redis.XAdd(context.Background(), &redis.XAddArgs{Stream: r.topic, Values: values}).Result()
	if err != nil {
		r.t.Fatal(err)
	}
	return id
}

// next receives one message within patience.
func (r *rig) next(messages <-chan *Message) *Message {
	r.t.Helper()
	select {
	case msg, open := <-messages:
		if !open {
			r.t.Fatal("the channel was closed")
		}
		return msg
	case <-time.After(patience):
		r.t.Fatal("no message came")
	}
	return nil
}

// none checks that no message arrives during a period.
func (r *rig) none(messages <-chan *Message, during time.Duration) {
	r.t.Helper()
	select {
	case msg, open := <-messages:
		if open {
			r.t.Fatalf("%s came, attempt %d, delivery %d", msg.UUID, Attempt(msg), Deliveries(msg))
		}
	case <-time.After(during):
	}
}

// pending returns the number of unacknowledged entries of the group.
func (r *rig) pending() int64 {
	r.t.Helper()
	return r.stats().Pending
}

func (r *rig) stats() Stats {
	r.t.Helper()
	s, err := Inspector{Client: r.redis, Clock: systemClock{}}.Stats(context.Background(), r.topic, "orders")
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

// settled waits until the group has no unread and no pending entry.
func (r *rig) settled() {
	r.t.Helper()
	var s Stats
	defer func() {
		if r.t.Failed() {
			r.t.Logf("%+v", s)
		}
	}()
	testenv.Eventually(r.t, patience, func() bool {
		s = r.stats()
		return s.Unread == 0 && s.Pending == 0
	}, "entries are left")
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

// tally reads the counters of the test.
type tally struct {
	counted *Metrics
	shown   *prometheus.Registry
}

func newTally() *tally {
	shown := prometheus.NewRegistry()
	return &tally{counted: NewMetrics(shown), shown: shown}
}

func (c *tally) metrics() *Metrics { return c.counted }

// of returns the count of an event over all streams.
func (c *tally) of(e Event) int {
	return int(c.sum("seckill_stream_messages_total", "event", string(e)))
}

// sum adds the series of a metric with a label value: counters by value, histograms by
// number of observations.
func (c *tally) sum(name, label, value string) (n float64) {
	families, err := c.shown.Gather()
	if err != nil {
		panic(err)
	}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, series := range family.GetMetric() {
			for _, pair := range series.GetLabel() {
				if pair.GetName() == label && pair.GetValue() == value {
					n += series.GetCounter().GetValue() + float64(series.GetHistogram().GetSampleCount())
				}
			}
		}
	}
	return n
}
