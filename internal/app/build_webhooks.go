package app

import (
	"context"
	"errors"
	"log/slog"

	"seckill/internal/account"
	"seckill/internal/auth"
	"seckill/internal/clock"
	"seckill/internal/config"
	"seckill/internal/webhook"
)

func newWebhooks(b base, c clock.Clock, m messages, keys auth.Keys, security *account.SecurityLog) *webhook.Service {
	return webhook.New(webhook.Config{
		DB: b.svc.db, Keys: keys, Networks: b.cfg.WebhookNetworks, Outbox: b.outbox, Clock: c, Inbox: m.inbox, Security: security,
		Registerer: b.registry, Log: b.log,
	})
}

// ChangeWebhooks calls fn with the webhooks of an installation, for the command line.
// Running processes apply the changes within a second.
func ChangeWebhooks(ctx context.Context, cfg *config.Config, log *slog.Logger, fn func(*webhook.Service) error) (err error) {
	svc, err := openDatabase(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, svc.Close()) }()
	keys, err := signingKeys(cfg)
	if err != nil {
		return err
	}
	return fn(webhook.New(webhook.Config{
		DB: svc.db, Keys: keys, Networks: cfg.WebhookNetworks,
		Security: account.NewSecurityLog(svc.db, clock.System{}, log), Log: log,
	}))
}
