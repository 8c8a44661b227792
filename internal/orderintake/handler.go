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

// Handler passes messages of the order streams to the writer. The router calls it
// once per message, many at a time; the writer batches them.
type Handler struct {
	writer *order.Writer
}

// NewHandler returns a handler on a writer.
func NewHandler(w *order.Writer) *Handler { return &Handler{writer: w} }

// Handle returns nil once the end of the task is committed: an order or a recorded
// failure. A message that can never be handled returns a permanent error and becomes a
// dead letter; after any other error the message is redelivered. The message's context
// bounds the handling.
func (h *Handler) Handle(msg *stream.Message) error {
	request, err := order.Decode(msg)
	if err != nil {
		return stream.Permanent(err)
	}
	_, err = h.writer.Write(msg.Context(), request)
	switch {
	case err == nil:
		return nil
	case order.IsTransient(err), errors.Is(err, order.ErrBusy), errors.Is(err, order.ErrClosed):
		return stream.Retryable(fmt.Errorf("handle order %s: %w", request.Task, err))
	default:
		return fmt.Errorf("handle order %s: %w", request.Task, err)
	}
}
