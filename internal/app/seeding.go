package app

import (
	"context"
	"time"

	"github.com/google/uuid"

	"seckill/internal/account"
	"seckill/internal/admission/path"
	"seckill/internal/auth"
	"seckill/internal/id"
	"seckill/internal/seed"
)

// seeder fills the installation of this process. Access tokens of load accounts
// live for tokenLife; their sessions exist in the tokens alone.
func (a *App) seeder(tokenLife time.Duration) *seed.Seeder {
	return &seed.Seeder{
		DB: a.svc.db, Clock: a.common, NewID: id.New,
		Hash: account.HashPassword, Load: a.preloader.Load,
		Token: func(_ context.Context, u seed.User) (string, error) {
			token, _, err := a.tokens.Mint(auth.MintInput{User: u.ID, Session: id.New(), Role: u.Role, Life: tokenLife})
			return token, err
		},
		Paths: func(ctx context.Context, in seed.PathsInput) ([]string, error) {
			users := make([]uuid.UUID, len(in.Users))
			for i, u := range in.Users {
				users[i] = u.ID
			}
			return a.paths.Grant(ctx, path.GrantInput{Sale: in.Sale, Item: in.Item, Users: users, Life: in.TTL})
		},
	}
}
