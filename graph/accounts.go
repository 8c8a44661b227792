package graph

import (
	"context"

	"github.com/google/uuid"

	"seckill/graph/model"
	"seckill/internal/account"
	"seckill/internal/auth"
	"seckill/internal/id"
)

// user reads a person. Everybody sees itself; operators see all.
func (r *Resolver) user(ctx context.Context, userID uuid.UUID) (*model.User, error) {
	p := auth.PrincipalFrom(ctx)
	if p == nil || (p.UserID != userID && !isOperator(ctx)) {
		return nil, nil
	}
	u, err := r.Accounts.Directory().User(ctx, userID)
	if err != nil {
		return nil, err
	}
	return toUser(u), nil
}

func person(s *account.SignedIn) *account.User {
	if s == nil {
		return nil
	}
	return s.User
}

func toUser(u *account.User) *model.User {
	if u == nil {
		return nil
	}
	return &model.User{
		ID: id.Format(id.User, u.ID), Account: &u.Account, DisplayName: u.DisplayName,
		Role: model.Role(u.Role), CreatedAt: u.CreatedAt,
	}
}

// toTokens hands the tokens over; the refresh token goes into the cookie of a
// client that asked for one.
func toTokens(ctx context.Context, s *account.SignedIn) *model.AuthTokens {
	if s == nil {
		return nil
	}
	out := &model.AuthTokens{
		AccessToken: s.Tokens.Access, AccessTokenExpiresAt: s.Tokens.AccessExpiresAt,
		RefreshToken: &s.Tokens.Refresh, RefreshTokenExpiresAt: s.Tokens.RefreshExpiresAt,
	}
	if cookie := auth.CookieFrom(ctx); cookie != nil {
		cookie.Set(s.Tokens.Refresh, s.Tokens.RefreshExpiresAt)
		out.RefreshToken = nil
	}
	return out
}
