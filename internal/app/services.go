package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/alicebob/miniredis/v2"

	"seckill/internal/ops/doctor"
	"seckill/internal/platform/config"
	"seckill/internal/platform/postgres"
	"seckill/internal/platform/redisconn"
	"seckill/internal/platform/telemetry"
	"seckill/internal/platform/tracing"
)

// services holds the connections of a process.
type services struct {
	host  Host
	db    *postgres.DB
	redis *redisconn.Conn
	close []func() error

	embedded bool // they run in this process, for the demo
}

// openServices connects to Postgres and Redis, and checks that all migrations are applied
// and that the settings of Redis are suitable. It reports the errors of both; on error
// nothing is left open.
func openServices(ctx context.Context, cfg *config.Config) (*services, error) {
	return openServicesOn(ctx, Host{}, cfg)
}

func openServicesOn(ctx context.Context, h Host, cfg *config.Config) (_ *services, err error) {
	s := &services{host: h}
	if err := errors.Join(s.openPostgres(ctx, cfg, cfg.DatabasePool), s.openRedis(ctx, cfg)); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// openDatabase is openServices without Redis.
func openDatabase(ctx context.Context, cfg *config.Config) (*services, error) {
	s := &services{}
	if err := s.openPostgres(ctx, cfg, 2); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *services) openPostgres(ctx context.Context, cfg *config.Config, conns int) (err error) {
	if s.host.Database != nil {
		s.db = postgres.OverSQLite(s.host.Database)
		s.onClose(s.db.Close)
		return nil
	}
	s.db, err = postgres.Open(ctx, postgres.Options{
		URL: cfg.DatabaseURL.Reveal(), MaxConns: conns, TransactionPooling: cfg.DatabasePooling == config.PoolingTransaction,
	})
	if err != nil {
		return doctor.PostgresAway(cfg, err)
	}
	s.onClose(s.db.Close)
	return upToDate(ctx, s.db)
}

func (s *services) openRedis(ctx context.Context, cfg *config.Config) (err error) {
	s.redis, err = redisconn.OpenVia(ctx, cfg.RedisURL.Reveal(), s.host.Dial)
	if err != nil {
		return doctor.RedisAway(cfg, err)
	}
	s.onClose(s.redis.Close)
	err = s.redis.Check(ctx)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, redisconn.ErrEvicts), errors.Is(err, redisconn.ErrNoInfo), errors.Is(err, redisconn.ErrNoLua):
		// their text says what to do
		return fmt.Errorf("%s: %w", config.EnvName("redis-url"), err)
	}
	return doctor.RedisAway(cfg, err)
}

// upToDate returns an error when migrations are pending.
func upToDate(ctx context.Context, db *postgres.DB) error {
	migrations, err := db.MigrationStatus(ctx)
	if err != nil {
		return fmt.Errorf("postgres: read migrations: %w; run: seckill doctor", err)
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

// Close closes everything in reverse order of opening.
func (s *services) Close() error {
	var errs []error
	for i := len(s.close) - 1; i >= 0; i-- {
		errs = append(errs, s.close[i]())
	}
	return errors.Join(errs...)
}

// onClose adds a function to call at Close, before those added earlier.
func (s *services) onClose(f func() error) { s.close = append(s.close, f) }

// embeddedTimeouts are those of connections to the embedded Redis, which is away only
// while the process itself has no processor.
const embeddedTimeouts = "dial_timeout=1m&read_timeout=1m&write_timeout=1m&pool_timeout=1m"

// openEmbedded starts the services inside the process: an in-memory Redis and a SQLite
// file in a temporary folder. Both are deleted with the process.
func openEmbedded(ctx context.Context) (_ *services, err error) {
	s := &services{embedded: true}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	server := miniredis.NewMiniRedis()
	if err := server.Start(); err != nil {
		return s, fmt.Errorf("embedded redis: %w", err)
	}
	s.onClose(func() error { server.Close(); return nil })
	s.onClose(expireKeys(server))
	if s.redis, err = redisconn.Open(ctx, "redis://"+server.Addr()+"/0?"+embeddedTimeouts); err != nil {
		return s, fmt.Errorf("embedded redis: %w", err)
	}
	s.onClose(s.redis.Close)
	if s.db, err = postgres.OpenSQLite(ctx, ""); err != nil {
		return s, fmt.Errorf("embedded database: %w", err)
	}
	s.onClose(s.db.Close)
	return s, nil
}

// expireEvery is the interval at which keys of the embedded Redis expire. Its own clock
// would look at all keys with each command, and idle processes send hundreds a second.
const expireEvery = 200 * time.Millisecond

// expireKeys lets keys expire until stop is called.
func expireKeys(server *miniredis.Miniredis) (stop func() error) {
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(expireEvery)
		defer tick.Stop()
		last := time.Now()
		for {
			select {
			case <-end:
				return
			case now := <-tick.C:
				server.FastForward(now.Sub(last))
				last = now
			}
		}
	}()
	return func() error {
		close(end)
		<-ended
		return nil
	}
}

// tracesTimeout bounds sending the last spans of a process.
const tracesTimeout = 5 * time.Second

// trace starts tracing, if it is on.
func (b *base) trace() (err error) {
	b.tracer, err = tracing.New(tracing.Options{
		URL: b.cfg.TracesURL.Reveal(), Share: b.cfg.TracesShare, Version: telemetry.ReadBuild().Version,
		Registerer: b.registry, Log: b.log,
	})
	if b.tracer == nil || err != nil {
		return err
	}
	b.svc.redis.Trace()
	b.svc.onClose(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), b.scaled(tracesTimeout))
		defer cancel()
		if err := b.tracer.Close(ctx); err != nil {
			b.log.WarnContext(ctx, "the last traces were not sent", slog.Any("error", err))
		}
		return nil
	})
	return nil
}
