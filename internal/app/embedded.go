package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/alicebob/miniredis/v2"

	"seckill/internal/postgres"
	"seckill/internal/redisconn"
)

// openEmbedded starts what a process needs within itself: a Redis in memory and
// a SQLite file in a temporary folder. Both are gone with the process.
func openEmbedded(ctx context.Context) (_ *services, err error) {
	s := &services{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	server := miniredis.NewMiniRedis()
	server.ClockTTL(true)
	if err := server.Start(); err != nil {
		return s, fmt.Errorf("embedded redis: %w", err)
	}
	s.close = append(s.close, func() error { server.Close(); return nil })
	if s.redis, err = redisconn.Open(ctx, "redis://"+server.Addr()+"/0"); err != nil {
		return s, fmt.Errorf("embedded redis: %w", err)
	}
	s.close = append(s.close, s.redis.Close)
	if s.db, err = postgres.OpenSQLite(ctx, ""); err != nil {
		return s, fmt.Errorf("embedded database: %w", err)
	}
	s.close = append(s.close, s.db.Close)
	return s, nil
}
