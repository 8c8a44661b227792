package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"seckill/internal/app"
	"seckill/internal/ops/seed"
	"seckill/internal/platform/config"
	"seckill/internal/platform/postgres"
	"seckill/internal/platform/redisconn"
)

// cleanupTimeout bounds the removal of the run's database and keys.
const cleanupTimeout = time.Minute

// site is an installation of one run: its own database and key prefix, removed at the
// end.
type site struct {
	cfg    *config.Config
	server string // URL of the Postgres server
	traces string // directory for CPU profiles of servers
	name   string // of the database
}

// newSite creates an installation on the services named in the environment.
func newSite(ctx context.Context) (*site, error) {
	s, err := emptySite(ctx)
	if err != nil {
		return nil, err
	}
	db, err := s.database(ctx)
	if err != nil {
		return nil, errors.Join(err, s.remove(ctx))
	}
	defer db.Close()
	if _, err := db.Migrate(ctx); err != nil {
		return nil, errors.Join(err, s.remove(ctx))
	}
	return s, nil
}

// emptySite creates an installation without tables.
func emptySite(ctx context.Context) (*site, error) {
	s := &site{server: os.Getenv("SECKILL_TEST_DATABASE_URL"), name: "bench_" + strings.ToLower(rand.Text()[:12])}
	redisURL := os.Getenv("SECKILL_TEST_REDIS_URL")
	u, err := url.Parse(s.server)
	if err != nil || s.server == "" || redisURL == "" {
		return nil, errors.New("no services in the environment: run make bench, which starts them")
	}
	if err := s.maintain(ctx, "CREATE DATABASE "+s.name); err != nil {
		return nil, fmt.Errorf("make a database: %w", err)
	}
	u.Path = "/" + s.name
	s.cfg = config.Default()
	s.cfg.Profile, s.cfg.Limits = config.ProfileDevelopment, config.SwitchOff
	s.cfg.DatabaseURL, s.cfg.RedisURL = config.Secret(u.String()), config.Secret(redisURL)
	s.cfg.RedisPrefix, s.cfg.JWTKey = s.name+":", config.Secret(rand.Text()+rand.Text())
	return s, nil
}

// database opens the installation's database.
func (s *site) database(ctx context.Context) (*postgres.DB, error) {
	return postgres.Open(ctx, postgres.Options{URL: s.cfg.DatabaseURL.Reveal(), MaxConns: 2})
}

// maintain runs a statement without the product's timeouts.
func (s *site) maintain(ctx context.Context, statement string) error {
	db, err := postgres.Open(ctx, postgres.Options{URL: s.server, MaxConns: 1})
	if err != nil {
		return err
	}
	defer db.Close()
	conn, err := db.SQL.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, "SET statement_timeout = 0"); err != nil {
		return err
	}
	_, err = conn.ExecContext(ctx, statement)
	return err
}

// remove drops the database and the keys.
func (s *site) remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	err := s.maintain(ctx, "DROP DATABASE "+s.name+" WITH (FORCE)")
	conn, openErr := redisconn.Open(ctx, s.cfg.RedisURL.Reveal())
	if openErr != nil {
		return errors.Join(err, openErr)
	}
	defer conn.Close()
	keys := conn.Cmd.Scan(ctx, 0, s.cfg.RedisPrefix+"*", 5000).Iterator()
	for keys.Next(ctx) {
		if unlinkErr := conn.Cmd.Unlink(ctx, keys.Val()).Err(); unlinkErr != nil {
			return errors.Join(err, unlinkErr)
		}
	}
	return errors.Join(err, keys.Err())
}

// quietRedis disables automatic rewrites of the append-only file until the returned
// function is called. Their time depends on earlier writes, so one would slow down a
// single round.
func quietRedis(ctx context.Context, conn *redisconn.Conn) (restore func(), err error) {
	const setting = "auto-aof-rewrite-percentage"
	before, err := conn.Cmd.ConfigGet(ctx, setting).Result()
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", setting, err)
	}
	set := func(ctx context.Context, value string) error { return conn.Cmd.ConfigSet(ctx, setting, value).Err() }
	if err := set(ctx, "0"); err != nil {
		return nil, fmt.Errorf("set %s: %w", setting, err)
	}
	return func() {
		if err := set(context.WithoutCancel(ctx), before[setting]); err != nil {
			say("%s stays 0: %v", setting, err)
		}
	}, nil
}

// environ returns the environment of a server on this installation.
func (s *site) environ(more ...string) []string {
	return append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"),
		"SECKILL_PROFILE=development", "SECKILL_LIMITS=off", "SECKILL_LOG_FORMAT=json",
		"SECKILL_DATABASE_URL=" + s.cfg.DatabaseURL.Reveal(), "SECKILL_REDIS_URL=" + s.cfg.RedisURL.Reveal(),
		"SECKILL_REDIS_PREFIX=" + s.cfg.RedisPrefix, "SECKILL_JWT_KEY=" + s.cfg.JWTKey.Reveal(),
		"SECKILL_HTTP_ADDR=127.0.0.1:0", "SECKILL_ADMIN_ADDR=127.0.0.1:0",
		"SECKILL_POW_MAX=" + strconv.Itoa(admissionPow), envProfile + "=" + s.traces,
	}, more...)
}

// seed creates a sale whose buyers have one path token each.
func (s *site) seed(ctx context.Context, users, stock int) (*seed.Result, error) {
	offer, err := app.Seed(ctx, s.cfg, seed.Input{
		Users: users, Stock: stock, Lasts: 2 * time.Hour, PurchaseLimit: 1,
		PaymentWindow: time.Hour, PathTTL: time.Hour,
	}, slog.New(slog.DiscardHandler))
	if err == nil {
		err = s.analyze(ctx)
	}
	return offer, err
}

// analyze gives Postgres the statistics of the users, as autovacuum does within a minute:
// without them it looks for disabled users by reading every unpaid order.
func (s *site) analyze(ctx context.Context) error {
	db, err := s.database(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.SQL.ExecContext(ctx, "ANALYZE users")
	return err
}

// orderBody returns the body of a placeOrder request, about 300 bytes.
func orderBody(itemID, path string) string {
	return fmt.Sprintf(`{"query":"mutation P($i:PlaceOrderInput!){placeOrder(input:$i){orderTask{id status} replayed userErrors{code}}}",`+
		`"variables":{"i":{"itemId":%q,"pathToken":%q,"quantity":1,"idempotencyKey":%q}}}`, itemID, path, rand.Text())
}
