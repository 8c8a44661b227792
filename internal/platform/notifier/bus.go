package notifier

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"

	"github.com/google/uuid"

	"seckill/internal/platform/id"
	"seckill/internal/platform/stream"
)

// Limits of a message on the bus.
const (
	maxEntries = 1000      // entries
	maxEncoded = 512 << 10 // bytes
	maxValue   = 64 << 10  // bytes of one value; a larger value is left out, and followers load it
)

// originKey is the metadata key of the publishing process.
const originKey = "origin"

// StatusEntry is one change as sent between processes.
type StatusEntry struct {
	Key      string          `json:"key"`
	Revision int64           `json:"revision"`
	Terminal bool            `json:"terminal,omitempty"`
	Value    json.RawMessage `json:"value,omitempty"` // JSON of the state; nil = load it
	Trace    string          `json:"trace,omitempty"` // traceparent of the change; "" = none
}

func (e StatusEntry) valid() bool { return e.Key != "" && e.Revision > 0 }

func (e StatusEntry) event() Event {
	event := Event{Key: e.Key, Revision: e.Revision, Terminal: e.Terminal, Trace: e.Trace}
	if len(e.Value) > 0 && string(e.Value) != "null" {
		event.Value = e.Value
	}
	return event
}

// Bus carries changes to the hubs of all processes. It may lose messages: followers
// load the state again.
type Bus struct {
	hub       *Hub
	broadcast *stream.Broadcast
	log       *slog.Logger
	origin    string
	ready     chan struct{}
	once      sync.Once
}

// NewBus returns a Bus between a broadcast and the hub of this process.
func NewBus(hub *Hub, broadcast *stream.Broadcast, log *slog.Logger) *Bus {
	return &Bus{hub: hub, broadcast: broadcast, log: log, origin: id.New[uuid.UUID]().String(), ready: make(chan struct{})}
}

// Publish publishes committed changes: to the followers in this process at once, to
// other processes with one message per thousand changes. Entries without key or
// revision are left out. A caller whose ctx has ended, such as a request of a client that
// has gone, publishes what it has committed all the same; see Broadcast.Send for the
// timeout of a message.
func (b *Bus) Publish(ctx context.Context, entries []StatusEntry) error {
	ctx = context.WithoutCancel(ctx)
	for _, e := range entries {
		if e.valid() {
			b.hub.Publish(e.event())
		}
	}
	var failed []error
	for _, payload := range encode(entries) {
		msg := stream.NewMessage(id.New[uuid.UUID]().String(), payload)
		msg.Metadata.Set(originKey, b.origin)
		if err := b.broadcast.Send(ctx, msg); err != nil {
			failed = append(failed, err)
		}
	}
	if err := errors.Join(failed...); err != nil {
		return fmt.Errorf("publish %d changes: %w", len(entries), err)
	}
	return nil
}

// Signal signals a change of a key whose state the bus does not carry: followers of the
// key load it again. Call it after the commit.
func (b *Bus) Signal(ctx context.Context, key string) {
	if err := b.Publish(ctx, []StatusEntry{{Key: key, Revision: math.MaxInt64}}); err != nil {
		b.log.WarnContext(ctx, "signal after commit", slog.String("key", key), slog.Any("error", err))
	}
}

// Run publishes the changes of other processes to the hub until ctx ends, and returns
// nil then. It waits while Redis is unreachable.
func (b *Bus) Run(ctx context.Context) error {
	return b.broadcast.Tail(ctx, func() { b.once.Do(func() { close(b.ready) }) }, b.receive)
}

// Ready is closed when Run has subscribed: later messages of other processes arrive.
func (b *Bus) Ready() <-chan struct{} { return b.ready }

func (b *Bus) receive(msg *stream.Message) {
	if msg.Metadata.Get(originKey) == b.origin {
		return // the hub received it before it was sent
	}
	entries, skipped := decode(msg.Payload)
	for _, e := range entries {
		b.hub.Publish(e.event())
	}
	if skipped > 0 {
		b.log.Warn("changes on the bus that cannot be read", slog.String("message_id", msg.UUID),
			slog.Int("entries", skipped))
	}
}

// decode returns the entries of a payload and the number of unreadable ones. An
// unreadable entry does not affect the others.
func decode(payload []byte) (entries []StatusEntry, skipped int) {
	if json.Unmarshal(payload, &entries) != nil {
		var raw []json.RawMessage
		if json.Unmarshal(payload, &raw) != nil {
			return nil, 1
		}
		entries = make([]StatusEntry, 0, len(raw))
		for _, one := range raw {
			var e StatusEntry
			if json.Unmarshal(one, &e) != nil {
				skipped++
				continue
			}
			entries = append(entries, e)
		}
	}
	good := entries[:0]
	for _, e := range entries {
		if !e.valid() {
			skipped++
			continue
		}
		good = append(good, e)
	}
	return good, skipped
}
