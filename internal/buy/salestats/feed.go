package salestats

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/internal/buy/order"
	"seckill/internal/buy/reservation"
	"seckill/internal/buy/sale"
	"seckill/internal/platform/cursor"
	"seckill/internal/platform/id"
	"seckill/internal/platform/notifier"
	"seckill/internal/platform/periodic"
)

const (
	// feedLength is the approximate number of lines of a sale's log kept in Redis.
	feedLength = 5000
	// feedLife is how long a log is kept after its last line.
	feedLife = 7 * 24 * time.Hour
	// FeedTimeout is the timeout of one write.
	FeedTimeout = time.Second
	// followEvery is how often a follower polls for new lines.
	followEvery = 500 * time.Millisecond
	// followBatch limits the lines of one poll.
	followBatch = 200
	// start is the cursor before the first line.
	start = "0-0"
)

// LineKind is the type of a line.
type LineKind string

// Kinds of lines.
const (
	LineAct    LineKind = "ACT"    // an operation on the sale by an operator or the scheduler
	LineOrders LineKind = "ORDERS" // orders were written
	LineFailed LineKind = "FAILED" // tasks ended without an order
	LineMoved  LineKind = "MOVED"  // orders changed status: paid, expired, cancelled, refunded
)

// Line is one line of a sale's log. Lines are for display: orders written within the same
// second share one line.
type Line struct {
	Kind   LineKind     `json:"kind"`
	At     time.Time    `json:"at"`
	Act    sale.Act     `json:"act,omitempty"`
	From   sale.Status  `json:"from,omitempty"`
	To     sale.Status  `json:"to,omitempty"`
	Actor  *id.User     `json:"actor,omitempty"` // nil = the scheduler, or no single user
	Note   string       `json:"note,omitempty"`
	Units  int          `json:"units,omitempty"`  // of ACT: units added, below 0 removed
	Count  int          `json:"count,omitempty"`  // of ORDERS, FAILED and MOVED
	Order  *id.Order    `json:"order,omitempty"`  // if the line is about a single order
	Status order.Status `json:"status,omitempty"` // of MOVED: the new status
	Reason string       `json:"reason,omitempty"` // of FAILED, the last one
}

// FeedConfig configures a Feed.
type FeedConfig struct {
	Client  redis.UniversalClient
	Keys    reservation.Keys
	Timeout time.Duration // of one write; 0 = FeedTimeout
	Log     *slog.Logger
}

// Feed is the live log of each sale in Redis. It is for monitoring and not a record: what
// Redis loses is gone. Operations are also stored in the sale's log in Postgres.
type Feed struct {
	cfg FeedConfig

	mu      sync.Mutex
	waiting map[joined]*Line // guarded by mu; written by Flush
	began   []joined         // guarded by mu; the keys of waiting, in order of their first event
}

// joined is the key by which lines are merged.
type joined struct {
	sale   id.Sale
	kind   LineKind
	status order.Status
}

// NewFeed returns a Feed.
func NewFeed(cfg FeedConfig) *Feed {
	return &Feed{cfg: cfg, waiting: map[joined]*Line{}}
}

// Act writes an operation to the log of its sale.
func (f *Feed) Act(ctx context.Context, line sale.LogLine) {
	l := Line{Kind: LineAct, At: line.At, Act: line.Act, From: line.From, To: line.To, Actor: line.Actor, Note: line.Note}
	var details struct {
		Order string `json:"order"`
		Units int    `json:"units"`
	}
	if json.Unmarshal([]byte(line.Details), &details) == nil {
		if orderID, err := id.ParseOrder(details.Order); err == nil {
			l.Order = &orderID
		}
		if line.Act == sale.ActAdjust {
			l.Units = details.Units
		}
	}
	f.write(ctx, line.Sale, l)
}

// Moved records status changes of orders. Run writes the lines, one for all orders of a
// sale with the same change within a second.
func (f *Feed) Moved(orders ...*order.Order) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, o := range orders {
		if o.Noted {
			continue
		}
		line := f.line(joined{o.Sale, LineMoved, o.Status})
		line.Status = o.Status
		line.add(o.UpdatedAt, o.ID)
	}
}

// Ended records tasks that ended. Run writes the lines, one for all tasks of a sale that
// ended within a second.
func (f *Feed) Ended(tasks []order.Task) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range tasks {
		t := &tasks[i]
		if t.Status == order.Succeeded {
			f.line(joined{sale: t.Sale, kind: LineOrders}).add(t.UpdatedAt, id.Order(t.ID))
			continue
		}
		line := f.line(joined{sale: t.Sale, kind: LineFailed})
		line.add(t.UpdatedAt, id.Order(t.ID))
		line.Order, line.Reason = nil, string(t.Failure)
	}
}

// line returns the waiting line of a key, and creates it if necessary. mu must be held.
func (f *Feed) line(key joined) *Line {
	line := f.waiting[key]
	if line == nil {
		line = &Line{Kind: key.kind}
		f.waiting[key] = line
		f.began = append(f.began, key)
	}
	return line
}

// add adds an order to the line; a line about a single order names it.
func (l *Line) add(at time.Time, orderID id.Order) {
	l.Count++
	l.At, l.Order = at, &orderID
	if l.Count > 1 {
		l.Order = nil
	}
}

// Run writes recorded lines once a second until ctx ends, and then the remaining ones.
func (f *Feed) Run(ctx context.Context) error {
	timer := time.NewTimer(time.Second)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			f.Flush(ctx)
			timer.Reset(periodic.UntilTick(periodic.Tick))
		case <-ctx.Done():
			f.Flush(context.WithoutCancel(ctx))
			return nil
		}
	}
}

// Flush writes recorded lines, in order of their first event.
func (f *Feed) Flush(ctx context.Context) {
	f.mu.Lock()
	waiting, began := f.waiting, f.began
	f.waiting, f.began = map[joined]*Line{}, nil
	f.mu.Unlock()
	for _, key := range began {
		f.write(ctx, key.sale, *waiting[key])
	}
}

func (f *Feed) write(ctx context.Context, saleID id.Sale, line Line) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cmp.Or(f.cfg.Timeout, FeedTimeout))
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
		f.cfg.Log.WarnContext(ctx, "a line of a sale's log is lost", slog.String("sale", saleID.Public()),
			slog.Any("error", err))
	}
}

// EventKind is the type of an event of a follower.
type EventKind string

// Kinds of events.
const (
	Snapshot EventKind = "SNAPSHOT" // the start of the follower; always first
	Update   EventKind = "UPDATE"   // a line
	Gap      EventKind = "GAP"      // lines in between were trimmed, or lost by Redis
)

// FeedEvent is one event for a follower of a sale's log.
type FeedEvent struct {
	Kind   EventKind
	Cursor string // to continue after this event
	Line   *Line  // of an UPDATE
}

// Follow sends the lines of a sale's log: after a cursor, or only new ones if it is nil.
// The first event is a SNAPSHOT. The channel is closed when ctx ends. The error is
// a fault BAD_USER_INPUT for a malformed cursor, or reports that Redis cannot be read.
func (f *Feed) Follow(ctx context.Context, saleID id.Sale, after *string) (<-chan notifier.State[FeedEvent], error) {
	c := follower{feed: f, key: f.cfg.Keys.Feed(shardOf(saleID), saleID), out: make(chan notifier.State[FeedEvent])}
	if after != nil {
		var err error
		if c.cursor, err = cursor.Parse(after, parseCursor); err != nil {
			return nil, err
		}
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

// cursorFormat is the format of stream entry ids.
var cursorFormat = regexp.MustCompile(`^\d{1,15}-\d{1,15}$`)

func parseCursor(text string) (string, error) {
	if !cursorFormat.MatchString(text) {
		return "", errors.New("not the id of a stream entry")
	}
	return text, nil
}

// follower reads one log for one subscriber. It polls, unlike redisconn.Tail: a blocking
// read holds a connection, and it must see whether lines behind its cursor were trimmed.
type follower struct {
	feed   *Feed
	key    string
	cursor string // the last line sent
	out    chan notifier.State[FeedEvent]
}

func (c *follower) run(ctx context.Context) {
	defer close(c.out)
	if !c.send(ctx, FeedEvent{Kind: Snapshot, Cursor: c.cursor}) {
		return
	}
	ticker := time.NewTicker(followEvery)
	defer ticker.Stop()
	for {
		more, ok := c.look(ctx)
		if !ok {
			return
		}
		if more {
			continue
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// look sends the lines after the cursor. It reads from the line at the cursor: if that
// line still exists, no later line was trimmed. more reports that further lines may be
// available at once; ok is false when the subscriber is gone. After an error of Redis the
// next poll tries again.
func (c *follower) look(ctx context.Context) (more, ok bool) {
	entries, err := c.feed.cfg.Client.XRangeN(ctx, c.key, c.cursor, "+", followBatch).Result()
	if err != nil {
		return false, ctx.Err() == nil
	}
	full := len(entries) == followBatch
	switch {
	case len(entries) > 0 && entries[0].ID == c.cursor:
		entries = entries[1:]
	case c.cursor == start && !c.trimmed(ctx, entries):
	default:
		if len(entries) == 0 {
			c.cursor = start // the log was deleted, or begins after the cursor
		}
		if !c.send(ctx, FeedEvent{Kind: Gap, Cursor: c.cursor}) {
			return false, false
		}
	}
	for _, entry := range entries {
		c.cursor = entry.ID
		line, readable := lineOf(entry)
		if readable && !c.send(ctx, FeedEvent{Kind: Update, Cursor: entry.ID, Line: line}) {
			return false, false
		}
	}
	return full, true
}

// trimmed reports whether lines before the first entry may be missing, for a follower
// that has received none.
func (c *follower) trimmed(ctx context.Context, entries []redis.XMessage) bool {
	if len(entries) == 0 {
		return false
	}
	n, err := c.feed.cfg.Client.XLen(ctx, c.key).Result()
	return err == nil && n >= feedLength
}

func lineOf(entry redis.XMessage) (*Line, bool) {
	text, ok := entry.Values["line"].(string)
	if !ok {
		return nil, false
	}
	var line Line
	if err := json.Unmarshal([]byte(text), &line); err != nil {
		return nil, false
	}
	return &line, true
}

func (c *follower) send(ctx context.Context, e FeedEvent) bool {
	select {
	case c.out <- notifier.State[FeedEvent]{Value: e, Snapshot: e.Kind == Snapshot}:
		return true
	case <-ctx.Done():
		return false
	}
}
