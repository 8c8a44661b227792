package salestats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"seckill/internal/id"
	"seckill/internal/notifier"
	"seckill/internal/order"
	"seckill/internal/reservation"
	"seckill/internal/sale"
)

const (
	// feedLength is about how many lines of a sale's log are kept in Redis.
	feedLength = 5000
	// feedLife is how long a log outlives its last line.
	feedLife = 7 * 24 * time.Hour
	// feedTimeout bounds one write.
	feedTimeout = time.Second
	// followEvery is how often a follower looks for new lines.
	followEvery = 500 * time.Millisecond
	// followBatch bounds the lines of one look.
	followBatch = 200
	// start is the cursor before the first line.
	start = "0-0"
)

// LineKind is what a line of the log is about.
type LineKind string

// Kinds of lines.
const (
	LineAct    LineKind = "ACT"    // an operator, or the clock, did something with the sale
	LineOrders LineKind = "ORDERS" // orders were written
	LineFailed LineKind = "FAILED" // tasks ended without an order
	LineMoved  LineKind = "MOVED"  // orders moved: paid, lapsed, cancelled, refunded
)

// Line is one line of a sale's log. Lines are for people: orders that were written
// within the same second are one line.
type Line struct {
	Kind   LineKind     `json:"kind"`
	At     time.Time    `json:"at"`
	Act    sale.Act     `json:"act,omitempty"`
	From   sale.Status  `json:"from,omitempty"`
	To     sale.Status  `json:"to,omitempty"`
	Actor  *uuid.UUID   `json:"actor,omitempty"` // nil = the clock, or nobody in person
	Note   string       `json:"note,omitempty"`
	Units  int          `json:"units,omitempty"`  // of ACT: that were put on sale, below 0 taken off it
	Count  int          `json:"count,omitempty"`  // of ORDERS, FAILED and MOVED
	Order  *uuid.UUID   `json:"order,omitempty"`  // when the line is about one
	Status order.Status `json:"status,omitempty"` // of MOVED: where to
	Reason string       `json:"reason,omitempty"` // of FAILED, the last one
}

// FeedConfig is what a Feed needs.
type FeedConfig struct {
	Client redis.UniversalClient
	Keys   reservation.Keys
	Log    *slog.Logger
}

// Feed is the log of each sale in Redis. It is a help for those who watch, not a
// record: what Redis loses is gone. The acts are in the sale's log for good.
type Feed struct {
	cfg FeedConfig

	mu      sync.Mutex
	waiting map[joined]*Line // guarded by mu; written by Flush
	began   []joined         // guarded by mu; what is waiting, in the order in which it began
}

// joined is what lines are joined by.
type joined struct {
	sale   uuid.UUID
	kind   LineKind
	status order.Status
}

// NewFeed returns a feed.
func NewFeed(cfg FeedConfig) *Feed {
	return &Feed{cfg: cfg, waiting: map[joined]*Line{}}
}

// Act writes an act into the log of its sale.
func (f *Feed) Act(ctx context.Context, line sale.LogLine) {
	l := Line{Kind: LineAct, At: line.At, Act: line.Act, From: line.From, To: line.To, Actor: line.Actor, Note: line.Note}
	var details struct {
		Order string `json:"order"`
		Units int    `json:"units"`
	}
	if json.Unmarshal([]byte(line.Details), &details) == nil {
		if orderID, err := id.Parse(id.Order, details.Order); err == nil {
			l.Order = &orderID
		}
		if line.Act == sale.ActAdjust {
			l.Units = details.Units
		}
	}
	f.write(ctx, line.Sale, l)
}

// Moved notes that orders moved. The lines are written by Run, one for all orders
// of a sale that moved alike within a second.
func (f *Feed) Moved(orders ...*order.Order) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, o := range orders {
		line := f.line(joined{o.Sale, LineMoved, o.Status})
		line.Status = o.Status
		line.add(o.UpdatedAt, o.ID)
	}
}

// Ended notes that tasks ended. The lines are written by Run, one for all tasks of
// a sale that ended within a second.
func (f *Feed) Ended(tasks []order.Task) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range tasks {
		t := &tasks[i]
		if t.Status == order.Succeeded {
			f.line(joined{sale: t.Sale, kind: LineOrders}).add(t.UpdatedAt, t.ID)
			continue
		}
		line := f.line(joined{sale: t.Sale, kind: LineFailed})
		line.add(t.UpdatedAt, t.ID)
		line.Order, line.Reason = nil, string(t.Failure)
	}
}

// line returns the line that waits, a fresh one if need be. Called with mu held.
func (f *Feed) line(key joined) *Line {
	line := f.waiting[key]
	if line == nil {
		line = &Line{Kind: key.kind}
		f.waiting[key] = line
		f.began = append(f.began, key)
	}
	return line
}

// add joins one more order; a line about one names it.
func (l *Line) add(at time.Time, orderID uuid.UUID) {
	l.Count++
	l.At, l.Order = at, &orderID
	if l.Count > 1 {
		l.Order = nil
	}
}

// Run writes what was noted once a second until ctx ends, and what is left then.
func (f *Feed) Run(ctx context.Context) error {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			f.Flush(ctx)
		case <-ctx.Done():
			f.Flush(context.WithoutCancel(ctx))
			return nil
		}
	}
}

// Flush writes what was noted, in the order in which it began.
func (f *Feed) Flush(ctx context.Context) {
	f.mu.Lock()
	waiting, began := f.waiting, f.began
	f.waiting, f.began = map[joined]*Line{}, nil
	f.mu.Unlock()
	for _, key := range began {
		f.write(ctx, key.sale, *waiting[key])
	}
}

func (f *Feed) write(ctx context.Context, saleID uuid.UUID, line Line) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), feedTimeout)
	defer cancel()
	text, err := json.Marshal(line)
	if err == nil {
		key := f.cfg.Keys.Feed(shardOf(saleID), saleID)
		_, err = f.cfg.Client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			pipe.XAdd(ctx, &redis.XAddArgs{Stream: key, MaxLen: feedLength, Approx: true, Values: []any{"line", text}})
			pipe.Expire(ctx, key, feedLife)
			return nil
		})
	}
	if err != nil {
		f.cfg.Log.WarnContext(ctx, "a line of a sale's log is lost", slog.String("sale", id.Format(id.Sale, saleID)), slog.Any("error", err))
	}
}

// EventKind is what an event of a follower is.
type EventKind string

// Kinds of events.
const (
	Snapshot EventKind = "SNAPSHOT" // where the follower begins; always first
	Update   EventKind = "UPDATE"   // a line
	Gap      EventKind = "GAP"      // lines between were trimmed, or Redis lost them
)

// FeedEvent is what a follower of a sale's log gets.
type FeedEvent struct {
	Kind   EventKind
	Cursor string // to go on after this event
	Line   *Line  // of an UPDATE
}

// ErrCursor says that a cursor was not made here.
var ErrCursor = errors.New("malformed cursor")

// Follow sends the lines of a sale's log: after a cursor, or only new ones when it
// is nil. The first event is a SNAPSHOT. It ends, and the channel is closed, with
// ctx. The error is ErrCursor, or that Redis cannot be read.
func (f *Feed) Follow(ctx context.Context, saleID uuid.UUID, after *string) (<-chan notifier.State[FeedEvent], error) {
	c := follower{feed: f, key: f.cfg.Keys.Feed(shardOf(saleID), saleID), out: make(chan notifier.State[FeedEvent])}
	if after != nil {
		if !cursorFormat.MatchString(*after) {
			return nil, ErrCursor
		}
		c.cursor = *after
	} else {
		last, err := f.cfg.Client.XRevRangeN(ctx, c.key, "+", "-", 1).Result()
		if err != nil {
			return nil, fmt.Errorf("read log of sale %s: %w", saleID, err)
		}
		c.cursor = start
		if len(last) > 0 {
			c.cursor = last[0].ID
		}
	}
	go c.run(ctx)
	return c.out, nil
}
