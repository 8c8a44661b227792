package orderintake

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"seckill/internal/clock"
	"seckill/internal/id"
	"seckill/internal/notifier"
	"seckill/internal/order"
	"seckill/internal/stream"
)

const (
	// lineEvery is how long the reading of a shard is shared by all tasks of this process,
	// and the interval at which a follower looks at it.
	lineEvery = time.Second
	// lineTimeout bounds one reading: a follower waits for it.
	lineTimeout = time.Second
	// lineSmoothing is the weight of the newest rate in the average.
	lineSmoothing = 0.3
)

// Place is the place of an unfinished task in the line of its shard. Both are estimates.
type Place struct {
	Ahead int            // orders before it that no worker has read
	Wait  *time.Duration // until a worker reads it; nil = unknown
}

// Line returns how many orders are ahead of a task. It reads the stream of a shard at most
// once a second, and only while it is asked: a task costs no read of its own.
type Line struct {
	cfg    LineConfig
	flight singleflight.Group

	mu       sync.Mutex
	readings [id.Shards]reading // guarded by mu
}

// LineConfig holds the dependencies of a Line.
type LineConfig struct {
	Queue Queue
	Clock clock.Clock
}

// reading is what is known of one shard.
type reading struct {
	stream.Unread
	at   time.Time // zero = never read
	rate float64   // orders that workers read per second, smoothed; 0 = unknown
}

// NewLine returns a Line.
func NewLine(cfg LineConfig) *Line { return &Line{cfg: cfg} }

// Place returns the place of a task; nil when the task has ended.
func (l *Line) Place(ctx context.Context, t *order.Task) (*Place, error) {
	if t == nil || t.Ended() {
		return nil, nil //nolint:nilnil // it is in no line
	}
	shard, err := id.TaskShard(t.ID)
	if err != nil {
		return nil, nil //nolint:nilnil,nilerr // no task has such an id
	}
	r, err := l.read(ctx, shard)
	if err != nil {
		return nil, err
	}
	return r.place(t.CreatedAt), nil
}

// read returns the reading of a shard, at most lineEvery old.
func (l *Line) read(ctx context.Context, shard int) (reading, error) {
	now := l.cfg.Clock.Now()
	if r := l.last(shard); !r.at.IsZero() && now.Sub(r.at) < lineEvery {
		return r, nil
	}
	got, err, _ := l.flight.Do(fmt.Sprint(shard), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lineTimeout)
		defer cancel()
		before := l.last(shard)
		if !before.at.IsZero() && now.Sub(before.at) < lineEvery {
			return before, nil
		}
		unread, err := l.cfg.Queue.Unread(ctx, shard)
		if err != nil {
			return reading{}, err
		}
		r := reading{Unread: unread, at: now}
		r.rate = before.rateUntil(r)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.readings[shard] = r
		return r, nil
	})
	if err != nil {
		return reading{}, fmt.Errorf("line of shard %d: %w", shard, err)
	}
	return got.(reading), nil
}

func (l *Line) last(shard int) reading {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.readings[shard]
}

// rateUntil returns the rate at a later reading.
func (r reading) rateUntil(later reading) float64 {
	took := later.at.Sub(r.at).Seconds()
	if r.at.IsZero() || r.Read == 0 || later.Read < r.Read || took <= 0 {
		return 0
	}
	now := float64(later.Read-r.Read) / took
	if r.rate == 0 {
		return now
	}
	return lineSmoothing*now + (1-lineSmoothing)*r.rate
}

// place returns the place of an order that was appended at a time. Between the first and
// the last unread entry, orders count as appended at an even rate.
func (r reading) place(at time.Time) *Place {
	p := &Place{}
	switch {
	case r.Orders == 0 || !at.After(r.First):
	case !at.Before(r.Last):
		p.Ahead = int(r.Orders - 1)
	default:
		share := float64(at.Sub(r.First)) / float64(r.Last.Sub(r.First))
		p.Ahead = int(math.Ceil(share * float64(r.Orders-1))) // an entry is appended a little later than its order is made
	}
	if r.rate > 0 {
		wait := time.Duration(math.Ceil(float64(p.Ahead+1)/r.rate)) * time.Second
		p.Wait = &wait
	}
	return p
}

// Placed is a task with its place; the place is nil when the task has ended or the line
// cannot be read.
type Placed struct {
	*order.Task
	Place *Place
}

// Follow adds the place of a task to its states, and sends a state for each change of the
// place, at most one per second. The number ahead never grows. The channel is closed
// after the last state, or when ctx ends.
func (l *Line) Follow(ctx context.Context, states <-chan notifier.State[*order.Task]) <-chan notifier.State[Placed] {
	out := make(chan notifier.State[Placed])
	go func() {
		defer close(out)
		ticker := time.NewTicker(lineEvery)
		defer ticker.Stop()
		var next notifier.State[Placed]
		var sink chan<- notifier.State[Placed] // out while there is a state to send
		for states != nil || sink != nil {
			select {
			case s, ok := <-states:
				if !ok {
					states = nil
					continue
				}
				place := l.closer(ctx, s.Value, next.Value.Place)
				next = notifier.State[Placed]{
					Value: Placed{s.Value, place}, Revision: s.Revision, Terminal: s.Terminal, Snapshot: s.Snapshot || (sink != nil && next.Snapshot),
					Trace: s.Trace,
				}
				sink = out
			case <-ticker.C:
				if place := l.closer(ctx, next.Value.Task, next.Value.Place); !place.same(next.Value.Place) {
					next.Value.Place, next.Snapshot, sink = place, sink != nil && next.Snapshot, out
				}
			case sink <- next:
				sink, next.Trace = nil, ""
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}

// closer returns the present place of a task, never farther back than before.
func (l *Line) closer(ctx context.Context, t *order.Task, before *Place) *Place {
	now, err := l.Place(ctx, t)
	if err != nil {
		return before // the next second tries again
	}
	if now != nil && before != nil {
		now.Ahead = min(now.Ahead, before.Ahead)
	}
	return now
}

// same reports whether two places are equal for the client.
func (p *Place) same(q *Place) bool {
	if p == nil || q == nil {
		return p == q
	}
	return p.Ahead == q.Ahead && (p.Wait == nil) == (q.Wait == nil) && (p.Wait == nil || *p.Wait == *q.Wait)
}
