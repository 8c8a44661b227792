package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/google/uuid"
	"github.com/vektah/gqlparser/v2/formatter"

	"seckill/graph/generated"
	"seckill/internal/account"
	"seckill/internal/audit"
	"seckill/internal/auth"
	"seckill/internal/clock"
	"seckill/internal/config"
	"seckill/internal/fault"
	"seckill/internal/id"
	"seckill/internal/postgres"
	"seckill/internal/reservation"
	"seckill/internal/seed"
)

// PrintSchema writes the API's schema in SDL.
func PrintSchema(out io.Writer) error {
	schema := generated.NewExecutableSchema(generated.Config{}).Schema()
	formatter.NewFormatter(out, formatter.WithIndent("  ")).FormatSchema(schema)
	return nil
}

// Audit checks that a sale adds up.
func Audit(ctx context.Context, cfg *config.Config, sale uuid.UUID) (_ *audit.Report, err error) {
	svc, err := openServices(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, svc.Close()) }()
	auditor := audit.Auditor{DB: svc.db, Redis: svc.redis, Keys: reservation.Keys{Prefix: cfg.RedisPrefix}}
	return auditor.Sale(ctx, sale)
}

// Seed fills an installation with a sale and buyers.
func Seed(ctx context.Context, cfg *config.Config, in seed.Input, log *slog.Logger) (_ *seed.Result, err error) {
	a, err := unmanned(ctx, cfg, log)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, a.svc.Close()) }()
	life := cfg.AccessTokenTTL
	if !cfg.Production() {
		life = max(life, in.OpensIn+in.Lasts) // load tools do not refresh
	}
	if in.PermitRatio == 0 {
		in.PermitRatio = cfg.PermitRatio // servers may run with another
	}
	return a.seeder(life).Run(ctx, in)
}

// SeedDemo fills an installation with what the demo shows.
func SeedDemo(ctx context.Context, cfg *config.Config, log *slog.Logger) (_ *seed.DemoResult, err error) {
	a, err := unmanned(ctx, cfg, log)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, a.svc.Close()) }()
	return a.seeder(0).Demo(ctx, cfg.PaymentWindow)
}

// unmanned wires a process that only runs a command: its services are open, none of
// its roles runs. The services are the caller's to close.
func unmanned(ctx context.Context, cfg *config.Config, log *slog.Logger) (*App, error) {
	svc, err := openServices(ctx, cfg)
	if err != nil {
		return nil, err
	}
	a, err := wire(ctx, cfg, Roles{}, svc, log)
	if err != nil {
		return nil, errors.Join(err, svc.Close())
	}
	return a, nil
}

// NewUser is an account to be made by an administrator of the installation.
type NewUser struct {
	Account     string
	Role        string // CUSTOMER, OPERATOR or ADMIN
	DisplayName string
	Password    string
}

// CreateUser makes an account and returns its public id.
func CreateUser(ctx context.Context, cfg *config.Config, u NewUser) (_ string, err error) {
	db, err := postgres.Open(ctx, postgres.Options{URL: cfg.DatabaseURL.Reveal(), MaxConns: 2})
	if err != nil {
		return "", fmt.Errorf("postgres: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := upToDate(ctx, db); err != nil {
		return "", err
	}
	created, refusal, err := account.NewStore(db, clock.System{}).Create(ctx, account.NewUser{
		Account: u.Account, DisplayName: u.DisplayName, Password: u.Password,
	}, auth.Role(u.Role))
	if err != nil {
		return "", err
	}
	if refusal != nil {
		return "", fmt.Errorf("the account was not made: %s %s", refusal.Reason(), rule(refusal))
	}
	return id.Format(id.User, created.ID), nil
}

// rule names what a refused input broke, for a person at the terminal.
func rule(refusal fault.Refusal) string {
	if bad, ok := refusal.(fault.BadField); ok {
		return fmt.Sprintf("(%v: %s)", bad.At, bad.Rule)
	}
	return ""
}
