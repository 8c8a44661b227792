package refusal

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"seckill/internal/platform/clock"
	"seckill/internal/platform/periodic"
	"seckill/internal/platform/postgres"
	"seckill/internal/platform/telemetry"
)

const (
	// maxWaiting bounds the rows that wait in memory: about 25 MB.
	maxWaiting = 100_000
	// flushEvery is how often rows are written: what a killed process loses.
	flushEvery = time.Second
	// flushTimeout is the timeout of one flush, including the last one of a process.
	flushTimeout = 5 * time.Second
	// writeBatch bounds one transaction, and maxBatches those of a flush.
	writeBatch = 500
	maxBatches = 4
	// flushBudget is the time after which a flush begins no further batch. 500 rows take
	// 25 ms of a processor of Postgres: while Postgres is busy with orders, a process
	// writes one batch a second, and four when it is idle.
	flushBudget = 50 * time.Millisecond
)

// Config configures a Log.
type Config struct {
	DB    *postgres.DB
	Clock clock.Clock
	// Registerer registers the metrics; nil = they are not exported.
	Registerer prometheus.Registerer
	Log        *slog.Logger
}

// Log keeps refused attempts. It is safe for concurrent use; Run writes them.
type Log struct {
	cfg     Config
	dropped prometheus.Counter

	mu      sync.Mutex
	waiting map[key]*Refusal // guarded by mu
}

// NewLog returns a Log.
func NewLog(cfg Config) *Log {
	l := &Log{cfg: cfg, waiting: map[key]*Refusal{}}
	factory := promauto.With(cfg.Registerer)
	l.dropped = factory.NewCounter(prometheus.CounterOpts{
		Namespace: telemetry.Namespace, Subsystem: "attempt", Name: "refusals_dropped_total",
		Help: "Refusals at the gate that buyers will not find among their attempts: more waited for Postgres than fit into memory.",
	})
	factory.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: telemetry.Namespace, Subsystem: "attempt", Name: "refusals_waiting",
		Help: "Refusals at the gate that wait in memory for Postgres; those of one buyer, item, stage and code are one.",
	}, func() float64 { return float64(l.Waiting()) })
	return l
}

// Waiting returns the number of rows that wait in memory.
func (l *Log) Waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting)
}

// Note records a refused call. It never waits for a service.
func (l *Log) Note(r Refused) {
	now := l.cfg.Clock.Now().UTC()
	k := key{r.User, r.Sale, r.Item, r.Stage, r.Code}
	l.put(k, &Refusal{
		Sale: r.Sale, Item: r.Item, Stage: r.Stage, Code: r.Code, Times: 1, First: now, Last: now, Left: r.Left, Ahead: r.Ahead,
	})
}

// put merges a refusal into the waiting rows, or drops it when they are too many.
func (l *Log) put(k key, r *Refusal) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known := l.waiting[k]; known != nil {
		known.add(r)
		return
	}
	if len(l.waiting) >= maxWaiting {
		l.dropped.Add(float64(r.Times))
		return
	}
	l.waiting[k] = r
}

// Run writes rows until ctx ends, and then the remaining ones.
func (l *Log) Run(ctx context.Context) error {
	loop := periodic.Loop{Name: "refused attempts", Every: flushEvery, Timeout: flushTimeout, Step: l.Flush, Log: l.cfg.Log}
	err := loop.Run(ctx)
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
	defer cancel()
	for l.Waiting() > 0 {
		if _, err := l.Flush(last); err != nil {
			l.cfg.Log.WarnContext(ctx, "the last refused attempts are lost", slog.Int("rows", l.Waiting()), slog.Any("error", err))
			break
		}
	}
	return err
}

// Flush writes waiting rows, a bounded number, and fewer while Postgres is busy. Rows of a
// failed transaction wait for the next flush; those of a commit whose reply was lost then
// count twice.
func (l *Log) Flush(ctx context.Context) (map[string]int, error) {
	begun := l.cfg.Clock.Now()
	for n := range maxBatches {
		if n > 0 && l.cfg.Clock.Now().Sub(begun) >= flushBudget {
			break
		}
		taken := l.take()
		if len(taken) == 0 {
			return nil, nil // counts of a step
		}
		if err := l.write(ctx, taken); err != nil {
			for k, r := range taken {
				l.put(k, r)
			}
			return nil, err
		}
	}
	return nil, nil // as above
}

// take removes the rows of one batch from those that wait.
func (l *Log) take() map[key]*Refusal {
	l.mu.Lock()
	defer l.mu.Unlock()
	taken := make(map[key]*Refusal, min(len(l.waiting), writeBatch))
	for k, r := range l.waiting {
		if len(taken) == writeBatch {
			break
		}
		taken[k] = r
		delete(l.waiting, k)
	}
	return taken
}

// sorted returns the keys of rows in one order for all processes, so that two of them do
// not wait for each other's rows.
func sorted(rows map[key]*Refusal) []key {
	keys := make([]key, 0, len(rows))
	for k := range rows {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, key.compare)
	return keys
}
