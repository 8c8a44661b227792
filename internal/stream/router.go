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
	defaultMaxFailures    = 20  // with the default delays about 35 s of failing
	defaultMaxDeliveries  = 100 // deaths of a worker, or restarts, with the message unanswered
	closeTimeout          = 10 * time.Second

	// goodRun is how long a router must have run for the next stop to count as
	// the first.
	goodRun = time.Minute
)

// errStopped is what a router that ended by itself, without saying why, ran into.
var errStopped = errors.New("all handlers stopped")

// Handler is what is done with the messages of some streams.
type Handler struct {
	// Name is for logs and metrics.
	Name string
	// Topics are the keys of the streams.
	Topics []string
	// Handle handles one message; it is called for many at once. It returns nil
	// when the message's effects are stored, an error marked Permanent when they
	// never can be, and any other error to be called again. Handling the same
	// message twice must do no harm. Its context (msg.Context) has a deadline, which
	// messages that begin together share: it does not end with the call.
	Handle func(msg *Message) error
}

// RouterConfig is what a Router runs. Zero numbers take the default.
type RouterConfig struct {
	// NewSubscriber makes the subscriber for one run: it is closed with the run,
	// and its client with it.
	NewSubscriber func() (*Subscriber, error)
	Handlers      []Handler
	DeadLetters   *DeadLetters

	// IsTransient reports errors that say nothing about the message, beside those that
	// IsRetryable knows. May be nil.
	IsTransient func(error) bool

	HandlerTimeout time.Duration // of one call [2 s]
	MaxFailures    int           // failures of a message in one process before it is set aside [20]
	MaxDeliveries  int           // deliveries of a message without an answer before it is set aside [100]

	Log     *slog.Logger
	Metrics *Metrics
}

// Router runs handlers on watermill's router and starts it again when it ends by
// itself.
type Router struct {
	cfg RouterConfig

	mu      sync.Mutex
	current *Subscriber // of this run, nil between runs; guarded by mu
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

// Run handles messages until ctx ends and returns nil after the drain: messages
// in flight are finished and acknowledged, the rest is handed back to the group.
// A router that ends before ctx does is a failure; it is counted, logged and
// started again.
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

// LastRead returns the oldest last good read over all streams, zero when there
// is none yet.
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
	// watermill's router goes on while one of its handlers is left. Here one that
	// stopped ends the run, so that no shard is left unread.
	for _, h := range handlers {
		go func() {
			select {
			case <-router.Running(): // before that Stopped may not be asked
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
