package sale

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"seckill/ent"
	"seckill/ent/goodslog"
	"seckill/ent/salelog"
	"seckill/internal/platform/id"
)

// LogLine is one act on a sale.
type LogLine struct {
	ID       uuid.UUID
	Sale     id.Sale
	Actor    *id.User // nil = the clock
	Act      Act
	From, To Status
	Revision int64 // of the sale after the act
	Note     string
	Details  string // JSON, or empty
	At       time.Time
}

// actSeal is the act of the seals that package audit writes into the log; they are not
// shown.
const actSeal = "SEAL"

// Log returns the newest lines of a sale's log, newest first, at most limit.
func (s *Store) Log(ctx context.Context, saleID id.Sale, limit int) ([]LogLine, error) {
	rows, err := s.db.SaleLog.Query().Where(salelog.SaleID(saleID), salelog.ActNEQ(actSeal)).
		Order(ent.Desc(salelog.FieldRevision), ent.Desc(salelog.FieldID)).Limit(limit).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read log of sale %s: %w", saleID, err)
	}
	lines := make([]LogLine, len(rows))
	for i, r := range rows {
		lines[i] = LogLine{
			ID: r.ID, Sale: r.SaleID, Actor: r.ActorID, Act: Act(r.Act),
			From: Status(r.FromStatus), To: Status(r.ToStatus), Revision: r.Revision,
			Note: r.Note, Details: r.Details, At: r.CreatedAt.UTC(),
		}
	}
	return lines, nil
}

// Authors returns the users who created or edited a sale: they must not approve it. What a
// service token did counts as done by the user who created it.
func (s *Store) Authors(ctx context.Context, v *Sale) ([]id.User, error) {
	lines, err := s.db.SaleLog.Query().
		Where(salelog.SaleID(v.ID), salelog.ActorIDNotNil(), salelog.ActIn(string(ActCreate), string(ActUpdate))).
		Select(salelog.FieldSaleID, salelog.FieldActorID).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read who wrote sale %s: %w", v.ID, err)
	}
	var acts []prepared
	if v.CreatedBy != nil {
		acts = append(acts, prepared{v.ID, *v.CreatedBy})
	}
	for _, line := range lines {
		acts = append(acts, prepared{line.SaleID, *line.ActorID})
	}
	owners, err := s.owners(ctx, acts)
	if err != nil {
		return nil, err
	}
	authors := make([]id.User, len(acts))
	for i, act := range acts {
		authors[i] = cmp.Or(owners[act.actor], act.actor)
	}
	return authors, nil
}

// GoodsLine is one change of a product.
type GoodsLine struct {
	ID       uuid.UUID
	Goods    id.Goods
	Actor    id.User
	Act      Act   // ActCreate or ActUpdate
	Revision int64 // of the product after the change
	Note     string
	Details  string // JSON of what changed, or empty
	At       time.Time
}

// GoodsLog returns the newest lines of a product's log, newest first, at most limit.
func (s *Store) GoodsLog(ctx context.Context, goodsID id.Goods, limit int) ([]GoodsLine, error) {
	rows, err := s.db.GoodsLog.Query().Where(goodslog.GoodsID(goodsID)).
		Order(ent.Desc(goodslog.FieldRevision), ent.Desc(goodslog.FieldID)).Limit(limit).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read log of goods %s: %w", goodsID, err)
	}
	lines := make([]GoodsLine, len(rows))
	for i, r := range rows {
		lines[i] = GoodsLine{
			ID: r.ID, Goods: r.GoodsID, Actor: r.ActorID, Act: Act(r.Act), Revision: r.Revision,
			Note: r.Note, Details: r.Details, At: r.CreatedAt.UTC(),
		}
	}
	return lines, nil
}
