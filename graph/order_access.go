package graph

import (
	"context"
	"slices"

	"github.com/99designs/gqlgen/graphql"

	"seckill/graph/model"
	"seckill/internal/buy/order"
	"seckill/internal/buy/storefront"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/cursor"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/ratelimit"
	"seckill/internal/platform/typed"
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

// ownTask returns a task of the caller; nil when it does not exist or belongs to another
// user.
func (r *Resolver) ownTask(ctx context.Context, taskID string) (*order.Task, error) {
	u, err := id.ParseTask(taskID)
	if err != nil {
		return nil, nil
	}
	user := auth.PrincipalFrom(ctx).UserID
	t, err := ratelimit.Find(ctx, r.Absences, func(ctx context.Context) (*order.Task, error) { return r.Orders.Task(ctx, u, user) })
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

// orderPage parses the page arguments of an order list.
func orderPage(p storefront.PageInput) (in order.ListInput, err error) {
	if in.Limit, in.Backward, err = p.Size(); err != nil {
		return in, err
	}
	if in.After, err = cursor.Parse(p.After, cursor.ParsePosition); err != nil {
		return in, err
	}
	in.Before, err = cursor.Parse(p.Before, cursor.ParsePosition)
	return in, err
}

func orderFilter(f *model.OrderFilter) (order.Filter, error) {
	var out order.Filter
	if f == nil {
		return out, nil
	}
	if f.SaleID != nil {
		u, err := id.ParseSale(*f.SaleID)
		if err != nil {
			return out, fault.Wrap(fault.BadInput, "filter.saleId is not the id of a sale.", err)
		}
		out.Sale = u
	}
	out.Statuses, out.From, out.Until = f.Statuses, deref(f.CreatedFrom), deref(f.CreatedUntil)
	if f.Search != nil {
		out.Match = order.Numbered(typed.QueryOf(*f.Search))
	}
	return out, nil
}

func (r *Resolver) orderConnection(ctx context.Context, in order.ListInput) (*model.OrderConnection, error) {
	page, err := r.Orders.List(ctx, in)
	if err != nil {
		return nil, err
	}
	out := &model.OrderConnection{Edges: make([]*model.OrderEdge, len(page.Orders))}
	cursors := make([]string, len(page.Orders))
	for i, o := range page.Orders {
		cursors[i] = order.CursorOf(o).String()
		out.Edges[i] = &model.OrderEdge{Cursor: cursors[i], Node: r.toOrder(o)}
	}
	out.PageInfo = toPageInfo(cursors, page.HasNext, page.HasPrevious)
	out.TotalCount, err = totalOf(ctx, func(ctx context.Context) (int, error) { return r.Orders.Count(ctx, in.Filter) })
	return out, err
}

// asked reports whether the current field selects a subfield: of the first name, in it one
// of the second, and so on.
func asked(ctx context.Context, names ...string) bool {
	fields := graphql.CollectFieldsCtx(ctx, nil)
	for depth, name := range names {
		at := slices.IndexFunc(fields, func(f graphql.CollectedField) bool { return f.Name == name })
		if at < 0 {
			return false
		}
		if depth < len(names)-1 {
			fields = graphql.CollectFields(graphql.GetOperationContext(ctx), fields[at].Selections, nil)
		}
	}
	return true
}
