package operator

import (
	"context"
	"fmt"

	"seckill/ent"
	"seckill/ent/intervention"
	"seckill/ent/predicate"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/id"
)

// MaxInterventions is the largest limit of a list.
const MaxInterventions = 200

// InterventionList says which interventions are listed.
type InterventionList struct {
	Kind   Kind     // "" = of every kind
	Sale   *id.Sale // nil = of every sale
	States []State  // empty = in every state
	After  id.Act   // the intervention before the first; zero = from the newest
	Limit  int      // at most MaxInterventions; 0 = MaxInterventions
}

func (f InterventionList) match() (match []predicate.Intervention) {
	if f.Kind != "" {
		match = append(match, intervention.KindEQ(intervention.Kind(f.Kind)))
	}
	if f.Sale != nil {
		match = append(match, intervention.SaleID(*f.Sale))
	}
	if len(f.States) > 0 {
		in := collect.Map(f.States, func(st State) intervention.State { return intervention.State(st) })
		match = append(match, intervention.StateIn(in...))
	}
	return match
}

// Interventions returns interventions, newest first.
func (s *Service) Interventions(ctx context.Context, f InterventionList) ([]*Intervention, error) {
	limit := MaxInterventions
	if f.Limit > 0 {
		limit = min(f.Limit, MaxInterventions)
	}
	query := s.cfg.DB.Ent.Intervention.Query().Where(f.match()...).Order(ent.Desc(intervention.FieldID)).Limit(limit)
	if !f.After.IsZero() {
		query.Where(intervention.IDLT(f.After))
	}
	rows, err := query.All(ctx)
	if err != nil {
		return nil, fmt.Errorf("list interventions: %w", err)
	}
	return collect.Map(rows, fromRow), nil
}

// CountInterventions returns the number of interventions, whatever After and Limit are.
func (s *Service) CountInterventions(ctx context.Context, f InterventionList) (int, error) {
	n, err := s.cfg.DB.Ent.Intervention.Query().Where(f.match()...).Count(ctx)
	if err != nil {
		return 0, fmt.Errorf("count interventions: %w", err)
	}
	return n, nil
}
