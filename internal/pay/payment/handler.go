package payment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"seckill/internal/platform/clock"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
	"seckill/internal/platform/stream"
)

// handleTimeout bounds the handling of one message, which calls no provider.
const handleTimeout = 3 * time.Second

// messageVersion is the version of the message that this code writes and reads.
const messageVersion = 1

// Topic returns the key of the stream of stored events. No TTL, no MAXLEN.
func Topic(prefix string) string { return prefix + "{pay}:events" }

// Stored is the message about a stored event. It contains only the event's id, because
// the row is the source of truth.
type Stored struct {
	V     int     `json:"v"`
	Event id.Held `json:"event"`
}

// Message returns the message of an event.
func Message(event id.Held) (*stream.Message, error) {
	payload, err := json.Marshal(Stored{V: messageVersion, Event: event})
	if err != nil {
		return nil, fmt.Errorf("payment message: %w", err)
	}
	return stream.NewMessage(event.String(), payload), nil
}

// EventStream publishes messages to the stream of payment events. It implements Events.
type EventStream struct {
	Publisher stream.Publisher
	Topic     string
}

// Publish implements Events.
func (e EventStream) Publish(ctx context.Context, event id.Held) error {
	msg, err := Message(event)
	if err != nil {
		return err
	}
	msg.SetContext(ctx)
	return e.Publisher.Publish(e.Topic, msg)
}

// Handle handles the event of a message. It returns nil once the event was handled,
// held, or postponed.
func (s *Service) Handle(msg *stream.Message) error {
	var stored Stored
	if err := json.Unmarshal(msg.Payload, &stored); err != nil {
		return stream.Permanent(fmt.Errorf("%w: %w", ErrMalformed, err))
	}
	if stored.V != messageVersion || stored.Event.IsZero() {
		return stream.Permanent(fmt.Errorf("%w: message of version %d", ErrMalformed, stored.V))
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(msg.Context()), handleTimeout)
	defer cancel()
	err := s.Settle(ctx, stored.Event)
	if err != nil && isTransient(err) {
		return stream.Retryable(err)
	}
	return err
}

// isTransient reports whether an error is independent of the event.
func isTransient(err error) bool {
	return errors.Is(err, postgres.ErrCommitUnknown) || postgres.Retryable(err) || fault.IsTransient(err)
}

// forgedEvery is the shortest interval between two reports of forged call-backs, so that
// a flood of them does not fill the security log.
const forgedEvery = 10 * time.Second

// forgeries reports forged call-backs, at most one report per forgedEvery. It is safe for
// concurrent use.
type forgeries struct {
	security Security // nil = they are not reported
	clock    clock.Clock

	mu    sync.Mutex
	count int       // guarded by mu; since the last report
	next  time.Time // guarded by mu
}

// seen counts a forged call-back. The report has the number since the one before, and the
// provider and the client of the last.
func (f *forgeries) seen(ctx context.Context, provider string) {
	if f.security == nil {
		return
	}
	now := f.clock.Now()
	f.mu.Lock()
	f.count++
	count, due := f.count, !now.Before(f.next)
	if due {
		f.count, f.next = 0, now.Add(forgedEvery)
	}
	f.mu.Unlock()
	if due {
		f.security.CallbacksForged(ctx, provider, count)
	}
}
