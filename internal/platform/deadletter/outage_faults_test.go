//go:build faults

package deadletter_test

import (
	"context"
	"net/url"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"seckill/internal/platform/deadletter"
	"seckill/internal/platform/stream"
	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

// Two attempts to record the letter must run into their timeout of 2 s.
func TestAPoisonMessageWaitsForPostgres(t *testing.T) {
	t.Parallel()
	conn, prefix := testenv.Redis(t)
	address := testdb.PostgresURL(t)
	at, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	proxy := testenv.NewProxy(t, at.Host)
	at.Host = proxy.Addr()
	r := newRig(t, testdb.Open(t, address), conn, prefix)
	registry := prometheus.NewRegistry()
	metrics := stream.NewMetrics(registry)
	letters := stream.NewDeadLetters(stream.DeadLettersConfig{
		Client: conn.Cmd, Record: deadletter.NewStore(deadletter.Config{DB: testdb.Open(t, at.String())}), Log: quiet, Metrics: metrics,
	})
	router, err := stream.NewRouter(stream.RouterConfig{
		NewSubscriber: func() (*stream.Subscriber, error) {
			return stream.NewSubscriber(stream.SubscriberConfig{Client: conn.NewBlocking(), Group: "orders", Consumer: "one", Log: quiet, Metrics: metrics})
		},
		Handlers:    []stream.Handler{{Name: "orders", Topics: []string{r.topic}, Handle: func(*stream.Message) error { return nil }}},
		DeadLetters: letters, Log: quiet, Metrics: metrics,
	})
	r.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- router.Run(ctx) }()
	t.Cleanup(func() { cancel(); r.must(<-done) })

	proxy.Silence()
	r.add("not", "a message")
	failures := func() (n float64) {
		families, err := registry.Gather()
		r.must(err)
		for _, f := range families {
			for _, m := range f.GetMetric() {
				for _, l := range m.GetLabel() {
					if l.GetName() == "event" && l.GetValue() == string(stream.DeadFailed) {
						n += m.GetCounter().GetValue()
					}
				}
			}
		}
		return n
	}
	testenv.Eventually(t, testenv.Wait, func() bool { return failures() >= 2 }, "it is tried again")
	stats := func() stream.Stats {
		s, err := stream.Inspector{Client: conn.Cmd, Clock: r.clock}.Stats(t.Context(), r.topic, "orders")
		r.must(err)
		return s
	}
	if s := stats(); s.Pending != 1 || len(r.list()) != 0 {
		t.Errorf("%+v, letters %+v", s, r.list())
	}
	proxy.Restore()
	testenv.Eventually(t, testenv.Wait, func() bool { return stats().Pending == 0 }, "the letter is recorded")
	if l := r.only(); l.Attempts > 10 || time.Since(l.At) > time.Minute {
		t.Errorf("%+v", l)
	}
}
