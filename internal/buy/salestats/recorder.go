package salestats

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"seckill/internal/buy/admission/queue"
	"seckill/internal/buy/refusal"
	"seckill/internal/buy/reservation"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/periodic"
)

const (
	// flushEvery is how often counts are sent to Redis: the maximum age of the figures of
	// another process.
	flushEvery = 250 * time.Millisecond
	// FlushTimeout is the timeout of one flush, including the last one of a process.
	FlushTimeout = 2 * time.Second
	// maxSales limits the sales that a process counts at a time.
	maxSales = 1000
)

//go:embed lua/count.lua
var countLua string

var countScript = redis.NewScript(countLua)

// Placement is the result of one call of placeOrder.
type Placement struct {
	Sale     id.Sale
	User     id.User
	Item     id.Item
	Took     time.Duration
	Replayed bool
	Err      error // a refusal or a fault; nil = accepted or replayed
}

// Step is a step before placeOrder.
type Step string

// The steps, in order.
const (
	StepCaptcha Step = "captchas" // a challenge issued
	StepPath    Step = "paths"    // a path token issued, directly or from the waiting room
)

// Config configures a Recorder.
type Config struct {
	Client redis.UniversalClient // without retries
	Keys   reservation.Keys
	// Remaining is sampled each second; nil = this process does not sample.
	Remaining Remaining
	Clock     clock.Clock
	Refusals  *Refusals     // nil = refused calls are only counted
	Timeout   time.Duration // of one flush; 0 = FlushTimeout
	// Registerer registers the metric; nil = it is not exported.
	Registerer prometheus.Registerer
	Log        *slog.Logger
}

// Recorder counts events in this process. It is safe for concurrent use; Run sends the
// counts to Redis.
type Recorder struct {
	cfg     Config
	process string
	metric  *prometheus.CounterVec

	mu    sync.Mutex
	open  map[id.Sale]*batch // guarded by mu
	spare map[id.Sale]*batch // guarded by mu; sent and not acknowledged
	begun chan struct{}      // has a value after the first count
	seq   int64              // guarded by mu
}

// batch holds the counts of one sale. Fields updated by each request are not maps, to
// keep placeOrder fast.
type batch struct {
	seq                                   int64
	since                                 int64 // Unix time in ms
	requests, accepted, replayed, faulted int64
	steps                                 map[Step]int64
	calls                                 map[calls]int64
	refused                               map[fault.Reason]int64
	took                                  [buckets]int64
	seconds                               map[int64]*second
	remaining                             map[int64]int // by second
}

type second struct{ requests, accepted int64 }

// NewRecorder returns a Recorder.
func NewRecorder(cfg Config) *Recorder {
	return &Recorder{
		cfg: cfg, process: uuid.NewString()[:13], metric: newCallMetric(cfg.Registerer),
		open: map[id.Sale]*batch{}, spare: map[id.Sale]*batch{}, begun: make(chan struct{}, 1),
	}
}

// Placed counts one call of placeOrder, and records a refusal for operators.
func (r *Recorder) Placed(p Placement) {
	now, why := r.cfg.Clock.Now().Unix(), fault.ReasonOf(p.Err)
	r.refused(refusal.Refused{User: p.User, Sale: p.Sale, Item: p.Item, Stage: string(StageOrder), Code: why})
	r.mu.Lock()
	defer r.mu.Unlock()
	b := r.batch(p.Sale)
	if b == nil {
		return
	}
	s := b.seconds[now]
	if s == nil {
		s = &second{}
		b.seconds[now] = s
	}
	s.requests++
	b.requests++
	b.took[bucketOf(p.Took)]++
	switch {
	case why != "":
		b.refused[why]++
	case p.Err != nil:
		b.faulted++
	case p.Replayed:
		b.replayed++
	default:
		b.accepted++
		s.accepted++
	}
}

// Posed implements captcha.Counts.
func (r *Recorder) Posed(sale id.Sale) { r.Stepped(sale, StepCaptcha, 1) }

// Admitted implements queue.Counts.
func (r *Recorder) Admitted(sale id.Sale, n int) { r.Stepped(sale, StepPath, n) }

// Unserved implements queue.Counts.
func (r *Recorder) Unserved(u queue.Unserved) {
	if r.cfg.Refusals != nil {
		r.cfg.Refusals.unserved(u)
	}
}

// Stepped counts n buyers who reached a step.
func (r *Recorder) Stepped(sale id.Sale, step Step, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if b := r.batch(sale); b != nil {
		b.steps[step] += int64(n)
	}
}

// refused passes on a refused call; one without a code was not refused.
func (r *Recorder) refused(a refusal.Refused) {
	if a.Code != "" && r.cfg.Refusals != nil {
		r.cfg.Refusals.Note(a)
	}
}

// Called counts one call of a stage before placeOrder.
func (r *Recorder) Called(c Call) {
	r.refused(refusal.Refused{User: c.User, Sale: c.Sale, Item: c.Item, Stage: string(c.Stage),
		Code: fault.ReasonOf(c.Err)})
	r.mu.Lock()
	defer r.mu.Unlock()
	if b := r.batch(c.Sale); b != nil {
		b.calls[calls{c.Stage, c.outcome()}]++
	}
}

// batch returns the open batch of a sale; nil if too many sales are counted.
func (r *Recorder) batch(sale id.Sale) *batch {
	b := r.open[sale]
	if b == nil {
		if len(r.open) >= maxSales {
			return nil
		}
		b = &batch{
			since: r.cfg.Clock.Now().UnixMilli(), steps: map[Step]int64{}, calls: map[calls]int64{},
			refused: map[fault.Reason]int64{}, seconds: map[int64]*second{}, remaining: map[int64]int{},
		}
		if len(r.open)+len(r.spare) == 0 {
			select {
			case r.begun <- struct{}{}:
			default:
			}
		}
		r.open[sale] = b
	}
	return b
}

// Run sends counts until ctx ends, and then the remaining ones.
func (r *Recorder) Run(ctx context.Context) error {
	timer := time.NewTimer(flushEvery)
	defer timer.Stop()
	failing := false
	var sampled int64
	for {
		select {
		case <-ctx.Done():
			return r.last(ctx)
		case <-r.begun:
			timer.Reset(flushEvery)
			continue
		case <-timer.C:
		}
		if now := r.cfg.Clock.Now().Unix(); now != sampled {
			sampled = now
			r.sample(now)
		}
		err := r.Flush(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			r.cfg.Log.WarnContext(ctx, "figures wait for Redis", slog.Any("error", err))
		}
		failing = err != nil
		timer.Reset(r.untilFlush())
	}
}

// untilFlush returns the time until the next flush. Without counts it is the one until the next
// tick, unless counts begin.
func (r *Recorder) untilFlush() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.open)+len(r.spare) > 0 {
		return flushEvery
	}
	return periodic.UntilTick(periodic.Tick)
}

func (r *Recorder) last(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	err := r.Flush(ctx)
	if err == nil {
		err = r.Flush(ctx) // counts added while an older batch was in transit
	}
	if err != nil {
		r.cfg.Log.WarnContext(ctx, "the last figures are lost", slog.Any("error", err))
	}
	return nil
}

// sample records how many units were left at the end of the last second.
func (r *Recorder) sample(now int64) {
	if r.cfg.Remaining == nil {
		return
	}
	left := r.cfg.Remaining.UnitsLeft()
	r.mu.Lock()
	defer r.mu.Unlock()
	for sale, n := range left {
		if b := r.batch(sale); b != nil {
			b.remaining[now-1] = n
		}
	}
}

// Flush sends the counts. A batch with unknown outcome is sent again with the same number
// until Redis acknowledges it; meanwhile the next one accumulates.
func (r *Recorder) Flush(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(r.cfg.Timeout, FlushTimeout))
	defer cancel()
	var failed error
	for sale, b := range r.take() {
		if err := r.send(ctx, sale, b); err != nil {
			failed = err
			continue
		}
		r.mu.Lock()
		if r.spare[sale] == b {
			delete(r.spare, sale)
		}
		r.mu.Unlock()
	}
	return failed
}

// take closes the open batch of each sale that has no batch in transit.
func (r *Recorder) take() map[id.Sale]*batch {
	r.mu.Lock()
	defer r.mu.Unlock()
	for sale, b := range r.open {
		if r.spare[sale] == nil {
			r.seq++
			b.seq = r.seq
			b.export(r.metric)
			r.spare[sale] = b
			delete(r.open, sale)
		}
	}
	batches := make(map[id.Sale]*batch, len(r.spare))
	for sale, b := range r.spare {
		batches[sale] = b
	}
	return batches
}

func (r *Recorder) send(ctx context.Context, sale id.Sale, b *batch) error {
	shard := id.ShardOf(sale)
	keys := []string{r.cfg.Keys.Stats(shard, sale)}
	fields := b.counters()
	args := append([]any{r.process, b.seq, int(countersLife.Seconds()), int(seriesLife.Seconds()), len(fields) / 2},
		fields...)
	for at, fields := range b.series() {
		keys = append(keys, r.cfg.Keys.Series(shard, sale, at))
		args = append(args, len(fields)/2)
		args = append(args, fields...)
	}
	if err := countScript.Run(ctx, r.cfg.Client, keys, args...).Err(); err != nil {
		return fmt.Errorf("count for sale %s: %w", sale, err)
	}
	return nil
}

// counters returns the counter fields and their increments.
func (b *batch) counters() (fields []any) {
	add := func(field string, n int64) {
		if n > 0 {
			fields = append(fields, field, n)
		}
	}
	fields = append(fields, "?"+sinceField, b.since)
	add("requests", b.requests)
	add("accepted", b.accepted)
	add("replayed", b.replayed)
	add("faulted", b.faulted)
	for step, n := range b.steps {
		add(string(step), n)
	}
	for c, n := range b.calls {
		add(c.field(), n)
	}
	for reason, n := range b.refused {
		add("r:"+string(reason), n)
	}
	for bucket, n := range b.took {
		add("l:"+strconv.Itoa(bucket), n)
	}
	return fields
}

// series returns the fields of each stretch for which the batch has counts.
func (b *batch) series() map[int64][]any {
	out := map[int64][]any{}
	add := func(at int64, field string, n any) {
		out[at/stretch] = append(out[at/stretch], field, n)
	}
	for at, s := range b.seconds {
		offset := strconv.FormatInt(at%stretch, 10)
		add(at, offset+"q", s.requests)
		if s.accepted > 0 {
			add(at, offset+"a", s.accepted)
		}
	}
	for at, n := range b.remaining {
		add(at, "="+strconv.FormatInt(at%stretch, 10)+"m", n)
	}
	return out
}
