package stream

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-redisstream/pkg/redisstream"
	"github.com/ThreeDotsLabs/watermill/message"
)

// benchMessages is how many messages one measurement reads: enough for about half a
// second on the slower subscriber.
const benchMessages = 10_000

// drainBare returns messages per second of a subscriber on a stream that was filled
// before; every message is acknowledged on receipt.
func drainBare(b *testing.B, sub message.Subscriber, topic string) float64 {
	b.Helper()
	began := time.Now()
	messages, err := sub.Subscribe(context.Background(), topic)
	if err != nil {
		b.Fatal(err)
	}
	for range benchMessages {
		(<-messages).Ack()
	}
	return benchMessages / time.Since(began).Seconds()
}

// drainRouted is drainBare with watermill's router.
func drainRouted(b *testing.B, sub message.Subscriber, topic string) float64 {
	b.Helper()
	router, err := message.NewRouter(message.RouterConfig{}, watermill.NopLogger{})
	if err != nil {
		b.Fatal(err)
	}
	done := make(chan struct{}, benchMessages)
	router.AddConsumerHandler("bench", topic, sub, func(*message.Message) error {
		done <- struct{}{}
		return nil
	})
	ended := make(chan error, 1)
	began := time.Now()
	go func() { ended <- router.Run(context.Background()) }()
	for range benchMessages {
		<-done
	}
	rate := benchMessages / time.Since(began).Seconds()
	if err := router.Close(); err != nil {
		b.Error(err)
	}
	<-ended
	return rate
}

// BenchmarkSubscriberAgainstStock alternates between the batch subscriber and
// watermill-redisstream's subscriber in one run. Only the ratio is comparable, because
// the speed of the machine varies.
func BenchmarkSubscriberAgainstStock(b *testing.B) {
	for name, drain := range map[string]func(*testing.B, message.Subscriber, string) float64{
		"bare": drainBare, "routed": drainRouted,
	} {
		b.Run(name, func(b *testing.B) {
			r := setup(b)
			base := r.topic
			var ours, stock side
			for i := 0; b.Loop(); i++ {
				theirs, err := redisstream.NewSubscriber(redisstream.SubscriberConfig{
					Client: r.conn.NewBlocking(), ConsumerGroup: "orders", Consumer: "bench",
					BlockTime: 50 * time.Millisecond, DisableIndefiniteInitialBlock: true,
				}, watermill.NopLogger{})
				if err != nil {
					b.Fatal(err)
				}
				r.topic = fmt.Sprintf("%s:%d:stock", base, i)
				r.publish(0, benchMessages)
				stock.run(func() float64 { return drain(b, theirs, r.topic) })
				_ = theirs.Close()
				mine := r.subscriber("bench", nil)
				r.topic = fmt.Sprintf("%s:%d:batch", base, i)
				r.publish(0, benchMessages)
				ours.run(func() float64 { return drain(b, mine, r.topic) })
				_ = mine.Close()
			}
			n := float64(b.N)
			b.ReportMetric(ours.rate/n, "batch_msg/s")
			b.ReportMetric(stock.rate/n, "stock_msg/s")
			b.ReportMetric(ours.rate/stock.rate, "ratio")
			b.ReportMetric(ours.cpu/n, "batch_cpu_us/msg")
			b.ReportMetric(stock.cpu/n, "stock_cpu_us/msg")
		})
	}
}

// side is the sum of the results of one subscriber.
type side struct {
	rate float64 // messages per second
	cpu  float64 // microseconds of CPU time of this process per message, more stable than the rate on a busy machine
}

func (s *side) run(drain func() float64) {
	before := cpuTime()
	s.rate += drain()
	s.cpu += float64((cpuTime() - before).Microseconds()) / benchMessages
}

func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// BenchmarkRouter measures one message through the whole middleware chain.
func BenchmarkRouter(b *testing.B) {
	r := setup(b)
	r.publish(0, b.N)
	done := make(chan struct{}, b.N)
	b.ReportAllocs()
	b.ResetTimer()
	_, stop := r.route(func(*Message) error {
		done <- struct{}{}
		return nil
	}, nil)
	for range b.N {
		<-done
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
	stop()
}

// commits makes messages wait for a common commit, as the order writer does.
type commits struct {
	mu      sync.Mutex
	waiting []chan struct{} // guarded by mu
}

func (c *commits) handle(msg *Message) error {
	done := make(chan struct{}, 1)
	c.mu.Lock()
	c.waiting = append(c.waiting, done)
	c.mu.Unlock()
	select {
	case <-done:
		return nil
	case <-msg.Context().Done():
		return msg.Context().Err()
	}
}

// run commits all waiting messages every 20 ms until this many are committed.
func (c *commits) run(messages int) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for messages > 0 {
		<-tick.C
		c.mu.Lock()
		waiting := c.waiting
		c.waiting = nil
		c.mu.Unlock()
		for _, done := range waiting {
			done <- struct{}{}
		}
		messages -= len(waiting)
	}
}

// BenchmarkRouterInBatches measures messages of the size of an order whose handlers
// wait for a common commit, as during a sale.
func BenchmarkRouterInBatches(b *testing.B) {
	r := setup(b)
	r.pad = strings.Repeat("x", 350)
	r.publish(0, b.N)
	var c commits
	b.ReportAllocs()
	b.ResetTimer()
	before := cpuTime()
	counted := &commands{}
	_, stop := r.route(c.handle, func(cfg *RouterConfig) {
		cfg.NewSubscriber = func() (*Subscriber, error) {
			return r.subscriber("bench", func(s *SubscriberConfig) {
				s.Metrics = nil
				s.Client.AddHook(counted)
			}), nil
		}
	})
	c.run(b.N)
	r.settled()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/float64(counted.reads.Load()), "msg/read")
	b.ReportMetric(float64(b.N)/float64(counted.acks.Load()), "msg/ack")
	b.ReportMetric(float64((cpuTime()-before).Nanoseconds())/float64(b.N), "cpu-ns/msg")
	stop()
}
