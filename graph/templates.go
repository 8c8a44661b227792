package graph

import (
	"context"
	"time"

	"seckill/graph/model"
	"seckill/internal/staff/operator"
)

// toTemplate returns a template as the API shows it, or nil.
func (r *Resolver) toTemplate(ctx context.Context, t *operator.Template) (*model.SaleTemplate, error) {
	if t == nil {
		return nil, nil
	}
	by, err := r.user(ctx, t.SavedBy)
	return &model.SaleTemplate{
		ID: t.ID, Name: t.Name, Title: t.Draft.Title, ItemCount: len(t.Draft.Items),
		LastsSeconds: int(t.Lasts / time.Second), SavedAt: t.SavedAt, SavedBy: by,
	}, err
}
