package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"seckill/internal/app"
	"seckill/internal/ops/drill"
	"seckill/internal/platform/config"
	"seckill/internal/platform/telemetry"
)

// Faults that --faults may list.
const (
	faultCut    = "cut"
	faultRedis  = "redis"
	faultWorker = "worker"
)

type drillCmd struct {
	URL         string        `name:"url" default:"http://127.0.0.1:8080" placeholder:"URL" help:"The server: its public address."`
	Admin       string        `default:"http://127.0.0.1:9090" placeholder:"URL" help:"Admin address of the demo. Not used with SECKILL_DATABASE_URL."`
	Sale        string        `placeholder:"ID" help:"A sale to buy from, its first item; without it, one is made."`
	Buyers      int           `default:"200" help:"Buyers, up to 20,000. Their accounts are made."`
	Stock       int           `default:"100" help:"Units of the sale that is made."`
	Over        time.Duration `default:"0s" help:"Time over which the buyers arrive; 0s = all at once."`
	Time        time.Duration `default:"2m" help:"Longest time for all outcomes, up to 30m."`
	Faults      []string      `placeholder:"KIND" help:"Faults to inject: cut (connections of the buyers), redis (all connections to Redis), worker (kill and restart a worker that the drill starts). The last two need SECKILL_DATABASE_URL and SECKILL_REDIS_URL."`
	FaultEvery  time.Duration `default:"2s" help:"Time between two faults."`
	FaultFor    time.Duration `default:"10s" help:"How long faults are injected, from the start of the crowd."`
	AllowRemote bool          `help:"Allow a server or a Redis that is not on this machine. Ask its owner first."`
	Yes         bool          `name:"yes-make-test-buyers" help:"Make the sale and its buyers in production too."`
	JSON        bool          `help:"Print the verdict as JSON: {saleId,ok,buyers,stock,tookSeconds,settledSeconds,counts,faults,latencies,checks,audit}."`
}

func (drillCmd) Help() string {
	return "Buyers sign in, solve a proof of work, get a path, wait in the waiting room, order, and follow their order, all through the public API. " +
		"Then every invariant is checked over Postgres, Redis and the streams. Exit 1 when one does not hold.\n\n" +
		"Beside `seckill demo` it needs no settings. For a server, give the settings that the server has.\n\n" + examples(
		"seckill drill",
		"seckill drill --buyers 2000 --stock 200 --faults cut",
		"seckill drill --sale sal_01jd8z3q4vftn8r2m5w6x7y8z9 --buyers 50",
		"SECKILL_PROFILE=development seckill drill --buyers 5000 --stock 1000 --faults cut,redis,worker --json",
	)
}

func (d drillCmd) Run(c *call) error {
	in := drill.Config{
		URL: strings.TrimSuffix(d.URL, "/"), Input: drill.Input{Sale: d.Sale, Users: d.Buyers, Stock: d.Stock,
			Lasts: time.Hour},
		Over: d.Over, Time: d.Time, Cut: slices.Contains(d.Faults, faultCut), FaultEvery: d.FaultEvery, FaultFor: d.FaultFor,
		Progress: c.env.stderr,
	}
	if file, isFile := c.env.stderr.(*os.File); isFile {
		in.Terminal = telemetry.IsTerminal(file)
	}
	if err := d.check(c.cfg, in); err != nil {
		return err
	}
	verdict, err := d.drill(c, in)
	if err != nil {
		return err
	}
	if err := d.print(c.env.stdout, verdict); err != nil {
		return err
	}
	if !verdict.OK {
		return errFinding
	}
	return nil
}

func (d drillCmd) drill(c *call, in drill.Config) (*drill.Verdict, error) {
	if c.cfg.DatabaseURL == "" {
		in.Target = drill.Remote{URL: d.Admin}
		return drill.Run(c.ctx, in)
	}
	return app.Drill(c.ctx, c.cfg, in, app.DrillFaults{
		Redis: slices.Contains(d.Faults, faultRedis), Worker: slices.Contains(d.Faults, faultWorker),
	}, c.logger())
}

// check returns what is wrong with the flags.
func (d drillCmd) check(cfg *config.Config, in drill.Config) error {
	if err := in.Validate(d.AllowRemote); err != nil {
		return err
	}
	for _, f := range d.Faults {
		if !slices.Contains([]string{faultCut, faultRedis, faultWorker}, f) {
			return fmt.Errorf("--faults has %q: choose from cut, redis, worker", f)
		}
	}
	if cfg.DatabaseURL == "" {
		if slices.Contains(d.Faults, faultRedis) || slices.Contains(d.Faults, faultWorker) {
			return errors.New("--faults redis and worker need the settings of a server: SECKILL_DATABASE_URL, SECKILL_REDIS_URL and SECKILL_JWT_KEY")
		}
		if admin, err := url.Parse(d.Admin); err != nil || !d.AllowRemote && !drill.Loopback(admin.Hostname()) {
			return fmt.Errorf("--admin %q: give the admin address of a demo on this machine", d.Admin)
		}
		return nil
	}
	if err := cfg.Validate(config.NeedDatabase, config.NeedRedis, config.NeedKeys); err != nil {
		return err
	}
	if cfg.Production() && !d.Yes {
		return errors.New("a drill makes buyers for tests, and the profile is production: add --yes-make-test-buyers, or set SECKILL_PROFILE to development")
	}
	if !slices.Contains(d.Faults, faultRedis) || d.AllowRemote {
		return nil
	}
	for address := range strings.SplitSeq(cfg.RedisURL.Reveal(), ",") {
		_, rest, found := strings.Cut(address, "://")
		if !found {
			rest = address
		}
		if u, err := url.Parse("redis://" + rest); err != nil || !drill.Loopback(u.Hostname()) {
			return errors.New("--faults redis: SECKILL_REDIS_URL is another machine, and all its clients would lose their connections: add --allow-remote if its owner agrees")
		}
	}
	return nil
}

func (d drillCmd) print(out io.Writer, v *drill.Verdict) error {
	if d.JSON {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(v)
	}
	return v.Write(out)
}
