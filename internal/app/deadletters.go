package app

import (
	"context"
	"errors"
	"log/slog"

	"seckill/internal/config"
	"seckill/internal/order"
	"seckill/internal/orderintake"
)

// ChangeDeadLetters calls fn with the dead letters of an installation, for the command
// line. It needs no signing key. fn may replay letters, and nothing else: a writer that
// fails tasks is not wired.
func ChangeDeadLetters(ctx context.Context, cfg *config.Config, log *slog.Logger, fn func(*orderintake.DeadLetters) error) (err error) {
	svc, err := openServices(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, svc.Close()) }()
	b := newBase(cfg, Roles{}, svc, log)
	store := order.NewStore(order.StoreConfig{
		DB: svc.db, Cache: order.NewCache(svc.redis, b.keys.Tasks, b.clock), Clock: b.clock, Log: log,
	})
	return fn(orderintake.NewDeadLetters(orderintake.DeadLettersConfig{
		DB: svc.db, Letters: newDeadLetters(b, nil), Orders: store, Clock: b.clock, Log: log,
	}))
}
