package graph

import (
	"context"

	"seckill/graph/model"
	"seckill/internal/buy/refusal"
	"seckill/internal/buy/salestats"
	"seckill/internal/platform/fault"
)

// toAttempts returns what was refused to a user, without the units that a sale hides.
func (r *Resolver) toAttempts(ctx context.Context, list []refusal.Refusal) *model.RefusedAttempts {
	out := &model.RefusedAttempts{Attempts: make([]*model.RefusedAttempt, len(list))}
	for i, a := range list {
		out.Total += a.Times
		one := &model.RefusedAttempt{
			Stage: salestats.Stage(a.Stage), Code: a.Code, Message: refusedAs(ctx, a), Times: a.Times,
			FirstAt: a.First, LastAt: a.Last, Ahead: a.Ahead,
		}
		if item := r.item(ctx, a.Item); !a.Item.IsZero() && item != nil {
			one.Item = toItem(item)
			if !r.numbersHidden(ctx, item) {
				one.UnitsLeft = a.Left
			}
		}
		out.Attempts[i] = one
	}
	return out
}

// refusedAs returns the message of a refusal that is over. No call is refused at the stage
// of the waiting room for its path token: there, an admission expired unused.
func refusedAs(ctx context.Context, a refusal.Refusal) string {
	if a.Stage == string(salestats.StageQueue) && a.Code == fault.PathInvalid {
		return turnPassed.in(ctx)
	}
	return reasons[a.Code].in(ctx)
}
