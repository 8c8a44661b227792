package orderintake

import (
	"errors"
	"fmt"
	"time"

	"seckill/internal/order"
	"seckill/internal/stream"
)

// HandleTimeout bounds the handling of one message: a fifth of the idle time after
// which another worker claims it.
const HandleTimeout = 3 * time.Second

// Handler passes the orders of a message to the writer. The router calls it once per
// message, many at a time; the writer batches them.
type Handler struct {
	writer *order.Writer
}

// NewHandler returns a handler on a writer.
func NewHandler(w *order.Writer) *Handler { return &Handler{writer: w} }

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
	var failed error
	for i, result := range h.writer.WriteAll(msg.Context(), requests) {
		if result.Err == nil {
			continue
		}
		err := fmt.Errorf("handle order %s: %w", requests[i].Task, result.Err)
		if passes(result.Err) {
			return stream.Retryable(err)
		}
		failed = err
	}
	if failed != nil && len(requests) > 1 {
		return stream.Permanent(failed)
	}
	return failed
}

func passes(err error) bool {
	return order.IsTransient(err) || errors.Is(err, order.ErrBusy) || errors.Is(err, order.ErrClosed)
}
