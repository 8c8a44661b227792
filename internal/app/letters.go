package app

import (
	"context"
	"log/slog"
	"slices"

	"github.com/google/uuid"

	"seckill/internal/deadletter"
	"seckill/internal/id"
	"seckill/internal/order"
)

// newWriter returns a writer of orders that tells every process how tasks end.
func (a *App) newWriter() *order.Writer {
	return order.NewWriter(order.WriterConfig{
		DB: a.svc.db, Publisher: a.newPublisher(), Clock: a.common, Meter: orderMeter{a.orderMetrics},
	})
}

// newPublisher returns the publisher of tasks that ended and orders that moved.
func (a *App) newPublisher() *order.Publisher {
	return order.NewPublisher(order.PublisherConfig{
		Cache: a.cache, Tasks: a.office.watchTasks(a.announce), Orders: a.office.watchOrders(a.announceOrders),
		Meter: orderMeter{a.orderMetrics}, Log: a.log,
	})
}

// wireLetters joins what ends tasks that nobody will write any more.
func (a *App) wireLetters() {
	a.ender = a.newWriter()
	a.letters = deadletter.New(deadletter.Config{
		DB: a.svc.db, Letters: a.deadLetters, Orders: a.orders, Writer: a.ender, Clock: a.common, Log: a.log,
	})
}

// alive reports whether anything still stands for a task that has not ended: units
// in Redis, a message in the stream or among those set aside.
func (a *App) alive(ctx context.Context, t *order.Task) (bool, error) {
	held, err := a.gate.Reservations(ctx, t.Sale, []uuid.UUID{t.Item}, t.User)
	if err != nil || held[t.Item].Task == t.ID {
		return true, err
	}
	messages, err := a.pendingOrders(ctx, id.ShardOf(t.Sale))
	return slices.ContainsFunc(messages, func(m order.Requested) bool { return m.Task == t.ID }), err
}

// lost ends a task that nothing stands for any more.
func (a *App) lost(ctx context.Context, t *order.Task) (*order.Task, error) {
	end, err := a.ender.FailLostTask(ctx, t, "lost: neither units nor a message are left of it")
	if err != nil {
		return nil, err
	}
	a.log.ErrorContext(ctx, "task was lost", slog.String("task", id.Format(id.Task, t.ID)), slog.String("status", string(end.Task.Status)))
	return &end.Task, nil
}
