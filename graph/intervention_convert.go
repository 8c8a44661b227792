package graph

import (
	"context"

	"github.com/google/uuid"

	"seckill/graph/model"
	"seckill/internal/platform/cursor"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/money"
	"seckill/internal/staff/operator"
)

// interventionPage parses the arguments of a page.
func interventionPage(first int, after *string, f *model.InterventionFilter) (operator.InterventionList, error) {
	from, err := cursor.Parse(after, id.ParseAct)
	in := operator.InterventionList{Limit: first, After: from}
	if err != nil || f == nil {
		return in, err
	}
	in.States = f.States
	if f.Kind != nil {
		in.Kind = *f.Kind
	}
	if f.SaleID != nil {
		u, err := id.ParseSale(*f.SaleID)
		if err != nil {
			return in, fault.Wrap(fault.BadInput, "filter.saleId is not the id of a sale.", err)
		}
		in.Sale = &u
	}
	return in, nil
}

func (r *Resolver) interventionConnection(ctx context.Context,
	in operator.InterventionList) (*model.InterventionConnection, error) {
	page, total, err := listing[*operator.Intervention]{
		first: in.Limit, begun: !in.After.IsZero(),
		read: func(ctx context.Context, limit int) ([]*operator.Intervention, error) {
			in.Limit = limit
			return r.Operator.Interventions(ctx, in)
		},
		cursor: func(i *operator.Intervention) string { return i.ID.Public() },
		count:  func(ctx context.Context) (int, error) { return r.Operator.CountInterventions(ctx, in) },
	}.page(ctx)
	if err != nil {
		return nil, err
	}
	out := toPage(page, toIntervention, func(n *model.Intervention, cursor string) *model.InterventionEdge {
		return &model.InterventionEdge{Cursor: cursor, Node: n}
	})
	return &model.InterventionConnection{Nodes: out.nodes, Edges: out.edges, PageInfo: out.info, TotalCount: total}, nil
}

func toIntervention(in *operator.Intervention) *model.Intervention {
	if in == nil {
		return nil
	}
	return &model.Intervention{
		ID: in.ID, Kind: in.Kind, State: in.State, Units: in.Units, EndsAt: in.EndsAt,
		Note: in.Note, Decision: unlessZero(in.Decision), CreatedAt: in.CreatedAt, UpdatedAt: in.UpdatedAt,
		Changes: pointers(in.Changes()), Amount: amountOf(in.Amount), Source: in,
	}
}

// amountOf returns an amount; nil for none.
func amountOf(a money.Amount) *model.Money {
	if a.Currency == "" {
		return nil
	}
	return toMoney(a)
}

// interventionNode returns an intervention, for operators.
func (r *Resolver) interventionNode(ctx context.Context, u uuid.UUID) (model.Node, error) {
	if !isOperator(ctx) {
		return nil, nil
	}
	in, err := r.Operator.Intervention(ctx, id.Act(u))
	return orNil(toIntervention(in)), err
}
