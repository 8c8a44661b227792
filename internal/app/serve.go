package app

import (
	"context"
	"errors"
	"log/slog"

	"seckill/internal/config"
)

// Serve runs a process on Postgres and Redis until ctx ends. When a service is
// missing or unfit it returns an error that says so, with nothing left running.
func Serve(ctx context.Context, cfg *config.Config, roleNames []string, log *slog.Logger) error {
	roles, err := rolesOf(roleNames)
	if err != nil {
		return err
	}
	svc, err := openServices(ctx, cfg)
	if err != nil {
		return err
	}
	a, err := New(ctx, cfg, roles, svc, log)
	if err != nil {
		return errors.Join(err, svc.Close())
	}
	return a.Run(ctx)
}
