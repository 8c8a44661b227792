package orderintake

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/singleflight"

	"seckill/internal/buy/order"
	"seckill/internal/buy/reservation"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
	"seckill/internal/platform/notifier"
	"seckill/internal/platform/stream"
)

const (
	// positionEvery is how long the reading of a shard is shared by all tasks of this process,
	// and the interval at which a follower looks at it.
	positionEvery = time.Second
	// firstPositionAge is how old a reading may be for the first position of a task.
	firstPositionAge = 50 * time.Millisecond
	// positionTimeout bounds one reading: a follower waits for it.
	positionTimeout = time.Second
	// maxNumbers bounds the tasks whose numbers are kept (6 MB).
	maxNumbers = 1 << 16
	// rateMeasured is the shortest time over which a rate is measured.
	rateMeasured = positionEvery / 2
	// rateSmoothing is the weight of the newest rate in the average.
	rateSmoothing = 0.3
)

// QueuePosition is the position of an unfinished task in the queue of its shard.
type QueuePosition struct {
	Ahead int            // orders before it that are not written, those that workers hold included
	Wait  *time.Duration // until it is written; nil = unknown
}

// QueuePositions returns how many orders are ahead of a task: the orders of a shard are
// numbered as they are appended, and the number of an order never changes. It finds the
// number of a task once, with one command for all tasks of a message, and reads what the
// workers have done at most once a second, and only while it is asked.
type QueuePositions struct {
	cfg     QueuePositionsConfig
	flight  singleflight.Group
	numbers *lru.Cache[id.Task, int64] // of unfinished tasks; 0 = the message is no longer there

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
	stream.Unfinished
	at    time.Time // zero = never read
	rate  float64   // orders that workers write per second, smoothed; 0 = unknown
	since time.Time // start of the measurement of the rate
	done  int64     // orders written by then
}

// NewQueuePositions returns a QueuePositions.
func NewQueuePositions(cfg QueuePositionsConfig) *QueuePositions {
	numbers, err := lru.New[id.Task, int64](maxNumbers)
	if err != nil {
		panic(err) // the size is positive
	}
	return &QueuePositions{cfg: cfg, numbers: numbers}
}

// Position returns the position of a task; nil when the task has ended.
func (q *QueuePositions) Position(ctx context.Context, t *order.Task) (*QueuePosition, error) {
	if t == nil || t.Ended() {
		return nil, nil // it is in no queue
	}
	shard, err := id.TaskShard(t.ID)
	if err != nil {
		return nil, nil // no task has such an id
	}
	number, known := q.numbers.Get(t.ID)
	age := positionEvery
	if !known {
		if number, err = q.number(ctx, t, shard); err != nil {
			return nil, err
		}
		age = firstPositionAge
	}
	r, err := q.read(ctx, shard, age)
	if err != nil {
		return nil, err
	}
	return r.position(number), nil
}

// number finds the number of a task, and those of the tasks beside it.
func (q *QueuePositions) number(ctx context.Context, t *order.Task, shard int) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, positionTimeout)
	defer cancel()
	numbers, err := q.cfg.Queue.Number(ctx, t, shard)
	if err != nil {
		return 0, fmt.Errorf("queue of shard %d: %w", shard, err)
	}
	for task, number := range numbers {
		q.numbers.Add(task, number)
	}
	q.numbers.Add(t.ID, numbers[t.ID])
	return numbers[t.ID], nil
}

// read returns the reading of a shard, at most age old.
func (q *QueuePositions) read(ctx context.Context, shard int, age time.Duration) (reading, error) {
	now := q.cfg.Clock.Now()
	if r := q.last(shard); !r.at.IsZero() && now.Sub(r.at) < age {
		return r, nil
	}
	got, err, _ := q.flight.Do(fmt.Sprint(shard), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), positionTimeout)
		defer cancel()
		before := q.last(shard)
		if !before.at.IsZero() && now.Sub(before.at) < age {
			return before, nil
		}
		unfinished, err := q.cfg.Queue.Unfinished(ctx, shard, before.Unfinished)
		if err != nil {
			return reading{}, err
		}
		r := reading{Unfinished: unfinished, at: now}
		r.measureRate(before)
		if r.Appended < before.Appended {
			q.numbers.Purge() // Redis has lost the stream, and numbers again from 1
		}
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

// measureRate sets the rate from an earlier reading. If less than rateMeasured has passed
// since then, it keeps the rate and the start of the measurement.
func (r *reading) measureRate(before reading) {
	r.rate, r.since, r.done = before.rate, before.since, before.done
	took := r.at.Sub(before.since)
	switch {
	case before.at.IsZero() || r.Done() < before.done:
		r.rate, r.since, r.done = 0, r.at, r.Done()
	case took >= rateMeasured:
		rate := float64(r.Done()-before.done) / took.Seconds()
		if before.rate != 0 {
			rate = rateSmoothing*rate + (1-rateSmoothing)*before.rate
		}
		r.rate, r.since, r.done = rate, r.at, r.Done()
	}
}

// position returns the position of the order with a number; 0 = it is no longer there.
func (r reading) position(number int64) *QueuePosition {
	p := &QueuePosition{}
	if number > 0 {
		p.Ahead = int(r.Ahead(number))
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
func (q *QueuePositions) Follow(ctx context.Context,
	states <-chan notifier.State[*order.Task]) <-chan notifier.State[PositionedTask] {
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
				position := q.nearestPosition(ctx, s.Value, next.Value.Position)
				next = notifier.State[PositionedTask]{
					Value: PositionedTask{s.Value, position}, Revision: s.Revision, Terminal: s.Terminal, Snapshot: s.Snapshot ||
						(sink != nil && next.Snapshot),
					Trace: s.Trace,
				}
				sink = out
			case <-ticker.C:
				if position := q.nearestPosition(ctx, next.Value.Task, next.Value.Position); !position.same(next.Value.Position) {
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

// nearestPosition returns the present position of a task, never farther back than before.
func (q *QueuePositions) nearestPosition(ctx context.Context, t *order.Task, before *QueuePosition) *QueuePosition {
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

// Queue is the queue of order messages: their streams, as the workers read them.
type Queue struct {
	Inspector stream.Inspector
	Keys      reservation.Keys
	Group     string
}

// Depth returns how many messages of a shard wait for a worker or are at one, and the age
// of the oldest.
func (q Queue) Depth(ctx context.Context, shard int) (depth int, age time.Duration, err error) {
	s, err := q.Inspector.Stats(ctx, q.Keys.Orders(shard), q.Group)
	return int(s.Unread + s.Pending), s.OldestAge, err
}

// Unfinished returns what no worker has acknowledged of a shard; earlier is an earlier
// reading, or the zero value.
func (q Queue) Unfinished(ctx context.Context, shard int, earlier stream.Unfinished) (stream.Unfinished, error) {
	return q.Inspector.Unfinished(ctx, q.Keys.Orders(shard), q.Group, earlier)
}

// Number returns the number of a task's order among those appended to its shard, and of all
// orders of its message; without that of the task if its message is no longer there.
func (q Queue) Number(ctx context.Context, t *order.Task, shard int) (map[id.Task]int64, error) {
	numbers := map[id.Task]int64{}
	err := q.Inspector.AppendedAt(ctx, q.Keys.Orders(shard), t.CreatedAt, func(m stream.Numbered) bool {
		requests, err := order.Decode(m.Message)
		if err != nil || m.First == 0 {
			return true // it will become a dead letter
		}
		for i, r := range requests {
			if _, again := numbers[r.Task]; !again {
				numbers[r.Task] = m.First + int64(i)
			}
		}
		_, found := numbers[t.ID]
		return !found
	})
	return numbers, err
}
