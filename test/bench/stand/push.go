package stand

import (
	"context"
	"encoding/json"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
	"github.com/google/uuid"

	"seckill/graph/model"
	"seckill/internal/notifier"
	"seckill/internal/order"
	"seckill/internal/storefront"
)

// pushKey is the key of the only state.
const pushKey = "bench"

// pushPatience bounds how long a change waits for the slowest subscriber.
const pushPatience = 2 * time.Millisecond

// Push publishes one state through the product's hub. The state changes again once every
// subscriber has received the last change.
type Push struct {
	hub  *notifier.Hub
	sent atomic.Int64 // events passed to sockets
	more chan struct{}
}

// NewPush returns a state without subscribers.
func NewPush() *Push {
	return &Push{hub: notifier.NewHub(notifier.Options{}), more: make(chan struct{}, 1)}
}

// Watch subscribes one socket to the state.
func (p *Push) Watch(ctx context.Context, taskID string) (<-chan *model.OrderTaskEvent, error) {
	states, err := notifier.Follow(ctx, p.hub, pushKey, func(context.Context) (notifier.State[*order.Task], error) {
		return notifier.State[*order.Task]{Value: &order.Task{Status: order.Submitted}, Revision: 1}, nil
	})
	if err != nil {
		return nil, err
	}
	return storefront.Events(ctx, states, func(t *order.Task, _ bool) *model.OrderTaskEvent {
		p.sent.Add(1)
		select {
		case p.more <- struct{}{}:
		default:
		}
		return &model.OrderTaskEvent{
			Kind: model.StreamEventKindUpdate, ServerTime: time.Now().UTC(),
			OrderTask: &model.OrderTask{ID: taskID, Status: order.Submitted, Revision: int(t.Revision), Source: t},
		}
	}), nil
}

// Run changes the state until ctx ends.
func (p *Push) Run(ctx context.Context) {
	late := time.NewTicker(pushPatience)
	defer late.Stop()
	task := uuid.New()
	for revision := int64(2); ; revision++ {
		due := p.sent.Load() + int64(p.hub.Followers())
		p.hub.Publish(notifier.Event{Key: pushKey, Revision: revision, Value: &order.Task{
			ID: task, Status: order.Submitted, Revision: revision,
		}})
		for waiting := true; waiting; {
			select {
			case <-p.more:
				waiting = p.sent.Load() < due
			case <-late.C:
				waiting = false // a subscriber had not received the previous change: the two were merged
			case <-ctx.Done():
				return
			}
		}
	}
}

// Writes sends one frame repeatedly over each socket, using only the product's WebSocket
// library. The frame is the one the client sent.
func Writes() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"graphql-transport-ws"}})
		if err != nil {
			return
		}
		defer func() { _ = conn.CloseNow() }() // the client is gone
		for range 2 {                          // init, subscribe
			if _, _, err := conn.Read(r.Context()); err != nil {
				return
			}
			if err := conn.Write(r.Context(), websocket.MessageText, []byte(`{"type":"connection_ack"}`)); err != nil {
				return
			}
		}
		_, frame, err := conn.Read(r.Context())
		if err != nil {
			return
		}
		if !json.Valid(frame) {
			return
		}
		for conn.Write(r.Context(), websocket.MessageText, frame) == nil {
			continue
		}
	})
}
