package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/internal/audit"
	"seckill/internal/config"
	"seckill/internal/drill"
	"seckill/internal/id"
	"seckill/internal/seed"
)

// drillTarget prepares and audits drills on the services of an installation.
type drillTarget struct {
	seeding seeding
	auditor audit.Auditor
	ratio   float64       // permits per unit
	life    time.Duration // of access tokens; 0 = the default
}

func newDrillTarget(b base, s seeding) drillTarget {
	return drillTarget{
		seeding: s, ratio: b.cfg.PermitRatio,
		auditor: audit.Auditor{DB: b.svc.db, Redis: b.svc.redis, Keys: b.keys},
	}
}

// Prepare implements drill.Target. Orders of a new sale stay unpaid for as long as it
// lasts.
func (t drillTarget) Prepare(ctx context.Context, in drill.Input) (*seed.Result, error) {
	seeder := t.seeding.seeder(t.life)
	if in.Sale == "" {
		return seeder.Run(ctx, seed.Input{
			Users: in.Users, Stock: in.Stock, Lasts: in.Lasts, PurchaseLimit: 1, PaymentWindow: in.Lasts, PermitRatio: t.ratio,
		})
	}
	sale, err := id.ParseSale(in.Sale)
	if err != nil {
		return nil, fmt.Errorf("--sale %q is not the id of a sale: it begins with sal_", in.Sale)
	}
	return seeder.Buyers(ctx, sale, in.Users)
}

// Audit implements drill.Target.
func (t drillTarget) Audit(ctx context.Context, sale string) (*audit.Report, error) {
	parsed, err := id.ParseSale(sale)
	if err != nil {
		return nil, audit.ErrUnknownSale
	}
	return t.auditor.Sale(ctx, parsed)
}

// DrillFaults selects the faults that need the services of the installation.
type DrillFaults struct {
	Redis  bool // close the connections of all clients of Redis
	Worker bool // kill and restart a worker that the drill started
}

// Drill runs a drill against a server on the given services.
func Drill(ctx context.Context, cfg *config.Config, in drill.Config, faults DrillFaults, log *slog.Logger) (_ *drill.Verdict, err error) {
	a, err := forCommand(ctx, cfg, log)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, a.svc.Close()) }()
	target := newDrillTarget(newBase(cfg, Roles{}, a.svc, log), a.seeding)
	if !cfg.Production() {
		target.life = max(cfg.AccessTokenTTL, in.Time)
	}
	in.Target = target
	if faults.Redis {
		in.Faults = append(in.Faults, drill.Fault{Name: "redis", Inject: a.svc.cutRedis})
	}
	if faults.Worker {
		worker, failure := drillWorker(ctx, cfg)
		if failure != nil {
			return nil, failure
		}
		defer func() {
			// A worker that ended by itself, or that was only starting, ends with an error too.
			if end := worker.End(max(drillWorkerGrace, 2*cfg.DrainTimeout)); errors.Is(end, drill.ErrKilled) {
				err = errors.Join(err, end)
			}
		}()
		in.Faults = append(in.Faults, drill.Fault{Name: "worker", Inject: func(context.Context) error { return worker.Kill() }})
	}
	return drill.Run(ctx, in)
}

// cutRedis closes the connections of all clients of Redis.
func (s *services) cutRedis(ctx context.Context) error {
	kill := func(ctx context.Context, c *redis.Client) error {
		for _, kind := range []string{"normal", "pubsub"} {
			if err := c.ClientKillByFilter(ctx, "TYPE", kind, "SKIPME", "yes").Err(); err != nil {
				return err
			}
		}
		return nil
	}
	switch c := s.redis.Cmd.(type) {
	case *redis.ClusterClient:
		return c.ForEachMaster(ctx, kill)
	case *redis.Client:
		return kill(ctx, c)
	}
	return errors.New("the kind of Redis is unknown")
}

// drillWorkerGrace is longer than a worker's drain.
const drillWorkerGrace = time.Minute

// drillWorker starts a worker in a process of its own. Its consumer name is the same after
// each start, so it continues with what it had read.
func drillWorker(ctx context.Context, cfg *config.Config) (*drill.Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	environ := append(os.Environ(),
		config.EnvName("database-url")+"="+cfg.DatabaseURL.Reveal(), config.EnvName("redis-url")+"="+cfg.RedisURL.Reveal(),
		config.EnvName("redis-prefix")+"="+cfg.RedisPrefix, config.EnvName("jwt-key")+"="+cfg.JWTKey.Reveal(),
		config.EnvName("profile")+"="+string(cfg.Profile), config.EnvName("admin-addr")+"=127.0.0.1:0", config.EnvName("log-level")+"=error")
	return drill.Supervise(func() *exec.Cmd {
		cmd := exec.CommandContext(context.WithoutCancel(ctx), self, "serve", "--roles", "worker")
		cmd.Env = environ
		return cmd
	})
}

// demoDrill returns the handler that lets `seckill drill` use the demo; nil for other
// processes.
func demoDrill(b base, s seeding) http.Handler {
	if !b.svc.embedded {
		return nil
	}
	return drill.Handler(newDrillTarget(b, s))
}
