package stream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"

	"seckill/internal/platform/fault"
)

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
