package order

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"seckill/internal/platform/money"
)

// Reasons of tasks that were lost from every store.
const (
	// ReasonLost is the reason of a task that was accepted and that Redis lost.
	ReasonLost = "lost: neither a reservation nor a message is left"
	// ReasonVanished is the reason of a task that is known from its id alone.
	ReasonVanished = "vanished: no store has the task, and no process remembers that it was accepted"
	// ReasonRecordLost is the reason of a task whose order, or whose failure, Postgres lost.
	ReasonRecordLost = "lost: Postgres went back to a state without its end"
)

// FailLostTasks is FailTask for tasks whose messages no longer exist. The results are in
// the order of the tasks.
func (w *Writer) FailLostTasks(ctx context.Context, tasks []Task, reason string) []Result {
	results := make([]Result, 0, len(tasks))
	for part := range slices.Chunk(tasks, w.maxBatch) {
		requests := make([]Request, len(part))
		for i, t := range part {
			requests[i] = Request{
				V: requestVersion, Task: t.ID, User: t.User, Sale: t.Sale, Item: t.Item, Quantity: t.Quantity,
				SubmittedAtMs: t.CreatedAt.UnixMilli(),
				Currency:      money.NoCurrency, PaymentWindowSeconds: 1, // there is nothing to pay
			}
		}
		results = append(results, w.fail(ctx, requests, reason)...)
	}
	return results
}

// FailTask ends a task as failed when its message is permanently lost or was dropped by
// an operator. If the task has already ended, it returns that end. The units are
// returned like those of any failed task. A message that arrives later finds the task
// ended. The reason is for operators. Like Write, it may be repeated after an error.
func (w *Writer) FailTask(ctx context.Context, r Request, reason string) Result {
	return w.fail(ctx, []Request{r}, reason)[0]
}

func (w *Writer) fail(ctx context.Context, requests []Request, reason string) []Result {
	results := make([]Result, len(requests))
	var valid []int
	for i := range requests {
		err := requests[i].validateFields()
		if reason == "" {
			err = errors.New("no reason")
		}
		if err != nil {
			results[i].Err = fmt.Errorf("fail task %s: %w", requests[i].Task, err)
			continue
		}
		if requests[i].SubmittedAtMs <= 0 {
			requests[i].SubmittedAtMs = w.clock.Now().UnixMilli()
		}
		valid = append(valid, i)
	}
	c := submission{giveUp: reason}
	for _, i := range valid {
		c.requests = append(c.requests, requests[i])
	}
	if len(valid) == 0 {
		return results
	}
	for n, result := range w.do(ctx, c) {
		results[valid[n]] = result
	}
	return results
}
