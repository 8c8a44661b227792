package stream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"

	"seckill/internal/platform/fault"
	"seckill/internal/platform/periodic"
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
		_ = periodic.Sleep(ctx, retry.NextBackOff()) // the loop looks at ctx
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

// chain returns the middlewares of a handler, outermost first:
//
//	poison      permanent errors only, and not with the message's context (watermill's
//	            PoisonQueue takes every error, and with its Timeout repeats forever)
//	split       replaces a message that cannot be handled by its parts
//	measure     counts the outcome and the duration of everything inside
//	classify    classifies errors as permanent, retryable or counted; rejects what must
//	            not reach the handler
//	recover     turns a panic into an error of the handler
//	deadline    bounds the handler's context, and then restores the message's own
func (r *Router) chain(h Handler) ([]message.HandlerMiddleware, error) {
	aside, err := middleware.PoisonQueueWithFilter(r.cfg.DeadLetters, "dead letters", IsPermanent)
	if err != nil {
		return nil, err
	}
	return []message.HandlerMiddleware{
		aside,
		r.split(h),
		measure(h.Name, r.cfg.Metrics),
		r.classify,
		middleware.Recoverer,
		deadline(r.cfg.HandlerTimeout),
	}, nil
}

// split appends the parts of a message whose error is permanent, so that the message
// itself is acknowledged. Parts that were handled before are handled again, without
// effect.
func (r *Router) split(h Handler) message.HandlerMiddleware {
	return func(next message.HandlerFunc) message.HandlerFunc {
		return func(msg *Message) ([]*Message, error) {
			produced, err := next(msg)
			if !IsPermanent(err) || h.Split == nil {
				return produced, err
			}
			parts := h.Split(msg)
			if len(parts) < 2 {
				return nil, err
			}
			ctx, cancel := context.WithTimeout(context.WithoutCancel(msg.Context()), commandTimeout)
			defer cancel()
			topic := message.SubscribeTopicFromCtx(msg.Context())
			if failed := appendSplit(ctx, r.cfg.DeadLetters.client, topic, EntryID(msg), parts); failed != nil {
				return nil, Retryable(failed)
			}
			r.cfg.Metrics.count(Divided, topic, 1)
			r.cfg.Log.Warn("message split", slog.String("stream", topic), slog.String("entry", EntryID(msg)),
				slog.Int("parts", len(parts)), slog.String("reason", reasonOf(err)))
			return nil, nil
		}
	}
}

// deadline bounds only the context of the handler. watermill's Timeout leaves the
// message with a cancelled context, which breaks everything after it.
func deadline(timeout time.Duration) message.HandlerMiddleware {
	limits := &limits{timeout: timeout}
	return func(next message.HandlerFunc) message.HandlerFunc {
		return func(msg *Message) ([]*Message, error) {
			outer := msg.Context()
			limit := limits.enter(outer)
			defer limits.leave(limit)
			msg.SetContext(limit.ctx)
			defer msg.SetContext(outer)
			return next(msg)
		}
	}
}

// classify decides the consequence of an error for the message.
func (r *Router) classify(next message.HandlerFunc) message.HandlerFunc {
	return func(msg *Message) ([]*Message, error) {
		if reason, bad := Malformed(msg); bad {
			return nil, Permanent(fmt.Errorf("malformed entry: %s", reason))
		}
		if n := Deliveries(msg); n > r.cfg.MaxDeliveries {
			return nil, Permanent(fmt.Errorf("delivered %d times without an answer", n))
		}
		produced, err := next(msg)
		if p, panicked := errors.AsType[middleware.RecoveredPanicError](err); panicked {
			fault.Caught(p.V, fault.InHandler)
		}
		err = redactPanic(err)
		switch {
		case err == nil || IsPermanent(err) || IsRetryable(err):
			return produced, err
		}
		n := failures(msg) + 1
		msg.Metadata.Set(metaFailures, strconv.Itoa(n))
		if n >= r.cfg.MaxFailures {
			return nil, Permanent(fmt.Errorf("failed %d times: %w", n, err))
		}
		return nil, err
	}
}

// measure counts the outcome of each attempt.
func measure(handler string, metrics *Metrics) message.HandlerMiddleware {
	return func(next message.HandlerFunc) message.HandlerFunc {
		return func(msg *Message) ([]*Message, error) {
			began := time.Now()
			produced, err := next(msg)
			metrics.tried(handler, outcomeOf(err), time.Since(began))
			return produced, err
		}
	}
}

func outcomeOf(err error) Outcome {
	switch {
	case err == nil:
		return Handled
	case IsPermanent(err):
		return GivenUp
	case IsRetryable(err):
		return Retried
	default:
		return Failed
	}
}
