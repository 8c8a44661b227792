package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"runtime/pprof"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/internal/platform/auth"
	"seckill/internal/platform/config"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
	"seckill/test/bench/bare"
	"seckill/test/bench/baseline"
	"seckill/test/bench/naive"
)

// heapGrowth is GOGC of `seckill serve` and of all child servers except the floor and the
// naive design. Those two keep Go's default, because using more memory to save CPU time is
// part of the product's design.
const heapGrowth = 400

// Servers that this program can run as a child process, in addition to `seckill serve`.
const (
	childFloor  = "floor"  // net/http and encoding/json
	childNoop   = "noop"   // the product's edge, without authentication
	childAuthed = "authed" // the product's edge, tokens verified
	childNaive  = "naive"
	childBare   = "bare"   // the product's edge and a minimal order path
	childPush   = "push"   // the product's edge and hub, one state that changes continuously
	childWrites = "writes" // bare websocket writes, without pause
	childWoken  = "woken"  // bare websocket writes, one per change as in push
)

// envProfile names the directory to which the child writes a CPU profile.
const envProfile = "BENCH_PROFILE"

// Environment variables of a naive or bare child, in addition to the settings of the
// product.
const (
	envSale  = "BENCH_SALE"
	envItem  = "BENCH_ITEM"
	envStock = "BENCH_STOCK"
)

// child serves until it receives a signal.
func child(ctx context.Context, kind string) error {
	if kind != childFloor && kind != childNaive {
		debug.SetGCPercent(heapGrowth)
	}
	if dir := os.Getenv(envProfile); dir != "" {
		stop, err := profile(filepath.Join(dir, kind+".prof"))
		if err != nil {
			return err
		}
		defer stop()
	}
	log := slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelInfo}))
	quiet := slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	handler, err := childHandler(ctx, kind, quiet)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	go func() {
		<-ctx.Done()
		_ = srv.Close() // requests in flight no longer matter
	}()
	log.InfoContext(ctx, "listening", slog.Any("public", listener.Addr()))
	if err := srv.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// profile writes a CPU profile until stop is called.
func profile(path string) (stop func(), err error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() {
		pprof.StopCPUProfile()
		_ = f.Close()
	}, nil
}

func childHandler(ctx context.Context, kind string, log *slog.Logger) (http.Handler, error) {
	switch kind {
	case childFloor:
		return baseline.Floor(), nil
	case childNoop:
		return baseline.Edge(baseline.Noop, nil, nil, log)
	case childAuthed:
		tokens, _, err := childTokens()
		if err != nil {
			return nil, err
		}
		return baseline.Edge(baseline.Noop, nil, tokens, log)
	case childPush:
		push := baseline.NewPush()
		go push.Run(ctx)
		return baseline.Edge(baseline.Noop, push.Watch, nil, log)
	case childWrites:
		return baseline.NewWrites(false), nil
	case childWoken:
		writes := baseline.NewWrites(true)
		go writes.Run(ctx)
		return writes, nil
	case childNaive:
		return naiveHandler(ctx, log)
	case childBare:
		return bareHandler(ctx, log)
	}
	return nil, fmt.Errorf("no server is called %q", kind)
}

// childTokens reads the signing key of the installation from the environment.
func childTokens() (*auth.Tokens, *config.Config, error) {
	cfg, _, err := config.Parse(nil, os.LookupEnv)
	if err != nil {
		return nil, nil, err
	}
	signing, _, err := cfg.SigningKeys()
	if err != nil {
		return nil, nil, err
	}
	keys, err := auth.NewKeys(auth.Key(signing))
	if err != nil {
		return nil, nil, err
	}
	tokens, err := baseline.Tokens(keys)
	return tokens, cfg, err
}

// baselineConfig holds what the shops of this program sell and the services they use.
type baselineConfig struct {
	tokens *auth.Tokens
	db     *postgres.DB
	redis  *redis.Client // with the library's default settings
	prefix string        // of keys
	sale   id.Sale
	item   id.Item
	stock  int
}

// openBaselineConfig reads the environment and connects to the services.
func openBaselineConfig(ctx context.Context) (c baselineConfig, err error) {
	var cfg *config.Config
	if c.tokens, cfg, err = childTokens(); err != nil {
		return c, err
	}
	if c.sale, err = id.ParseSale(os.Getenv(envSale)); err != nil {
		return c, err
	}
	if c.item, err = id.ParseItem(os.Getenv(envItem)); err != nil {
		return c, err
	}
	if c.stock, err = strconv.Atoi(os.Getenv(envStock)); err != nil {
		return c, err
	}
	options, err := redis.ParseURL(cfg.RedisURL.Reveal())
	if err != nil {
		return c, err
	}
	c.redis, c.prefix = redis.NewClient(options), cfg.RedisPrefix
	c.db, err = postgres.Open(ctx, postgres.Options{URL: cfg.DatabaseURL.Reveal()})
	return c, err
}

func naiveHandler(ctx context.Context, log *slog.Logger) (http.Handler, error) {
	c, err := openBaselineConfig(ctx)
	if err != nil {
		return nil, err
	}
	shop, err := naive.Open(ctx, naive.Config{
		DB: c.db, Redis: c.redis, Prefix: c.prefix + "naive:", Tokens: c.tokens, Sale: c.sale, Item: c.item, Stock: c.stock,
		Log: log,
	})
	if err != nil {
		return nil, err
	}
	go func() {
		if err := shop.Run(ctx); err != nil {
			log.ErrorContext(ctx, "naive worker", slog.Any("error", err))
		}
	}()
	return shop.Handler(), nil
}

func bareHandler(ctx context.Context, log *slog.Logger) (http.Handler, error) {
	c, err := openBaselineConfig(ctx)
	if err != nil {
		return nil, err
	}
	shop, err := bare.Open(ctx, bare.Config{DB: c.db, Redis: c.redis, Prefix: c.prefix + "bare:", Sale: c.sale,
		Item: c.item, Stock: c.stock})
	if err != nil {
		return nil, err
	}
	go func() {
		if err := shop.Run(ctx); err != nil {
			log.ErrorContext(ctx, "bare path", slog.Any("error", err))
		}
	}()
	return baseline.Edge(shop.Place, nil, c.tokens, log)
}
