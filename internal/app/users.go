package app

import (
	"context"
	"errors"
	"log/slog"

	"seckill/internal/account"
	"seckill/internal/auth"
	"seckill/internal/clock"
	"seckill/internal/config"
)

// Users holds the services with which the command line changes users.
type Users struct {
	Admin    *account.Admin
	Security *account.SecurityLog
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
	store := account.NewStore(svc.db, c)
	security := account.NewSecurityLog(svc.db, c, log, nil)
	admin := account.NewAdmin(account.AdminConfig{
		Store: store, Security: security, Log: log,
		Directory: account.NewDirectory(account.DirectoryConfig{Store: store, Client: svc.redis.Script, Prefix: cfg.RedisPrefix, Clock: c, Log: log}),
		Revocations: auth.NewRevocations(auth.RevocationsConfig{
			Client: svc.redis.Cmd, Prefix: cfg.RedisPrefix, Keep: cfg.AccessTokenTTL + leeway, Clock: c, Log: log,
		}),
	})
	return fn(Users{Admin: admin, Security: security})
}
