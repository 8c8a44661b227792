package salestats

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/singleflight"

	"seckill/internal/buy/reservation"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
	"seckill/internal/platform/money"
	"seckill/internal/platform/notifier"
	"seckill/internal/platform/postgres"
)

const (
	// fresh is how long a Stats is shared by all readers in this process.
	fresh = 900 * time.Millisecond
	// ReadTimeout is the timeout of one reading.
	ReadTimeout = 3 * time.Second
	// maxKnown limits the sales for which a reader caches the orders by second.
	maxKnown = 200
	// maxReadings limits the readings of units that change meanwhile.
	maxReadings = 4
	// watchEvery is the interval of Watch.
	watchEvery = time.Second
)

// ReaderConfig configures a Reader.
type ReaderConfig struct {
	DB     *postgres.DB
	Client redis.UniversalClient
	Keys   reservation.Keys
	Queue  Queue
	Clock  clock.Clock
	// Timeout is the timeout of one reading; 0 = ReadTimeout.
	Timeout time.Duration
}

// Queue is the queue of order messages.
type Queue interface {
	// Depth returns how many messages of a shard wait for a worker, and the age of the
	// oldest.
	Depth(ctx context.Context, shard int) (depth int, age time.Duration, err error)
}

// Reader combines the figures of a sale. It is safe for concurrent use: one reading of a
// sale runs at a time, and concurrent callers share it.
type Reader struct {
	cfg    ReaderConfig
	flight singleflight.Group

	mu    sync.Mutex
	known map[id.Sale]*known // guarded by mu
}

// known holds the cached orders of a sale.
type known struct {
	stats   *Stats
	orders  map[int64]int // written in each second of the window
	settled int64         // seconds up to this one are final
}

// NewReader returns a Reader.
func NewReader(cfg ReaderConfig) *Reader {
	return &Reader{cfg: cfg, known: map[id.Sale]*known{}}
}

// Stats returns the figures of a sale, at most a second old; nil if the sale does not
// exist.
func (r *Reader) Stats(ctx context.Context, sale id.Sale) (*Stats, error) {
	now := r.cfg.Clock.Now()
	if k := r.recall(sale); k != nil && k.stats != nil && now.Sub(k.stats.At) < fresh {
		return k.stats, nil
	}
	got, err, _ := r.flight.Do(sale.String(), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cmp.Or(r.cfg.Timeout, ReadTimeout))
		defer cancel()
		if k := r.recall(sale); k != nil && k.stats != nil && now.Sub(k.stats.At) < fresh {
			return k.stats, nil
		}
		return r.read(ctx, sale, now)
	})
	if err != nil {
		return nil, fmt.Errorf("figures of sale %s: %w", sale, err)
	}
	return got.(*Stats), nil
}

func (r *Reader) recall(sale id.Sale) *known {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known[sale]
}

func (r *Reader) remember(sale id.Sale, k *known) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known[sale] == nil && len(r.known) >= maxKnown {
		clear(r.known)
	}
	r.known[sale] = k
}

// units reads a sale in Postgres and then its gates, so that units in transit from the
// gate to Postgres are counted as taken, not as lost; the record is nil if there is no
// sale. Totals that disagree are read again until Postgres has the same before and after
// the gates: a refund may withdraw a unit from both between the readings. settled is false
// if the sale changed during each of maxReadings.
func (r *Reader) units(ctx context.Context, sale id.Sale) (rec *record, g gates, settled bool, err error) {
	rec, err = r.record(ctx, sale)
	for range maxReadings {
		if rec == nil || err != nil {
			return nil, gates{}, false, err
		}
		if g, err = r.gates(ctx, sale, rec.items); err != nil {
			return nil, gates{}, false, err
		}
		if !g.whole(rec) || g.agree(rec) {
			return rec, g, true, nil
		}
		before := rec
		if rec, err = r.record(ctx, sale); rec != nil && err == nil && rec.total() == before.total() &&
			rec.withdrawing == before.withdrawing {
			return before, g, true, nil
		}
	}
	return rec, g, false, err
}

func (r *Reader) read(ctx context.Context, sale id.Sale, now time.Time) (*Stats, error) {
	rec, g, settled, err := r.units(ctx, sale)
	if rec == nil || err != nil {
		return (*Stats)(nil), err
	}
	c, err := r.counters(ctx, sale)
	if err != nil {
		return nil, err
	}
	k := &known{}
	if before := r.recall(sale); before != nil {
		*k = *before
	}
	if err := r.ordersBySecond(ctx, sale, now, k); err != nil {
		return nil, err
	}
	points, err := r.points(ctx, sale, now, k.orders)
	if err != nil {
		return nil, err
	}
	depth, age, err := r.cfg.Queue.Depth(ctx, shardOf(sale))
	if err != nil {
		return nil, fmt.Errorf("read queue: %w", err)
	}
	s := &Stats{Sale: sale, At: now, QueueDepth: depth, QueueAge: age, Series: points, Recent: recent(now, k.orders)}
	rec.into(s)
	g.into(s, rec, settled)
	c.into(s)
	s.fillRemaining()
	if n := len(points); n > 0 {
		last := points[n-1]
		s.RequestsPerSecond, s.OrdersPerSecond = float64(last.Requests), float64(last.Orders)
	}
	k.stats = s
	r.remember(sale, k)
	return s, nil
}

// recent sums the orders of each part of the last minutes.
func recent(now time.Time, orders map[int64]int) []int {
	parts := make([]int, recentParts)
	for at, n := range orders {
		if ago := (now.Unix() - at) / recentPart; ago >= 0 && ago < recentParts {
			parts[recentParts-1-ago] += n
		}
	}
	return parts
}

// fillRemaining fills seconds without a sample with the previous number of units left;
// the first ones with the earliest sample, or with the present number if there are no
// samples.
func (s *Stats) fillRemaining() {
	left := s.Units.Remaining
	for i := len(s.Series) - 1; i >= 0; i-- {
		if s.Series[i].Remaining >= 0 {
			left = s.Series[i].Remaining
		}
	}
	for i := range s.Series {
		if s.Series[i].Remaining < 0 {
			s.Series[i].Remaining = left
		}
		left = s.Series[i].Remaining
	}
}

// Watch sends the figures of a sale at once and then every second, until ctx ends; then
// the channel is closed. A failed reading is skipped. It returns nil if the sale does not
// exist.
func (r *Reader) Watch(ctx context.Context, sale id.Sale) (<-chan notifier.State[*Stats], error) {
	first, err := r.Stats(ctx, sale)
	if first == nil || err != nil {
		return nil, err
	}
	out := make(chan notifier.State[*Stats])
	go func() {
		defer close(out)
		ticker := time.NewTicker(watchEvery)
		defer ticker.Stop()
		snapshot := true
		for next := first; ; {
			if next != nil {
				select {
				case out <- notifier.State[*Stats]{Value: next, Revision: next.At.UnixMilli(), Snapshot: snapshot}:
					snapshot = false
				case <-ctx.Done():
					return
				}
			}
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
			next, _ = r.Stats(ctx, sale) // the next second tries again
		}
	}()
	return out, nil
}

// money0 returns zero in a currency.
func money0(currency string) money.Amount { return money.Amount{Currency: currency} }
