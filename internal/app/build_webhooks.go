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
	"seckill/internal/webhook"
)

func newWebhooks(b base, c clock.Clock, m messages, keys auth.Keys, security *account.SecurityLog) *webhook.Service {
	note := changed(security)
	return webhook.New(webhook.Config{
		DB: b.svc.db, Keys: keys, Networks: b.cfg.WebhookNetworks, Outbox: b.outbox, Clock: c, Rated: m.waiting,
		Changed: func(ctx context.Context, by uuid.UUID, what string) {
			note(ctx, by, what)
			m.waiting(ctx)
		},
		Registerer: b.registry, Log: b.log,
	})
}

// changed returns a function that writes the changes of endpoints to the security log.
func changed(security *account.SecurityLog) func(context.Context, uuid.UUID, string) {
	return func(ctx context.Context, by uuid.UUID, what string) {
		security.Write(ctx, account.Event{Kind: account.EventWebhookChanged, Actor: by, Detail: what})
	}
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
		Changed: changed(account.NewSecurityLog(svc.db, clock.System{}, log, nil)), Log: log,
	}))
}
