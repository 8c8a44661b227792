package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// latencies collects durations of responses. It is safe for concurrent use.
type latencies struct {
	mu sync.Mutex
	h  *hdrhistogram.Histogram // guarded by mu; microseconds
}

func newLatencies() *latencies {
	return &latencies{h: hdrhistogram.New(1, answerTimeout.Microseconds()*10, 3)}
}

// add counts a duration. One beyond the histogram counts as its longest.
func (l *latencies) add(d time.Duration) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.h.RecordValue(min(max(1, d.Microseconds()), l.h.HighestTrackableValue())) // within its bounds
}

// at returns a percentile in milliseconds.
func (l *latencies) at(percentile float64) float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return float64(l.h.ValueAtQuantile(percentile)) / 1000
}

// atRate sends n requests at a fixed rate, whatever the server does: an open loop. The
// latency of a request counts from the time at which it was due, so that a pause of the
// server counts for all requests that it delayed (coordinated omission).
func (l load) atRate(ctx context.Context, perSecond float64) (*latencies, error) {
	conns, err := l.connect(ctx)
	if err != nil {
		return nil, err
	}
	lats := newLatencies()
	errs := make([]error, len(conns))
	var next atomic.Int64
	var wg sync.WaitGroup
	began := time.Now().Add(10 * time.Millisecond)
	for n, conn := range conns {
		wg.Go(func() {
			defer conn.Close()
			c := client{conn: conn, buf: make([]byte, 32<<10)}
			for {
				i := int(next.Add(1)) - 1
				if i >= l.count || ctx.Err() != nil {
					return
				}
				due := began.Add(time.Duration(float64(i) / perSecond * float64(time.Second)))
				select {
				case <-time.After(time.Until(due)):
				case <-ctx.Done():
					return
				}
				ok, body, err := c.ask(l.request(i), l.want)
				for tries := 0; err == nil && !ok && tries < maxRetries && isTransient(body); tries++ {
					ok, body, err = c.ask(l.request(i), l.want)
				}
				if err == nil && !ok {
					err = fmt.Errorf("a wrong answer: %.300s", body)
				}
				if err != nil {
					errs[n] = err
					return
				}
				lats.add(time.Since(due))
			}
		})
	}
	wg.Wait()
	return lats, errors.Join(errs...)
}
