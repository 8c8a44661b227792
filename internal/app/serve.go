package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"syscall"

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
		return nil, errors.Join(unheard(ctx, cfg, roles, err), svc.Close())
	}
	return a, nil
}

// unheard words an error of a listener: which setting it came of, and what to do.
// Where the first of two cannot be opened it tries the other, so that both are told.
// Other errors stay as they are.
func unheard(ctx context.Context, cfg *config.Config, roles Roles, err error) error {
	if op, ok := errors.AsType[*net.OpError](err); !ok || op.Op != "listen" {
		return err
	}
	if !roles.API || strings.HasPrefix(err.Error(), "admin listener") {
		return cannotListen("admin-addr", err)
	}
	var lc net.ListenConfig
	admin, also := lc.Listen(ctx, "tcp", cfg.AdminAddr)
	if also != nil {
		return errors.Join(cannotListen("http-addr", err), cannotListen("admin-addr", also))
	}
	_ = admin.Close()
	return cannotListen("http-addr", err)
}

func cannotListen(flag string, err error) error {
	what := "choose another address"
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		what = "choose another port, or end what listens there"
	case errors.Is(err, syscall.EACCES):
		what = "choose a port from 1024, or give the process the right to this one"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		what = "this host has no such address: choose one of its own, or none, as in :8080"
	}
	return fmt.Errorf("%s: %w: %s (--%s)", config.EnvName(flag), err, what, flag)
}
