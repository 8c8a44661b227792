package order

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
)

// handleTimeout bounds one message. It is the handler's own, because a message
// that comes again has lost its context, and a fifth of the idle time after
// which another worker claims the message.
const handleTimeout = 3 * time.Second

// Handler hands messages of the order streams to the writer. The router runs it
// once per message, many at a time; they meet in the writer's batches.
type Handler struct {
	writer *Writer
}

// NewHandler returns a handler on a writer.
func NewHandler(w *Writer) *Handler { return &Handler{writer: w} }

// Handle returns nil once the task has ended and that is committed: as an order
// or as a recorded failure. A message that can never be handled gives a permanent
// error (ErrMalformed), for the dead letters; any other error means that the
// message is to come again.
func (h *Handler) Handle(msg *message.Message) error {
	request, err := Decode(msg)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(msg.Context()), handleTimeout)
	defer cancel()
	if _, err := h.writer.Write(ctx, request); err != nil {
		return fmt.Errorf("handle order %s: %w", request.Task, err)
	}
	return nil
}

// IsPermanent tells whether a message that failed with err would fail again for
// ever.
func IsPermanent(err error) bool { return errors.Is(err, ErrMalformed) }
