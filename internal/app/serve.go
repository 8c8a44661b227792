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
	a, err := Open(ctx, cfg, roleNames, log)
	if err != nil {
		return err
	}
	if a.roles.API && !cfg.SandboxOn() {
		log.WarnContext(ctx, "no payment provider: orders cannot be paid, and lapse; for a trial set SECKILL_SANDBOX=on")
	}
	return a.Run(ctx)
}

// Open connects to the services, wires a process with the given roles (api,
// worker, scheduler) and opens its listeners. Nothing is answered before Run,
// which also closes everything at its end.
func Open(ctx context.Context, cfg *config.Config, roleNames []string, log *slog.Logger) (*App, error) {
	roles, err := rolesOf(roleNames)
	if err != nil {
		return nil, err
	}
	svc, err := openServices(ctx, cfg)
	if err != nil {
		return nil, err
	}
	a, err := wire(ctx, cfg, roles, svc, log)
	if err != nil {
		return nil, errors.Join(err, svc.Close())
	}
	return a, nil
}
