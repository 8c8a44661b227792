package app

import (
	"context"

	"github.com/google/uuid"

	"seckill/internal/order"
	"seckill/internal/orderintake"
	"seckill/internal/periodic"
)

// newWriter returns a writer of orders that tells every process how tasks end.
func (a *App) newWriter() *order.Writer {
	return order.NewWriter(order.WriterConfig{
		DB: a.svc.db, Publisher: a.newPublisher(), Clock: a.common, Metrics: a.orderMetrics,
	})
}

// newPublisher returns the publisher of tasks that ended and orders that moved.
func (a *App) newPublisher() *order.Publisher {
	return order.NewPublisher(order.PublisherConfig{
		Cache: a.cache, Tasks: a.office.watchTasks(a.announce), Orders: a.office.watchOrders(a.announceOrders),
		Metrics: a.orderMetrics, Log: a.log,
	})
}

// wireLetters joins what handles order messages without a worker: dead letters and
// lost tasks.
func (a *App) wireLetters() {
	a.ender = a.newWriter()
	a.letters = orderintake.NewDeadLetters(orderintake.DeadLettersConfig{
		DB: a.svc.db, Letters: a.deadLetters, Orders: a.orders, Writer: a.ender, Clock: a.common, Log: a.log,
	})
	a.backlog = orderintake.NewBacklog(a.svc.redis, a.keys, a.letters)
}

// lostTasks returns the loop that fails tasks with neither a reservation nor a message.
func (a *App) lostTasks() periodic.Loop {
	return orderintake.NewLostTasks(orderintake.LostTasksConfig{
		Orders: a.orders, Writer: a.ender, Backlog: a.backlog, Clock: a.common, Log: a.log,
		Reserved: func(ctx context.Context, t order.Task) (bool, error) {
			held, err := a.gate.Reservations(ctx, t.Sale, []uuid.UUID{t.Item}, t.User)
			return held[t.Item].Task == t.ID, err
		},
	}).Loop()
}
