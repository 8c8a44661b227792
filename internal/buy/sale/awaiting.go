package sale

import (
	"context"
	"fmt"
	"slices"
	"time"

	"seckill/ent"
	entsale "seckill/ent/sale"
	"seckill/ent/salelog"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/id"
)

// Awaiting is a sale that waits for approval.
type Awaiting struct {
	Sale    id.Sale
	Since   time.Time // when it was submitted
	Note    string    // of the submission
	Authors []id.User // who created or edited it: they must not approve it
}

// AwaitingApproval returns at most limit sales that wait for approval, in the order of
// their creation.
func (s *Store) AwaitingApproval(ctx context.Context, limit int) ([]Awaiting, error) {
	sales, err := s.db.Sale.Query().Where(entsale.StatusEQ(entsale.Status(PendingApproval))).
		Order(ent.Asc(entsale.FieldCreatedAt, entsale.FieldID)).Limit(limit).All(ctx)
	if err != nil || len(sales) == 0 {
		return nil, wrapAwaiting(err)
	}
	waiting, at := make([]Awaiting, len(sales)), map[id.Sale]*Awaiting{}
	for i, v := range sales {
		waiting[i] = Awaiting{Sale: v.ID, Since: v.CreatedAt.UTC()}
		if v.CreatedBy != nil {
			waiting[i].Authors = []id.User{*v.CreatedBy}
		}
		at[v.ID] = &waiting[i]
	}
	ids := collect.Map(sales, func(v *ent.Sale) id.Sale { return v.ID })
	lines, err := s.db.SaleLog.Query().Where(salelog.SaleIDIn(ids...), salelog.ActIn(string(ActCreate), string(ActUpdate),
		string(ActSubmit))).
		Order(ent.Asc(salelog.FieldRevision)).All(ctx)
	if err != nil {
		return nil, wrapAwaiting(err)
	}
	for _, line := range lines {
		w := at[line.SaleID]
		switch {
		case line.Act == string(ActSubmit):
			w.Since, w.Note = line.CreatedAt.UTC(), line.Note
		case line.ActorID != nil && !slices.Contains(w.Authors, *line.ActorID):
			w.Authors = append(w.Authors, *line.ActorID)
		}
	}
	return waiting, nil
}

func wrapAwaiting(err error) error {
	if err != nil {
		return fmt.Errorf("read sales that wait for approval: %w", err)
	}
	return nil
}
