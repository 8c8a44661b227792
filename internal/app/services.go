package app

import (
	"context"
	"errors"
	"fmt"

	"seckill/internal/config"
	"seckill/internal/postgres"
	"seckill/internal/redisconn"
)

// services are the outside parts that a process stands on.
type services struct {
	db    *postgres.DB
	redis *redisconn.Conn
	close []func() error
}

// openServices connects to Postgres and Redis and checks that they are fit. When
// it fails, nothing is left open.
func openServices(ctx context.Context, cfg *config.Config) (_ *services, err error) {
	s := &services{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	s.db, err = postgres.Open(ctx, postgres.Options{URL: cfg.DatabaseURL.Reveal(), MaxConns: cfg.DatabasePool})
	if err != nil {
		return s, fmt.Errorf("postgres: %w", err)
	}
	s.close = append(s.close, s.db.Close)
	if err := upToDate(ctx, s.db); err != nil {
		return s, err
	}
	s.redis, err = redisconn.Open(ctx, cfg.RedisURL.Reveal())
	if err != nil {
		return s, fmt.Errorf("redis: %w", err)
	}
	s.close = append(s.close, s.redis.Close)
	if err := s.redis.Check(ctx); err != nil {
		return s, fmt.Errorf("redis: %w", err)
	}
	return s, nil
}

// upToDate refuses a database whose migrations were not all applied.
func upToDate(ctx context.Context, db *postgres.DB) error {
	migrations, err := db.MigrationStatus(ctx)
	if err != nil {
		return fmt.Errorf("postgres: read migrations: %w", err)
	}
	pending := 0
	for _, m := range migrations {
		if !m.Applied {
			pending++
		}
	}
	if pending > 0 {
		return fmt.Errorf("postgres: %d migrations are not applied; run: seckill migrate up", pending)
	}
	return nil
}

// Close closes everything that is open, what came last first.
func (s *services) Close() error {
	var errs []error
	for i := len(s.close) - 1; i >= 0; i-- {
		errs = append(errs, s.close[i]())
	}
	return errors.Join(errs...)
}
