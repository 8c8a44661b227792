package operator

import (
	"context"

	"seckill/internal/platform/id"
)

// Awaiting is a request that waits for a second operator.
type Awaiting struct {
	*Intervention
	Buyer id.User // of the order to void, who must not confirm; Nil = none
}

// AwaitingSecond returns the requests that wait for a second operator, newest first; at
// most 200.
func (s *Service) AwaitingSecond(ctx context.Context) ([]Awaiting, error) {
	requests, err := s.Interventions(ctx, InterventionList{States: []State{Requested}})
	if err != nil {
		return nil, err
	}
	var ids []id.Order
	for _, r := range requests {
		if r.Order != nil {
			ids = append(ids, *r.Order)
		}
	}
	orders, err := s.cfg.Orders.Orders(ctx, ids)
	if err != nil {
		return nil, err
	}
	waiting := make([]Awaiting, len(requests))
	for i, r := range requests {
		waiting[i].Intervention = r
		if r.Order == nil {
			continue
		}
		if o := orders[*r.Order]; o != nil {
			waiting[i].Buyer = o.User
		}
	}
	return waiting, nil
}

// Agents returns the service accounts of a user, each under the id of its token: what they
// wrote counts as written by the user.
func (s *Service) Agents(ctx context.Context, user id.User) ([]id.User, error) {
	if s.cfg.Tokens == nil {
		return nil, nil
	}
	tokens, err := s.cfg.Tokens.CreatedBy(ctx, user)
	return id.As[id.User](tokens), err
}
