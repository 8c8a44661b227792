package sale

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"entgo.io/ent/dialect/sql"

	"seckill/ent/goodslog"
	"seckill/ent/intervention"
	entsale "seckill/ent/sale"
	"seckill/ent/salelog"
	"seckill/ent/servicetoken"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

// preparing are the acts whose actors must not buy in the sale: they decide what is sold
// and how. A pause is none: everyone may stop a sale in an emergency.
var preparing = []string{
	string(ActCreate), string(ActUpdate), string(ActSubmit), string(ActApprove), string(ActSchedule), string(ActDescribe),
	string(ActAdjust), string(ActSwitch), string(ActExtend), string(ActGoods), string(ActCodes),
}

// PreparedBy reports whether a user prepared, approved or changed a sale of the catalogue
// or one of its products.
func (s *Sale) PreparedBy(user id.User) bool { return slices.Contains(s.Preparers, user) }

// OwnSale refuses to sell an item to a user of whom PreparedBy is true.
func OwnSale() error { return fault.Refused{Why: fault.OwnSale, At: []string{"itemId"}} }

// prepared is an act of a user on a sale.
type prepared struct {
	sale  id.Sale
	actor id.User
}

// addPreparers sets the preparers of sales in which buyers may buy. What a service token
// did counts as done by the user who created it.
func (s *Store) addPreparers(ctx context.Context, sales []*Sale) error {
	byID := collect.Index(sales, func(v *Sale) id.Sale { return v.ID })
	acts, err := s.preparations(ctx, sales)
	if err != nil {
		return err
	}
	owners, err := s.owners(ctx, acts)
	if err != nil {
		return err
	}
	for _, act := range acts {
		v := byID[act.sale]
		if v == nil {
			continue
		}
		user := act.actor
		if owner, ok := owners[user]; ok {
			user = owner
		}
		if !v.PreparedBy(user) {
			v.Preparers = append(v.Preparers, user)
		}
	}
	return nil
}

// preparations returns the acts on sales that may sell: of their logs, of requests for
// interventions that were confirmed, and of the logs of their products.
func (s *Store) preparations(ctx context.Context, sales []*Sale) ([]prepared, error) {
	ofRunning := func(field string) func(*sql.Selector) {
		return func(q *sql.Selector) {
			of := sql.Table(entsale.Table)
			q.Where(sql.In(q.C(field), sql.Select(of.C(entsale.FieldID)).From(of).
				Where(sql.In(of.C(entsale.FieldStatus), running...))))
		}
	}
	lines, err := s.db.SaleLog.Query().Where(salelog.ActIn(preparing...), salelog.ActorIDNotNil(),
		ofRunning(salelog.FieldSaleID)).
		Select(salelog.FieldSaleID, salelog.FieldActorID).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read who prepared sales: %w", err)
	}
	// A request changes nothing before it is confirmed, and a confirmation is a change of the
	// sale, after which the catalogue is read again.
	asked, err := s.db.Intervention.Query().Where(intervention.StateNEQ(intervention.StateREQUESTED),
		intervention.StateNEQ(intervention.StateDECLINED), ofRunning(intervention.FieldSaleID)).
		Select(intervention.FieldSaleID, intervention.FieldRequestedBy).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read who intervened in sales: %w", err)
	}
	offered := map[id.Goods][]id.Sale{}
	for _, v := range sales {
		if slices.Contains(running, any(string(v.Status))) {
			for _, item := range v.Items {
				if item.Goods != nil {
					offered[item.Goods.ID] = append(offered[item.Goods.ID], v.ID)
				}
			}
		}
	}
	written, err := s.db.GoodsLog.Query().Where(goodslog.GoodsIDIn(slices.Collect(maps.Keys(offered))...)).
		Select(goodslog.FieldGoodsID, goodslog.FieldActorID).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read who wrote products: %w", err)
	}
	acts := make([]prepared, 0, len(lines)+len(asked)+len(written))
	for _, line := range lines {
		acts = append(acts, prepared{line.SaleID, *line.ActorID})
	}
	for _, row := range asked {
		acts = append(acts, prepared{row.SaleID, row.RequestedBy})
	}
	for _, line := range written {
		for _, saleID := range offered[line.GoodsID] {
			acts = append(acts, prepared{saleID, line.ActorID})
		}
	}
	return acts, nil
}

// owners returns the users who created the service tokens among the actors.
func (s *Store) owners(ctx context.Context, acts []prepared) (map[id.User]id.User, error) {
	var actors []id.User
	for _, act := range acts {
		if !slices.Contains(actors, act.actor) {
			actors = append(actors, act.actor)
		}
	}
	if len(actors) == 0 {
		return nil, nil
	}
	tokens, err := s.db.ServiceToken.Query().Where(servicetoken.IDIn(id.As[id.ServiceToken](actors)...),
		servicetoken.CreatedByNotNil()).
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
