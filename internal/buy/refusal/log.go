package refusal

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
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
	writeBatch = 2000
	maxBatches = 4
	// flushBudget is the time after which a flush begins no further batch. 2,000 rows take
	// 20 ms of a processor of Postgres: while Postgres is busy with orders, a process
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

	// writes is held while rows move from memory to Postgres: a reader that holds it counts
	// none of them twice.
	writes sync.RWMutex

	mu      sync.Mutex
	waiting map[buyer][]*Refusal // guarded by mu
	rows    int                  // guarded by mu; of all buyers
}

// NewLog returns a Log.
func NewLog(cfg Config) *Log {
	l := &Log{cfg: cfg, waiting: map[buyer][]*Refusal{}}
	of := telemetry.For(cfg.Registerer, "attempt")
	l.dropped = of.Counter("refusals_dropped_total",
		"Refusals at the gate that buyers will not find among their attempts: more waited for Postgres than fit into memory.")
	of.GaugeOf("refusals_waiting", "Refusals at the gate that wait in memory for Postgres; those of one buyer, item, stage and code are one.",
		func() float64 { return float64(l.Waiting()) })
	return l
}

// Waiting returns the number of rows that wait in memory.
func (l *Log) Waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rows
}

// Note records a refused call. It never waits for a service.
func (l *Log) Note(r Refused) {
	now := l.cfg.Clock.Now().UTC()
	l.put(r.User, &Refusal{
		Sale: r.Sale, Item: r.Item, Stage: r.Stage, Code: r.Code, Times: 1, First: now, Last: now, Left: r.Left,
		Ahead: r.Ahead,
	})
}

// put merges a refusal into the waiting rows, or drops it when they are too many.
func (l *Log) put(user id.User, r *Refusal) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := buyer{user, r.Sale}
	for _, known := range l.waiting[b] {
		if known.same(r) {
			known.add(r)
			return
		}
	}
	if l.rows >= maxWaiting {
		l.dropped.Add(float64(r.Times))
		return
	}
	l.waiting[b] = append(l.waiting[b], r)
	l.rows++
}

// Run writes rows until ctx ends, and then the remaining ones.
func (l *Log) Run(ctx context.Context) error {
	loop := periodic.Loop{Name: "refused attempts", Every: flushEvery, Timeout: flushTimeout, Step: l.Flush,
		Log: l.cfg.Log}
	err := loop.Run(ctx)
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
	defer cancel()
	for l.Waiting() > 0 {
		if _, err := l.Flush(last); err != nil {
			l.cfg.Log.WarnContext(ctx, "the last refused attempts are lost", slog.Int("rows", l.Waiting()),
				slog.Any("error", err))
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
		if wrote, err := l.flushBatch(ctx); err != nil || !wrote {
			return nil, err // counts of a step
		}
	}
	return nil, nil // as above
}

// flushBatch writes the rows of one batch.
func (l *Log) flushBatch(ctx context.Context) (wrote bool, err error) {
	l.writes.Lock()
	defer l.writes.Unlock()
	taken := l.take()
	if len(taken) == 0 {
		return false, nil
	}
	// One order for all processes: none of two waits for rows of the other.
	slices.SortFunc(taken, row.compare)
	if err := l.write(ctx, taken); err != nil {
		for _, r := range taken {
			l.put(r.user, r.Refusal)
		}
		return false, err
	}
	return true, nil
}

// take removes the rows of one batch from those that wait.
func (l *Log) take() []row {
	l.mu.Lock()
	defer l.mu.Unlock()
	taken := make([]row, 0, min(l.rows, writeBatch))
	for b, rows := range l.waiting {
		n := min(len(rows), writeBatch-len(taken))
		for _, r := range rows[:n] {
			taken = append(taken, row{b.user, r})
		}
		if n < len(rows) {
			l.waiting[b] = rows[n:]
			break
		}
		delete(l.waiting, b)
	}
	l.rows -= len(taken)
	return taken
}

// waitingOf returns copies of the rows of a buyer that wait.
func (l *Log) waitingOf(b buyer) []Refusal {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := make([]Refusal, len(l.waiting[b]))
	for i, r := range l.waiting[b] {
		list[i] = *r
	}
	return list
}
