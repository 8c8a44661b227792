package graph

import (
	"context"

	"seckill/graph/model"
	"seckill/internal/buy/order"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/ratelimit"
)

// unknown refuses an id in the input that names no object visible to the caller.
func unknown(field string) error {
	return fault.Refused{Why: fault.Unknown, At: []string{field}}
}

// ownOrder returns an order that the caller may see; others are NOT_FOUND.
func (r *Resolver) ownOrder(ctx context.Context, orderID string) (*order.Order, error) {
	missing := fault.New(fault.NotFound, "There is no such order.")
	u, err := id.ParseOrder(orderID)
	if err != nil {
		return nil, missing
	}
	o, err := r.visibleOrder(ctx, u)
	if err == nil && o == nil {
		err = missing
	}
	return o, err
}

// visibleOrder returns an order that the caller may see, or nil.
func (r *Resolver) visibleOrder(ctx context.Context, orderID id.Order) (*order.Order, error) {
	return ratelimit.Find(ctx, r.Absences, func(ctx context.Context) (*order.Order, error) {
		return r.Orders.OrderFor(ctx, orderID, auth.PrincipalFrom(ctx).UserID, reads(ctx, auth.OrdersRead))
	})
}

// orderBy returns the order with a key if the caller may see it, else nil. An order has the
// UUID of the task that became it.
func (r *Resolver) orderBy(ctx context.Context, by model.OrderLookup) (*order.Order, error) {
	switch {
	case by.ID != nil:
		u, err := id.ParseOrder(*by.ID)
		if err != nil {
			return nil, nil
		}
		return r.visibleOrder(ctx, u)
	case by.TaskID != nil:
		u, err := id.ParseTask(*by.TaskID)
		if err != nil {
			return nil, nil
		}
		return r.visibleOrder(ctx, id.Order(u))
	}
	return ratelimit.Find(ctx, r.Absences, func(ctx context.Context) (*order.Order, error) {
		return r.Orders.NumberFor(ctx, deref(by.Number), auth.PrincipalFrom(ctx).UserID, reads(ctx, auth.OrdersRead))
	})
}

// ownTask returns a task of the caller; nil when it does not exist or belongs to another
// user.
func (r *Resolver) ownTask(ctx context.Context, taskID string) (*order.Task, error) {
	u, err := id.ParseTask(taskID)
	if err != nil {
		return nil, nil
	}
	user := auth.PrincipalFrom(ctx).UserID
	t, err := ratelimit.Find(ctx, r.Absences,
		func(ctx context.Context) (*order.Task, error) { return r.Orders.Task(ctx, u, user) })
	switch {
	case err != nil:
		return nil, err
	case t != nil && (t.User == user || isOperator(ctx)):
		return t, nil
	case isOperator(ctx):
		return r.anyTask(ctx, u)
	}
	return nil, nil
}

// anyTask returns the task of any user, for operators.
func (r *Resolver) anyTask(ctx context.Context, task id.Task) (*order.Task, error) {
	return r.Orders.Task(ctx, task, id.User{})
}
