package sale

import (
	"context"
	"fmt"
	"slices"

	"entgo.io/ent/dialect/sql"

	"seckill/ent"
	entsale "seckill/ent/sale"
	"seckill/ent/salelog"
	"seckill/ent/servicetoken"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

// preparing are the acts whose actors must not buy in the sale.
var preparing = []string{string(ActCreate), string(ActUpdate), string(ActSubmit), string(ActApprove), string(ActSchedule)}

// PreparedBy reports whether a user prepared or approved a sale of the catalogue.
func (s *Sale) PreparedBy(user id.User) bool { return slices.Contains(s.Preparers, user) }

// OwnSale refuses to sell an item to a user who prepared or approved its sale.
func OwnSale() error { return fault.Refused{Why: fault.OwnSale, At: []string{"itemId"}} }

// addPreparers sets the preparers of sales in which buyers may buy. What a service token
// did counts as done by the user who created it.
func (s *Store) addPreparers(ctx context.Context, sales []*Sale) error {
	byID := make(map[id.Sale]*Sale, len(sales))
	for _, v := range sales {
		byID[v.ID] = v
	}
	lines, err := s.db.SaleLog.Query().
		Where(salelog.ActIn(preparing...), salelog.ActorIDNotNil(), func(q *sql.Selector) {
			of := sql.Table(entsale.Table)
			q.Where(sql.In(q.C(salelog.FieldSaleID), sql.Select(of.C(entsale.FieldID)).From(of).Where(sql.In(of.C(entsale.FieldStatus), running...))))
		}).
		Select(salelog.FieldSaleID, salelog.FieldActorID).All(ctx)
	if err != nil {
		return fmt.Errorf("read who prepared sales: %w", err)
	}
	owners, err := s.owners(ctx, lines)
	if err != nil {
		return err
	}
	for _, line := range lines {
		v := byID[line.SaleID]
		if v == nil {
			continue
		}
		user := *line.ActorID
		if owner, ok := owners[user]; ok {
			user = owner
		}
		if !v.PreparedBy(user) {
			v.Preparers = append(v.Preparers, user)
		}
	}
	return nil
}

// owners returns the users who created the service tokens among the actors of log lines.
func (s *Store) owners(ctx context.Context, lines []*ent.SaleLog) (map[id.User]id.User, error) {
	var actors []id.User
	for _, line := range lines {
		if !slices.Contains(actors, *line.ActorID) {
			actors = append(actors, *line.ActorID)
		}
	}
	if len(actors) == 0 {
		return nil, nil
	}
	tokens, err := s.db.ServiceToken.Query().Where(servicetoken.IDIn(id.As[id.ServiceToken](actors)...), servicetoken.CreatedByNotNil()).
		Select(servicetoken.FieldID, servicetoken.FieldCreatedBy).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read who created service tokens: %w", err)
	}
	owners := make(map[id.User]id.User, len(tokens))
	for _, token := range tokens {
		owners[id.User(token.ID)] = *token.CreatedBy
	}
	return owners, nil
}
