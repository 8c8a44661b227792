package graph

import (
	"context"

	"seckill/graph/model"
	"seckill/internal/identity/servicetoken"
)

func (r *Resolver) toServiceToken(ctx context.Context, t *servicetoken.Token) (*model.ServiceToken, error) {
	if t == nil {
		return nil, nil
	}
	out := &model.ServiceToken{
		ID: t.ID, Name: t.Name, Scopes: t.Scopes,
		CreatedAt: t.CreatedAt, ExpiresAt: t.ExpiresAt, LastUsedAt: t.LastUsedAt,
	}
	if t.CreatedBy == nil {
		return out, nil
	}
	var err error
	out.CreatedBy, err = r.user(ctx, *t.CreatedBy)
	return out, err
}

func (r *Resolver) toServiceTokens(ctx context.Context, list []*servicetoken.Token) ([]*model.ServiceToken, error) {
	out := make([]*model.ServiceToken, len(list))
	for i, t := range list {
		var err error
		if out[i], err = r.toServiceToken(ctx, t); err != nil {
			return nil, err
		}
	}
	return out, nil
}
