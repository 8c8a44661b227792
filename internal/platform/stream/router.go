package stream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
)

// Defaults of a Router.
const (
	defaultHandlerTimeout = 2 * time.Second
	defaultMaxFailures    = 20  // about 35 s of failures with the default delays
	defaultMaxDeliveries  = 100 // crashes or restarts of a worker with the message unacknowledged
	closeTimeout          = 10 * time.Second

	// goodRun is the run time after which the next stop counts as the first again.
	goodRun = time.Minute
)

// errStopped is reported when the router ends early without an error.
var errStopped = errors.New("all handlers stopped")

// Handler processes the messages of some streams.
type Handler struct {
	// Name is for logs and metrics.
	Name string
	// Topics are the keys of the streams.
	Topics []string
	// Handle handles one message; it is called concurrently. It returns nil when the
	// message's effects are stored, an error marked Permanent when they never can be,
	// and any other error to be called again. Handling the same message twice must be
	// harmless. The context (msg.Context) has a deadline, which is shared by messages
	// that start together: it does not end with the call.
	Handle func(msg *Message) error
	// Split returns the parts of a message that can be handled by themselves, fewer than
	// two for a message that cannot be divided. A message that would become a dead letter
	// is replaced by its parts, each of which gets its own attempts. nil = no message can.
	Split func(msg *Message) []*Message
}

// RouterConfig configures a Router. Zero numbers mean the default.
type RouterConfig struct {
	// NewSubscriber creates the subscriber of one run. It is closed at the end of the
	// run, together with its client.
	NewSubscriber func() (*Subscriber, error)
	Handlers      []Handler
	DeadLetters   *DeadLetters

	HandlerTimeout time.Duration // timeout of one call [2 s]
	MaxFailures    int           // failures of a message in one process before it becomes a dead letter [20]
	MaxDeliveries  int           // deliveries of a message without a reply before it becomes a dead letter [100]

	Log     *slog.Logger
	Metrics *Metrics
}

// Router runs handlers on watermill's router and restarts it when it ends early.
type Router struct {
	cfg RouterConfig

	mu      sync.Mutex
	current *Subscriber // subscriber of this run, nil between runs; guarded by mu
}

// NewRouter returns a router. Nothing is read before Run.
func NewRouter(cfg RouterConfig) (*Router, error) {
	switch {
	case cfg.NewSubscriber == nil || cfg.DeadLetters == nil || cfg.Log == nil:
		return nil, errors.New("router: subscriber, dead letters and log are needed")
	case len(cfg.Handlers) == 0:
		return nil, errors.New("router: no handlers")
	}
	setDefault(&cfg.HandlerTimeout, defaultHandlerTimeout)
	setDefault(&cfg.MaxFailures, defaultMaxFailures)
	setDefault(&cfg.MaxDeliveries, defaultMaxDeliveries)
	return &Router{cfg: cfg}, nil
}

// Run handles messages until ctx ends and returns nil after the drain: messages in
// flight are finished and acknowledged, the others are handed back to the group. A
// router that ends before ctx is a failure; it is counted, logged and restarted.
func (r *Router) Run(ctx context.Context) error {
	retry := newBackoff()
	for {
		began := time.Now()
		err := r.runOnce(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err == nil {
			err = errStopped
		}
		r.cfg.Metrics.count(RouterStopped, "", 1)
		r.cfg.Log.Error("message router stopped; it is started again", slog.String("error", reasonOf(err)))
		if time.Since(began) > goodRun {
			retry.Reset()
		}
		pause(ctx, retry.NextBackOff())
	}
}

// LastRead returns the time of the last successful read of the stream that was read
// least recently; zero when a stream was never read.
func (r *Router) LastRead() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.current == nil {
		return time.Time{}
	}
	return r.current.LastRead()
}

func (r *Router) runOnce(ctx context.Context) (err error) {
	sub, err := r.cfg.NewSubscriber()
	if err != nil {
		return err
	}
	r.setCurrent(sub)
	defer func() {
		r.setCurrent(nil)
		err = errors.Join(err, sub.Close())
	}()
	router, err := message.NewRouter(message.RouterConfig{CloseTimeout: closeTimeout}, newLogger(r.cfg.Log))
	if err != nil {
		return err
	}
	handlers, err := r.addHandlers(router, sub)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// watermill's router continues while any handler runs. Here one stopped handler
	// ends the run, so that no shard remains unread.
	for _, h := range handlers {
		go func() {
			select {
			case <-router.Running(): // Stopped must not be called before
			case <-ctx.Done():
				return
			}
			select {
			case <-h.Stopped():
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	return router.Run(ctx)
}

func (r *Router) setCurrent(sub *Subscriber) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.current = sub
}

func (r *Router) addHandlers(router *message.Router, sub *Subscriber) ([]*message.Handler, error) {
	var added []*message.Handler
	for _, h := range r.cfg.Handlers {
		for _, topic := range h.Topics {
			chain, err := r.chain(h)
			if err != nil {
				return nil, fmt.Errorf("handler %s: %w", h.Name, err)
			}
			one := router.AddConsumerHandler(h.Name+" "+topic, topic, sub, h.Handle)
			one.AddMiddleware(chain...)
			added = append(added, one)
		}
	}
	return added, nil
}
