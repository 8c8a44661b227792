package graph

import (
	"context"
	"strings"

	"github.com/google/uuid"

	"seckill/graph/model"
	"seckill/internal/buy/orderintake"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/cursor"
	"seckill/internal/platform/id"
)

// maxFieldText bounds the shown text of a message field, in bytes.
const maxFieldText = 4000

func toLetter(l *orderintake.Letter) *model.DeadLetter {
	if l == nil {
		return nil
	}
	out := &model.DeadLetter{
		ID: l.ID, SetAsideAt: l.At, Stream: l.Stream, Reason: l.Reason, Deliveries: l.Deliveries, Attempts: l.Attempts,
		Fields: []*model.DeadLetterField{}, Source: l,
	}
	for _, f := range l.Fields {
		out.Fields = append(out.Fields, &model.DeadLetterField{Name: readable(f.Name), Value: readable(f.Value)})
	}
	return out
}

// readable returns the printable form of bytes.
func readable(b []byte) string {
	return strings.ToValidUTF8(string(b[:min(len(b), maxFieldText)]), "\uFFFD")
}

func toLetterAct(a *orderintake.Act) *model.DeadLetterAct {
	return &model.DeadLetterAct{At: a.At, Kind: a.Kind, LetterID: a.Letter, Note: a.Note, Reason: a.Reason, Source: a}
}

// decision returns the caller's decision about a dead letter.
func decision(ctx context.Context, letterID, note string) orderintake.Decision {
	return orderintake.Decision{Letter: letterID, Actor: auth.PrincipalFrom(ctx).UserID, Note: note}
}

func (r *Resolver) letterConnection(ctx context.Context, first int, after *string) (*model.DeadLetterConnection,
	error) {
	page, total, err := listing[*orderintake.Letter]{
		first: first, begun: after != nil, count: r.Letters.Count,
		read: func(ctx context.Context, limit int) ([]*orderintake.Letter, error) {
			return r.Letters.List(ctx, deref(after), limit)
		},
		cursor: func(l *orderintake.Letter) string { return l.ID },
	}.page(ctx)
	if err != nil {
		return nil, err
	}
	out := toPage(page, toLetter, func(n *model.DeadLetter, cursor string) *model.DeadLetterEdge {
		return &model.DeadLetterEdge{Cursor: cursor, Node: n}
	})
	return &model.DeadLetterConnection{Nodes: out.nodes, Edges: out.edges, PageInfo: out.info, TotalCount: total}, nil
}

// actConnection returns a page of decisions about dead letters. A cursor is the id of a
// decision.
func (r *Resolver) actConnection(ctx context.Context, in orderintake.ActList,
	after *string) (*model.DeadLetterActConnection, error) {
	var err error
	if in.After, err = cursor.Parse(after, uuid.Parse); err != nil {
		return nil, err
	}
	page, total, err := listing[*orderintake.Act]{
		first: in.Limit, begun: after != nil,
		read: func(ctx context.Context, limit int) ([]*orderintake.Act, error) {
			in.Limit = limit
			return r.Letters.Acts(ctx, in)
		},
		cursor: func(a *orderintake.Act) string { return a.ID.String() },
		count:  func(ctx context.Context) (int, error) { return r.Letters.CountActs(ctx, in) },
	}.page(ctx)
	if err != nil {
		return nil, err
	}
	out := toPage(page, toLetterAct, func(n *model.DeadLetterAct, cursor string) *model.DeadLetterActEdge {
		return &model.DeadLetterActEdge{Cursor: cursor, Node: n}
	})
	return &model.DeadLetterActConnection{Nodes: out.nodes, Edges: out.edges, PageInfo: out.info, TotalCount: total}, nil
}

// letterNode returns a dead letter, for operators.
func (r *Resolver) letterNode(ctx context.Context, letterID string) (model.Node, error) {
	if !isOperator(ctx) {
		return nil, nil
	}
	l, err := r.Letters.Letter(ctx, letterID)
	return orNil(toLetter(l)), err
}

// paidFor returns the order of a payment, or nil when it is unknown.
func (r *Resolver) paidFor(ctx context.Context, paymentID id.Payment) (*model.Order, error) {
	p, err := r.Payments.Payment(ctx, paymentID)
	if err != nil || p == nil {
		return nil, err
	}
	o, err := r.Orders.Order(ctx, p.Order)
	return r.toOrder(o), err
}
