package orderintake

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"seckill/internal/buy/order"
	"seckill/internal/buy/reservation"
	"seckill/internal/platform/id"
	"seckill/internal/platform/periodic"
	"seckill/internal/platform/stream"
)

const (
	// inFlightEvery is the pause between two searches for gates that are being rebuilt.
	inFlightEvery = 200 * time.Millisecond
	// idleInFlight is the longest pause while no message is handled. The first one ends it.
	idleInFlight = time.Second
	// InFlightWait is how long the rebuild of a gate waits for the messages that
	// workers are handling: two searches.
	InFlightWait = 500 * time.Millisecond
)

// InFlightConfig holds the dependencies of InFlight.
type InFlightConfig struct {
	Gate    *reservation.Gate
	Keys    reservation.Keys
	Streams stream.Appender
	Log     *slog.Logger
}

// InFlight holds the messages that this process is handling. While the gate of one is being
// rebuilt, its orders are appended to the stream again, so that the build counts them
// even if Redis has lost the message. Handlers are idempotent. It is safe for concurrent
// use; a nil InFlight holds nothing.
type InFlight struct {
	cfg InFlightConfig

	mu       sync.Mutex
	messages map[string]*inFlightMessage // guarded by mu; by message id

	begun chan struct{} // has a value after the first message
}

// inFlightMessage is a message that is being handled, or waits for its next attempt after
// a retryable error.
type inFlightMessage struct {
	requests []order.Request
	appended map[reservation.ItemRef]int64 // epochs for which the orders were appended again; used by Step
}

// NewInFlight returns an empty InFlight.
func NewInFlight(cfg InFlightConfig) *InFlight {
	return &InFlight{cfg: cfg, messages: map[string]*inFlightMessage{}, begun: make(chan struct{}, 1)}
}

func (f *InFlight) take(messageID string, requests []order.Request) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.messages[messageID] == nil {
		f.messages[messageID] = &inFlightMessage{requests: requests}
	}
	if len(f.messages) == 1 {
		select {
		case f.begun <- struct{}{}:
		default:
		}
	}
}

func (f *InFlight) drop(messageID string) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.messages, messageID)
}

// Loop returns the loop that appends messages again.
func (f *InFlight) Loop() periodic.Loop {
	return periodic.Loop{Name: "in-flight messages", Every: inFlightEvery, Timeout: 10 * time.Second, Step: f.Step,
		Idle: idleInFlight, Wake: f.begun, Busy: func() bool { return len(f.all()) > 0 }, Log: f.cfg.Log}
}

// Step appends the orders whose gate is being rebuilt, once per build. It is a
// periodic.Step. It is not safe for concurrent use.
func (f *InFlight) Step(ctx context.Context) (map[string]int, error) {
	gates := map[reservation.ItemRef]int64{} // epochs of present builds, 0 = none
	counts := map[string]int{}
	var failed []error // shards may be on other servers
	for _, m := range f.all() {
		due := map[reservation.ItemRef][]order.Request{}
		for _, r := range m.requests {
			ref := reservation.ItemRef{Sale: r.Sale, Item: r.Item}
			epoch, known := gates[ref]
			if !known {
				state, err := f.cfg.Gate.State(ctx, ref.Sale, ref.Item)
				if err != nil {
					failed = append(failed, err)
				} else if state.Gate == reservation.GateLoading {
					epoch = state.Epoch
				}
				gates[ref] = epoch
			}
			if r.Epoch < epoch && m.appended[ref] < epoch {
				due[ref] = append(due[ref], r)
			}
		}
		for ref, requests := range due {
			if err := f.append(ctx, ref, requests); err != nil {
				failed = append(failed, err)
				continue
			}
			if m.appended == nil {
				m.appended = map[reservation.ItemRef]int64{}
			}
			m.appended[ref] = gates[ref]
			counts["appended"] += len(requests)
		}
	}
	return counts, errors.Join(failed...)
}

func (f *InFlight) all() []*inFlightMessage {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make([]*inFlightMessage, 0, len(f.messages))
	for _, m := range f.messages {
		all = append(all, m)
	}
	return all
}

func (f *InFlight) append(ctx context.Context, ref reservation.ItemRef, requests []order.Request) error {
	msg, err := order.NewMessage(requests...)
	if err != nil {
		return fmt.Errorf("in-flight message: %w", err)
	}
	if err := f.cfg.Streams.Append(ctx, f.cfg.Keys.Orders(id.ShardOf(ref.Sale)), msg); err != nil {
		return fmt.Errorf("append an in-flight message: %w", err)
	}
	return nil
}
