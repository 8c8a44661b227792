package orderintake

import (
	"context"
	"errors"
	"fmt"
	"time"

	"seckill/internal/buy/order"
	"seckill/internal/buy/reservation"
	"seckill/internal/platform/batch"
	"seckill/internal/platform/id"
	"seckill/internal/platform/stream"
)

// HandleTimeout bounds the handling of one message: a fifth of the idle time after
// which another worker claims it.
const HandleTimeout = 3 * time.Second

// Handler passes the orders of a message to the writer. The router calls it once per
// message, many at a time; the writer batches them.
type Handler struct {
	writer   *order.Writer
	gate     *reservation.Gate
	inFlight *InFlight
}

// NewHandler returns a handler on a writer. The in-flight messages may be nil.
func NewHandler(w *order.Writer, gate *reservation.Gate, inFlight *InFlight) *Handler {
	return &Handler{writer: w, gate: gate, inFlight: inFlight}
}

// Handle returns nil once the end of every task of the message is committed: an order
// or a recorded failure. After a retryable error the message is redelivered. If one of
// several orders cannot be handled, the error is permanent: the router then splits the
// message, and each order is handled by itself. The message's context bounds the
// handling.
func (h *Handler) Handle(msg *stream.Message) error {
	requests, err := order.Decode(msg)
	if err != nil {
		return stream.Permanent(err)
	}
	h.inFlight.take(msg.UUID, requests)
	ctx, end := h.writer.Trace(msg, requests)
	err = h.handle(ctx, requests)
	end(err)
	if !stream.IsRetryable(err) {
		h.inFlight.drop(msg.UUID)
	}
	return err
}

func (h *Handler) handle(ctx context.Context, requests []order.Request) error {
	var failed error
	var superseded []order.Request
	for i, result := range h.writer.Write(ctx, requests...) {
		switch {
		case result.Err == nil:
			continue
		case errors.Is(result.Err, order.ErrSuperseded):
			superseded = append(superseded, requests[i])
			continue
		}
		err := fmt.Errorf("handle order %s: %w", requests[i].Task, result.Err)
		if retryable(result.Err) {
			return stream.Retryable(err)
		}
		failed = err
	}
	if failed != nil && len(requests) > 1 {
		return stream.Permanent(failed)
	}
	if failed == nil && len(superseded) > 0 {
		return h.readmit(ctx, superseded)
	}
	return failed
}

// readmit writes orders whose gate was rebuilt, after it has found or made a reservation in the present gate.
// The build has counted the messages that it found in the stream. For those that Redis lost
// while a worker was handling them, units are reserved again if there are enough.
func (h *Handler) readmit(ctx context.Context, requests []order.Request) error {
	var again []order.Request
	for _, r := range requests {
		o, err := h.gate.Reacquire(ctx, reservation.Reacquire{
			Ref: reservation.Ref{Sale: r.Sale, Item: r.Item, User: r.User, Task: r.Task}, Before: id.Order{},
			Quantity: r.Quantity, IdempotencyKey: r.IdempotencyKey, Persons: r.Persons,
		})
		if err != nil {
			return stream.Retryable(err)
		}
		switch o.Code {
		case reservation.Reacquired, reservation.ReacquiredBefore:
			r.Epoch = o.Epoch
			again = append(again, r)
			continue
		case reservation.ReacquireNotYet, reservation.ReacquireNotLoaded:
			return stream.Retryable(fmt.Errorf("handle order %s: %w", r.Task, order.ErrSuperseded))
		case reservation.ReacquireTooFew:
			err = h.writer.FailTask(ctx, r, "its gate was lost, and the units were sold again").Err
		case reservation.ReacquireOther:
			err = h.writer.FailTask(ctx, r, "its gate was lost, and its buyer has another reservation").Err
		case reservation.ReacquireOverLimit:
			err = h.writer.FailTask(ctx, r, "its gate was lost, and its buyer has used up the limit of the sale since").Err
		}
		if err != nil {
			return stream.Retryable(err)
		}
	}
	for i, result := range h.writer.Write(ctx, again...) {
		if result.Err != nil { // the gate may have been rebuilt once more
			return stream.Retryable(fmt.Errorf("handle order %s: %w", again[i].Task, result.Err))
		}
	}
	return nil
}

func retryable(err error) bool {
	return order.IsTransient(err) || errors.Is(err, batch.ErrFull) || errors.Is(err, batch.ErrClosed)
}
