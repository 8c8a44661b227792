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
	// positionEvery is how long the reading of a shard is shared by all tasks of this process,
	// and the interval at which a follower looks at it.
	positionEvery = time.Second
	// positionTimeout bounds one reading: a follower waits for it.
	positionTimeout = time.Second
	// rateSmoothing is the weight of the newest rate in the average.
	rateSmoothing = 0.3
)

// QueuePosition is the estimated position of an unfinished task in the queue of its shard.
type QueuePosition struct {
	Ahead int            // orders before it that no worker has read
	Wait  *time.Duration // until a worker reads it; nil = unknown
}

// QueuePositions returns how many orders are ahead of a task. It reads the stream of a
// shard at most once a second, and only while it is asked: a task costs no read of its own.
type QueuePositions struct {
	cfg    QueuePositionsConfig
	flight singleflight.Group

	mu       sync.Mutex
	readings [id.Shards]reading // guarded by mu
}

// QueuePositionsConfig holds the dependencies of a QueuePositions.
type QueuePositionsConfig struct {
	Queue Queue
	Clock clock.Clock
}

// reading is what is known of one shard.
type reading struct {
	stream.Unread
	at   time.Time // zero = never read
	rate float64   // orders that workers read per second, smoothed; 0 = unknown
}

// NewQueuePositions returns a QueuePositions.
func NewQueuePositions(cfg QueuePositionsConfig) *QueuePositions { return &QueuePositions{cfg: cfg} }

// Position returns the position of a task; nil when the task has ended.
func (q *QueuePositions) Position(ctx context.Context, t *order.Task) (*QueuePosition, error) {
	if t == nil || t.Ended() {
		return nil, nil //nolint:nilnil // it is in no queue
	}
	shard, err := id.TaskShard(t.ID)
	if err != nil {
		return nil, nil //nolint:nilnil,nilerr // no task has such an id
	}
	r, err := q.read(ctx, shard)
	if err != nil {
		return nil, err
	}
	return r.position(t.CreatedAt), nil
}

// read returns the reading of a shard, at most positionEvery old.
func (q *QueuePositions) read(ctx context.Context, shard int) (reading, error) {
	now := q.cfg.Clock.Now()
	if r := q.last(shard); !r.at.IsZero() && now.Sub(r.at) < positionEvery {
		return r, nil
	}
	got, err, _ := q.flight.Do(fmt.Sprint(shard), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), positionTimeout)
		defer cancel()
		before := q.last(shard)
		if !before.at.IsZero() && now.Sub(before.at) < positionEvery {
			return before, nil
		}
		unread, err := q.cfg.Queue.Unread(ctx, shard)
		if err != nil {
			return reading{}, err
		}
		r := reading{Unread: unread, at: now}
		r.rate = before.rateUntil(r)
		q.mu.Lock()
		defer q.mu.Unlock()
		q.readings[shard] = r
		return r, nil
	})
	if err != nil {
		return reading{}, fmt.Errorf("queue of shard %d: %w", shard, err)
	}
	return got.(reading), nil
}

func (q *QueuePositions) last(shard int) reading {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.readings[shard]
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
	return rateSmoothing*now + (1-rateSmoothing)*r.rate
}

// position returns the position of an order that was appended at a time. Between the first
// and the last unread entry, orders count as appended at an even rate.
func (r reading) position(at time.Time) *QueuePosition {
	p := &QueuePosition{}
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

// PositionedTask is a task with its position; the position is nil when the task has ended
// or the stream cannot be read.
type PositionedTask struct {
	*order.Task
	Position *QueuePosition
}

// Follow adds the position of a task to its states, and sends a state for each change of
// the position, at most one per second. The number ahead never grows. The channel is
// closed after the last state, or when ctx ends.
func (q *QueuePositions) Follow(ctx context.Context, states <-chan notifier.State[*order.Task]) <-chan notifier.State[PositionedTask] {
	out := make(chan notifier.State[PositionedTask])
	go func() {
		defer close(out)
		ticker := time.NewTicker(positionEvery)
		defer ticker.Stop()
		var next notifier.State[PositionedTask]
		var sink chan<- notifier.State[PositionedTask] // out while there is a state to send
		for states != nil || sink != nil {
			select {
			case s, ok := <-states:
				if !ok {
					states = nil
					continue
				}
				position := q.notFarther(ctx, s.Value, next.Value.Position)
				next = notifier.State[PositionedTask]{
					Value: PositionedTask{s.Value, position}, Revision: s.Revision, Terminal: s.Terminal, Snapshot: s.Snapshot || (sink != nil && next.Snapshot),
					Trace: s.Trace,
				}
				sink = out
			case <-ticker.C:
				if position := q.notFarther(ctx, next.Value.Task, next.Value.Position); !position.same(next.Value.Position) {
					next.Value.Position, next.Snapshot, sink = position, sink != nil && next.Snapshot, out
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

// notFarther returns the present position of a task, never farther back than before.
func (q *QueuePositions) notFarther(ctx context.Context, t *order.Task, before *QueuePosition) *QueuePosition {
	now, err := q.Position(ctx, t)
	if err != nil {
		return before // the next second tries again
	}
	if now != nil && before != nil {
		now.Ahead = min(now.Ahead, before.Ahead)
	}
	return now
}

// same reports whether two positions are equal for the client.
func (p *QueuePosition) same(other *QueuePosition) bool {
	if p == nil || other == nil {
		return p == other
	}
	return p.Ahead == other.Ahead && (p.Wait == nil) == (other.Wait == nil) && (p.Wait == nil || *p.Wait == *other.Wait)
}
