package drill

import (
	"maps"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"seckill/internal/ops/history"
)

// stage is a step of a purchase whose duration is measured.
type stage int

const (
	stageSignIn stage = iota
	stageCaptcha
	stagePath
	stageOrder
	stageWritten // from the answer of placeOrder to the pushed end of the task
	stageRead
	stages
)

var stageNames = [stages]string{"login", "createCaptcha", "issueSeckillPath", "placeOrder", "order written", "myOrders"}

// Bounds of the histograms, in microseconds, and their precision in decimal digits.
const (
	shortest, longest, digits = 1, int64(10 * time.Minute / time.Microsecond), 3
)

// crowd holds what all buyers share and count.
type crowd struct {
	sale, item string
	history    history.History

	mu       sync.Mutex
	accepted int                             // guarded by mu: placeOrder calls that took a unit
	orders   int                             // guarded by mu: tasks that ended with an order
	waited   int                             // guarded by mu: places in the waiting room
	retries  int                             // guarded by mu
	seeded   int                             // guarded by mu: buyers that used the seeded token
	refusals map[string]int                  // guarded by mu, by code
	times    [stages]*hdrhistogram.Histogram // guarded by mu
}

func newCrowd(sale, item string) *crowd {
	c := &crowd{sale: sale, item: item, refusals: map[string]int{}}
	for i := range c.times {
		c.times[i] = hdrhistogram.New(shortest, longest, digits)
	}
	return c
}

// count adds one to a counter of the crowd.
func (c *crowd) count(n *int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*n++
}

func (c *crowd) refuse(code string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refusals[code]++
}

func (c *crowd) timing(s stage, d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.times[s].RecordValue(min(max(d.Microseconds(), shortest), longest)) // it is within the bounds
}

// Counts are the counters of a drill at one moment.
type Counts struct {
	Accepted int            `json:"accepted"` // placeOrder calls that took a unit
	Orders   int            `json:"orders"`   // tasks that ended with an order
	Waited   int            `json:"waited"`   // places in the waiting room
	Retries  int            `json:"retries"`  // calls that were repeated
	Seeded   int            `json:"seeded"`   // buyers that did not sign in: the server limits sign-ins per address
	Refusals map[string]int `json:"refusals"` // buyers that were refused, by code
}

func (c *crowd) counts() Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Counts{c.accepted, c.orders, c.waited, c.retries, c.seeded, maps.Clone(c.refusals)}
}

// Latency is the distribution of a stage, in milliseconds.
type Latency struct {
	Stage string  `json:"stage"`
	Calls int64   `json:"calls"`
	P50   float64 `json:"p50Ms"`
	P90   float64 `json:"p90Ms"`
	P99   float64 `json:"p99Ms"`
	Max   float64 `json:"maxMs"`
}

func (c *crowd) latencies() []Latency {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := make([]Latency, 0, stages)
	for i, h := range c.times {
		ms := func(percent float64) float64 { return float64(h.ValueAtQuantile(percent)) / 1000 }
		list = append(list, Latency{stageNames[i], h.TotalCount(), ms(50), ms(90), ms(99), float64(h.Max()) / 1000})
	}
	return list
}
