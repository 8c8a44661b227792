package refusal

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"seckill/internal/platform/clock"
	"seckill/internal/platform/periodic"
	"seckill/internal/platform/postgres"
	"seckill/internal/platform/telemetry"
)

const (
	// maxWaiting bounds the rows that wait in memory: about 25 MB.
	maxWaiting = 100_000
	// maxWritten bounds the buyers whose written rows are kept in memory, so that a later
	// refusal changes the row. When there are more, all are forgotten, and later refusals get
	// new rows.
	maxWritten = 50_000
	// flushEvery is how often rows are written: what a killed process loses.
	flushEvery = time.Second
	// flushTimeout is the timeout of one flush, including the last one of a process.
	flushTimeout = 5 * time.Second
	// writeBatch bounds one transaction, and maxBatches those of a flush.
	writeBatch = 2000
	maxBatches = 4
	// flushBudget is the time after which a flush begins no further batch. 2,000 rows take
	// 8 ms of a processor of Postgres: while Postgres is busy with orders, a process
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

	flushes sync.Mutex // held by a flush

	mu      sync.Mutex
	waiting map[buyer][]*row // guarded by mu; buyers with a row that waits
	written map[buyer][]*row // guarded by mu; buyers whose rows are all written
	rows    int              // guarded by mu; that wait
}

// NewLog returns a Log.
func NewLog(cfg Config) *Log {
	l := &Log{cfg: cfg, waiting: map[buyer][]*row{}, written: map[buyer][]*row{}}
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
	l.mu.Lock()
	defer l.mu.Unlock()
	b := buyer{r.User, r.Sale}
	rows, waits := l.waiting[b]
	if !waits {
		rows = l.written[b]
	}
	i := slices.IndexFunc(rows, func(known *row) bool {
		return known.Item == r.Item && known.Stage == r.Stage && known.Code == r.Code
	})
	if (i < 0 || !rows[i].waits()) && l.rows >= maxWaiting {
		l.dropped.Inc()
		return
	}
	if i < 0 {
		i = len(rows)
		rows = append(rows, &row{user: r.User, id: newID(now), Refusal: Refusal{
			Sale: r.Sale, Item: r.Item, Stage: r.Stage, Code: r.Code, First: now,
		}})
	}
	if !rows[i].waits() {
		l.rows++
	}
	rows[i].Times++
	rows[i].Last, rows[i].Left, rows[i].Ahead = now, r.Left, r.Ahead
	l.waiting[b] = rows
	if !waits {
		delete(l.written, b)
	}
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
// failed transaction wait for the next flush. A row has its total, so that writing it again
// after a commit whose reply was lost changes nothing.
func (l *Log) Flush(ctx context.Context) (map[string]int, error) {
	l.flushes.Lock()
	defer l.flushes.Unlock()
	begun := l.cfg.Clock.Now()
	for n := range maxBatches {
		if n > 0 && l.cfg.Clock.Now().Sub(begun) >= flushBudget {
			break
		}
		taken := l.take()
		if len(taken) == 0 {
			break
		}
		if err := l.write(ctx, taken); err != nil {
			return nil, err // counts of a step
		}
		l.settle(taken)
	}
	return nil, nil // as above
}

// take returns copies of the rows of one batch, which wait until settle.
func (l *Log) take() []row {
	l.mu.Lock()
	defer l.mu.Unlock()
	taken := make([]row, 0, min(l.rows, writeBatch))
	for _, rows := range l.waiting {
		for _, r := range rows {
			if len(taken) == writeBatch {
				return taken
			}
			if r.waits() {
				taken = append(taken, *r)
				r.known = true
			}
		}
	}
	return taken
}

// settle marks rows as written, as they were taken.
func (l *Log) settle(taken []row) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range taken {
		b := buyer{t.user, t.Sale}
		rows := l.waiting[b]
		for _, r := range rows {
			if r.id != t.id {
				continue
			}
			if r.written = t.Times; !r.waits() {
				l.rows--
			}
		}
		if slices.ContainsFunc(rows, (*row).waits) {
			continue
		}
		delete(l.waiting, b)
		if len(l.written) >= maxWritten {
			l.written = map[buyer][]*row{}
		}
		l.written[b] = rows
	}
}

// waitingOf returns copies of the rows of a buyer that wait.
func (l *Log) waitingOf(b buyer) []row {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []row
	for _, r := range l.waiting[b] {
		if r.waits() {
			list = append(list, *r)
		}
	}
	return list
}
