package orderintake

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"seckill/internal/id"
	"seckill/internal/order"
	"seckill/internal/periodic"
	"seckill/internal/reservation"
	"seckill/internal/stream"
)

const (
	// handsEvery is the pause between two searches for gates that are being rebuilt.
	handsEvery = 200 * time.Millisecond
	// HandsWait is how long the rebuild of a gate waits for the messages in workers'
	// hands: two searches.
	HandsWait = 500 * time.Millisecond
)

// HandsConfig holds the dependencies of Hands.
type HandsConfig struct {
	Gate    *reservation.Gate
	Keys    reservation.Keys
	Streams stream.Appender
	Log     *slog.Logger
}

// Hands are the messages that this process is handling. While the gate of one is being
// rebuilt, its orders are appended to the stream again, so that the build counts them
// even if Redis has lost the message. Handlers are idempotent. It is safe for concurrent
// use; a nil Hands holds nothing.
type Hands struct {
	cfg HandsConfig

	mu       sync.Mutex
	messages map[string]*inHand // guarded by mu; by message id
}

// inHand is a message that is being handled or waits for its next attempt.
type inHand struct {
	requests []order.Requested
	appended map[reservation.ItemRef]int64 // epochs for which the orders were appended again; used by Step
}

// NewHands returns an empty Hands.
func NewHands(cfg HandsConfig) *Hands { return &Hands{cfg: cfg, messages: map[string]*inHand{}} }

func (h *Hands) take(messageID string, requests []order.Requested) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.messages[messageID] == nil {
		h.messages[messageID] = &inHand{requests: requests}
	}
}

func (h *Hands) drop(messageID string) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.messages, messageID)
}

// Loop returns the loop that appends messages again.
func (h *Hands) Loop() periodic.Loop {
	return periodic.Loop{Name: "messages in hand", Every: handsEvery, Timeout: 10 * time.Second, Step: h.Step, Log: h.cfg.Log}
}

// Step appends the orders whose gate is being rebuilt, once per build. It is a
// periodic.Step. It is not safe for concurrent use.
func (h *Hands) Step(ctx context.Context) (map[string]int, error) {
	gates := map[reservation.ItemRef]int64{} // epochs of present builds, 0 = none
	counts := map[string]int{}
	for _, m := range h.held() {
		due := map[reservation.ItemRef][]order.Requested{}
		for _, r := range m.requests {
			ref := reservation.ItemRef{Sale: r.Sale, Item: r.Item}
			epoch, known := gates[ref]
			if !known {
				state, err := h.cfg.Gate.State(ctx, ref.Sale, ref.Item)
				if err != nil {
					return counts, err
				}
				if state.Gate == reservation.GateLoading {
					epoch = state.Epoch
				}
				gates[ref] = epoch
			}
			if r.Epoch < epoch && m.appended[ref] < epoch {
				due[ref] = append(due[ref], r)
			}
		}
		for ref, requests := range due {
			if err := h.append(ctx, ref, requests); err != nil {
				return counts, err
			}
			if m.appended == nil {
				m.appended = map[reservation.ItemRef]int64{}
			}
			m.appended[ref] = gates[ref]
			counts["appended"] += len(requests)
		}
	}
	return counts, nil
}

func (h *Hands) held() []*inHand {
	h.mu.Lock()
	defer h.mu.Unlock()
	held := make([]*inHand, 0, len(h.messages))
	for _, m := range h.messages {
		held = append(held, m)
	}
	return held
}

func (h *Hands) append(ctx context.Context, ref reservation.ItemRef, requests []order.Requested) error {
	msg, err := order.NewMessage(requests...)
	if err != nil {
		return fmt.Errorf("message in hand: %w", err)
	}
	if err := h.cfg.Streams.Append(ctx, h.cfg.Keys.Orders(id.ShardOf(ref.Sale)), msg); err != nil {
		return fmt.Errorf("append a message in hand: %w", err)
	}
	return nil
}
