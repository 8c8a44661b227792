package order

import (
	"errors"
	"fmt"
	"time"

	"seckill/internal/stream"
)

// HandleTimeout is how long the router is to wait for one message: a fifth of the
// idle time after which another worker claims it.
const HandleTimeout = 3 * time.Second

// Handler hands messages of the order streams to the writer. The router runs it
// once per message, many at a time; they meet in the writer's batches.
type Handler struct {
	writer *Writer
}

// NewHandler returns a handler on a writer.
func NewHandler(w *Writer) *Handler { return &Handler{writer: w} }

// Handle returns nil once the task has ended and that is committed: as an order
// or as a recorded failure. A message that can never be handled gives a permanent
// error, for the dead letters; any other error means that the message is to come
// again. How long it takes is bounded by the message's context.
func (h *Handler) Handle(msg *stream.Message) error {
	request, err := Decode(msg)
	if err != nil {
		return stream.Permanent(err)
	}
	_, err = h.writer.Write(msg.Context(), request)
	switch {
	case err == nil:
		return nil
	case isTransient(err), errors.Is(err, ErrBusy), errors.Is(err, ErrClosed):
		return stream.Retryable(fmt.Errorf("handle order %s: %w", request.Task, err))
	default:
		return fmt.Errorf("handle order %s: %w", request.Task, err)
	}
}

// IsPermanent tells whether a message that failed with err would fail again for
// ever.
func IsPermanent(err error) bool { return stream.IsPermanent(err) }
