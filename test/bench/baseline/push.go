package baseline

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"seckill/graph/model"
	"seckill/graph/push"
	"seckill/internal/buy/sale"
	"seckill/internal/platform/id"
	"seckill/internal/platform/notifier"
)

// pushKey is the key of the only state.
const pushKey = "bench"

// pushTimeout bounds how long a change waits for the slowest subscriber.
const pushTimeout = 2 * time.Millisecond

// Push publishes one state through the product's hub. The state changes again once every
// subscriber has received the last change.
type Push struct {
	hub  *notifier.Hub
	sent atomic.Int64 // states received by sockets
	more chan struct{}
}

// NewPush returns a state without subscribers.
func NewPush() *Push {
	return &Push{hub: notifier.NewHub(notifier.Options{}), more: make(chan struct{}, 1)}
}

// Watch subscribes one socket to the state.
func (p *Push) Watch(ctx context.Context, _ string) (<-chan *model.StockEvent, error) {
	states, err := notifier.Follow(ctx, p.hub, pushKey, func(context.Context) (notifier.State[*sale.Item], error) {
		return notifier.State[*sale.Item]{Value: &sale.Item{ID: id.New[id.Item](), Total: 1000}, Revision: 1}, nil
	})
	if err != nil {
		return nil, err
	}
	return push.Events(ctx, received{states, p}, func(item *sale.Item, _ bool) *model.StockEvent {
		return &model.StockEvent{
			Kind: model.StreamEventKindUpdate, ServerTime: time.Now().UTC(),
			Items: []*model.SaleItem{{ID: item.ID, Source: item}},
		}
	}), nil
}

// received counts the states that a subscriber takes.
type received struct {
	notifier.Source[*sale.Item]
	p *Push
}

// Next implements notifier.Source.
func (r received) Next() (notifier.State[*sale.Item], bool) {
	state, ok := r.Source.Next()
	r.p.sent.Add(1)
	select {
	case r.p.more <- struct{}{}:
	default:
	}
	return state, ok
}

// Run changes the state until ctx ends.
func (p *Push) Run(ctx context.Context) {
	revision := int64(1)
	pace(ctx, p.more, func() func() bool {
		revision++
		due := p.sent.Load() + int64(p.hub.Followers())
		p.hub.Publish(notifier.Event{Key: pushKey, Revision: revision,
			Value: &sale.Item{Total: 1000, Available: 500, Revision: revision}})
		return func() bool { return p.sent.Load() >= due }
	})
}

// pace changes a value until ctx ends: each time when all subscribers of the last change
// have received it, or pushTimeout later.
func pace(ctx context.Context, received <-chan struct{}, change func() (all func() bool)) {
	late := time.NewTicker(pushTimeout)
	defer late.Stop()
	for {
		all := change()
		for waiting := true; waiting; {
			select {
			case <-received:
				waiting = !all()
			case <-late.C:
				waiting = false // a subscriber had not received the previous change: the two were merged
			case <-ctx.Done():
				return
			}
		}
	}
}

// Writes sends one frame over each socket, using only the product's WebSocket library. The
// frame is the one the client sent.
type Writes struct {
	waits bool // for a change before each frame; otherwise frames are sent without pause

	mu      sync.Mutex
	sockets []chan struct{} // guarded by mu; one slot each
	sent    atomic.Int64
	more    chan struct{}
}

// NewWrites returns a server of frames. With waits it sends one per change, as Push does.
func NewWrites(waits bool) *Writes { return &Writes{waits: waits, more: make(chan struct{}, 1)} }

// Run changes the state until ctx ends.
func (s *Writes) Run(ctx context.Context) {
	pace(ctx, s.more, func() func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		due := s.sent.Load() + int64(len(s.sockets))
		for _, changed := range s.sockets {
			select {
			case changed <- struct{}{}:
			default:
			}
		}
		return func() bool { return s.sent.Load() >= due }
	})
}

func (s *Writes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
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
	if err != nil || !json.Valid(frame) {
		return
	}
	changed := make(chan struct{}, 1)
	s.mu.Lock()
	s.sockets = append(s.sockets, changed)
	s.mu.Unlock()
	for err == nil {
		if s.waits {
			<-changed
			s.sent.Add(1)
			select {
			case s.more <- struct{}{}:
			default:
			}
		}
		err = conn.Write(r.Context(), websocket.MessageText, frame)
	}
}
