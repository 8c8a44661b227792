package app

import (
	"context"
	"errors"
	"log/slog"

	"github.com/google/uuid"

	"seckill/internal/account"
	"seckill/internal/auth"
	"seckill/internal/clock"
	"seckill/internal/config"
	"seckill/internal/postgres"
	"seckill/internal/servicetoken"
)

// Users holds the services with which the command line changes users.
type Users struct {
	Admin    *account.Admin
	Security *account.SecurityLog
	Tokens   *servicetoken.Service
}

// ChangeUsers calls fn with the services that change users of an installation. Running
// processes apply the changes within a second.
func ChangeUsers(ctx context.Context, cfg *config.Config, log *slog.Logger, fn func(Users) error) (err error) {
	svc, err := openServices(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, svc.Close()) }()
	c := clock.System{}
	store := account.NewStore(svc.db, c, names(cfg))
	security := account.NewSecurityLog(svc.db, c, log, nil)
	revocations := auth.NewRevocations(auth.RevocationsConfig{
		Client: svc.redis.Cmd, Prefix: cfg.RedisPrefix, Keep: cfg.AccessTokenTTL + leeway, Clock: c, Log: log,
	})
	admin := account.NewAdmin(account.AdminConfig{
		Store: store, Security: security, Log: log,
		Directory:   account.NewDirectory(account.DirectoryConfig{Store: store, Client: svc.redis.Script, Prefix: cfg.RedisPrefix, Clock: c, Log: log}),
		Revocations: revocations,
	})
	return fn(Users{Admin: admin, Security: security, Tokens: newServiceTokens(svc.db, revocations, security, log)})
}

func newServiceTokens(db *postgres.DB, revocations *auth.Revocations, security *account.SecurityLog, log *slog.Logger) *servicetoken.Service {
	return servicetoken.New(servicetoken.Config{
		DB: db, Revoke: revocations.Revoke, Clock: clock.System{}, Log: log,
		Changed: func(ctx context.Context, by uuid.UUID, what string) {
			security.Write(ctx, account.Event{Kind: account.EventTokenChanged, Actor: by, Detail: what})
		},
	})
}

// names returns the names of accounts.
func names(cfg *config.Config) account.Names { return account.Names{Country: cfg.PhoneCountry} }
