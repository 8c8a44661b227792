package app

import (
	"context"
	"database/sql/driver"
	"log/slog"
	"net"
	"net/http"

	"seckill/internal/gate/audit"
	"seckill/internal/ops/seed"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/config"
	"seckill/internal/platform/postgres"
)

// Host is what a process has from the machine that it runs on. The zero value is the
// machine of this process; a simulation has many in one process.
type Host struct {
	Clock     clock.Clock // nil = clock.System
	Listen    func(ctx context.Context, network, addr string) (net.Listener, error)
	Dial      func(ctx context.Context, network, addr string) (net.Conn, error) // to Redis
	Transport http.RoundTripper                                                 // to payment services
	// Database is the driver of a SQLite database that is used instead of Postgres.
	Database driver.Connector
	// Shared says that other processes run in this one: none returns unused memory to the
	// operating system, and none prepares the pages of the shop, which takes most of a start.
	Shared bool
}

func (h Host) clock() clock.Clock {
	if h.Clock == nil {
		return clock.System{}
	}
	return h.Clock
}

func (h Host) listen(ctx context.Context, network, addr string) (net.Listener, error) {
	if h.Listen == nil {
		return new(net.ListenConfig).Listen(ctx, network, addr)
	}
	return h.Listen(ctx, network, addr)
}

// Tools seed and audit an installation on a host, as commands do, without opening its
// services each time.
type Tools struct {
	app    *App
	target drillTarget
}

// OpenTools connects to the services of an installation.
func OpenTools(ctx context.Context, h Host, cfg *config.Config, log *slog.Logger) (*Tools, error) {
	a, err := forCommandOn(ctx, h, cfg, log)
	if err != nil {
		return nil, err
	}
	return &Tools{a, newDrillTarget(newBase(cfg, Roles{}, a.svc, log), a.seeding)}, nil
}

// Seed creates a sale and buyers, whose access tokens have the life of the settings.
func (t *Tools) Seed(ctx context.Context, in seed.Input) (*seed.Result, error) {
	return t.target.seeding.seeder(t.app.cfg.AccessTokenTTL).Run(ctx, in)
}

// Audit checks the invariants of a sale.
func (t *Tools) Audit(ctx context.Context, sale string) (*audit.Report, error) {
	return t.target.Audit(ctx, sale)
}

// Token signs an access token for a user, with the life of the settings.
func (t *Tools) Token(u seed.User) (string, error) {
	return t.target.seeding.seeder(t.app.cfg.AccessTokenTTL).Users.Token(u)
}

// DB returns the database.
func (t *Tools) DB() *postgres.DB { return t.app.svc.db }

// Close closes the connections.
func (t *Tools) Close() error { return t.app.svc.Close() }
