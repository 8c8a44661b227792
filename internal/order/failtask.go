package order

import (
	"context"
	"errors"
	"fmt"

	"seckill/ent"
	"seckill/internal/money"
)

// ReasonLost is the reason of a task that was accepted and that Redis lost.
const ReasonLost = "lost: neither a reservation nor a message is left"

// FailLostTask is FailTask for a task whose message no longer exists.
func (w *Writer) FailLostTask(ctx context.Context, t *Task, reason string) (Outcome, error) {
	return w.FailTask(ctx, Requested{
		V: requestVersion, Task: t.ID, User: t.User, Sale: t.Sale, Item: t.Item, Quantity: t.Quantity,
		SubmittedAtMs: t.CreatedAt.UnixMilli(),
		Currency:      money.NoCurrency, PaymentWindowSeconds: 1, // there is nothing to pay
	}, reason)
}

// FailTask ends a task as failed when its message is permanently lost or was dropped by
// an operator. If the task has already ended, it returns that end. The units are
// returned like those of any failed task. A message that arrives later finds the task
// ended. The reason is for operators.
func (w *Writer) FailTask(ctx context.Context, r Requested, reason string) (Outcome, error) {
	if reason == "" {
		return Outcome{}, errors.New("fail a task: no reason")
	}
	if err := r.validateFields(); err != nil {
		return Outcome{}, fmt.Errorf("fail a task: %w", err)
	}
	if r.SubmittedAtMs <= 0 {
		r.SubmittedAtMs = w.clock.Now().UnixMilli()
	}
	b, err := w.try(ctx, 1, nil, func(ctx context.Context, tx *ent.Tx, b *orderBatch) error {
		b.giveUp = reason
		return b.oneByOne(ctx, tx, []Requested{r})
	})
	if err != nil {
		return Outcome{}, fmt.Errorf("fail task %s: %w", r.Task, err)
	}
	w.publish(ctx, b.ends)
	return b.ends[r.Task], nil
}
