// Command bench compares the hot path with baselines in the same run, see
// test/bench/performance.md. It starts every server as a separate process, sends prepared
// requests over loopback, reads every response, and at the end counts the orders in Redis
// and Postgres.
//
// It is a tool for developers and not part of the product: nothing imports it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"seckill/internal/platform/redisconn"
)

// options set the durations and sizes of the run.
type options struct {
	quick       bool
	rounds      int
	lasts       time.Duration // of one measurement by time
	orders      int           // of the whole order path in one round
	naiveOrders int
	messages    int // of a stream in one round
	sockets     int
	seckill     string // path of the product's binary
	old         string // path of a former binary to compare with; "" = none
	out         string
	profile     string // directory for CPU profiles; "" = none
	admission   bool   // only captchas and path tokens
	path        bool   // only the order path and its baselines
	pushes      bool   // only sockets
	ways        bool   // only the ways of buyers from the captcha to the stored order
	latency     bool   // only the latencies at shares of the highest rate
	idle        bool   // only what idle processes cost
	growth      bool   // only the curves of growth
	page        string // that gets the results; "" = none
	axis        string // of growth; "" = all
	curves      string // directory for the curves
	crowd       int    // buyers that send the same request at once

	growthOrders int // at each point of a curve
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if len(os.Args) == 3 && os.Args[1] == "child" {
		err = child(ctx, os.Args[2])
	} else {
		err = measure(ctx, parse())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1) // nothing is left to clean up
	}
}

func parse() options {
	o := options{rounds: 7, lasts: 4 * time.Second, orders: 30_000, naiveOrders: 5000, messages: 30_000, sockets: 1000,
		crowd: 5000, growthOrders: 6000}
	flag.BoolVar(&o.quick, "quick", false, "about three minutes instead of about fifteen")
	flag.StringVar(&o.seckill, "seckill", "bin/seckill", "the product's binary")
	flag.StringVar(&o.old, "old", "", "a former binary of the product, for one more line")
	flag.StringVar(&o.out, "out", "bench-out/bench.json", "where the figures go, as JSON")
	flag.StringVar(&o.profile, "profile", "", "directory for CPU profiles of the servers")
	flag.BoolVar(&o.path, "path", false, "only the no-op, the sold-out refusal and the whole path")
	flag.BoolVar(&o.pushes, "pushes", false, "only pushes and the memory of sockets")
	flag.BoolVar(&o.ways, "crowd", false, "only what a winner and a loser cost, from the captcha to the stored order")
	flag.BoolVar(&o.latency, "latency", false, "only the latencies of orders at shares of the highest rate")
	flag.BoolVar(&o.idle, "idle", false, "only the processor time and memory of idle processes, two minutes and a half")
	flag.BoolVar(&o.growth, "growth", false, "only the curves of growth, about an hour; with --quick a quarter")
	flag.StringVar(&o.page, "page", "", "page that gets the results, for example test/bench/performance.md")
	flag.StringVar(&o.axis, "axis", "", "one curve of growth, for example stock")
	flag.StringVar(&o.curves, "curves", "test/bench/growth", "where the curves of growth go")
	flag.BoolVar(&o.admission, "gate", false, "only captchas and paths beside orders")
	flag.IntVar(&o.rounds, "rounds", o.rounds, "rounds; the median counts")
	flag.IntVar(&o.orders, "orders", o.orders, "orders of the whole path in one round")
	flag.Parse()
	if o.quick {
		o.rounds, o.lasts, o.orders, o.naiveOrders, o.messages, o.sockets = min(o.rounds, 3), 1500*time.Millisecond,
			min(o.orders, 6000), 1500, 15_000, 500
		o.crowd, o.growthOrders = 1000, 1500
	}
	return o
}

// measure runs everything once and prints the table.
func measure(ctx context.Context, o options) (err error) {
	if o.idle {
		return measureIdle(ctx, o)
	}
	if o.growth {
		return growth(ctx, o)
	}
	s, err := newSite(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.remove(ctx)) }()
	baselineSite, err := newSite(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, baselineSite.remove(ctx)) }()
	baselineSite.cfg.JWTKey = s.cfg.JWTKey // the same tokens are valid at both
	db, err := s.database(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	baselineDB, err := baselineSite.database(ctx)
	if err != nil {
		return err
	}
	defer baselineDB.Close()
	redis, err := redisconn.Open(ctx, s.cfg.RedisURL.Reveal())
	if err != nil {
		return err
	}
	defer redis.Close()
	quiet, err := quietRedis(ctx, redis)
	if err != nil {
		return err
	}
	defer quiet()

	s.traces, baselineSite.traces = o.profile, o.profile
	say("seeding and starting")
	w := &suite{opts: o, site: s, baselineSite: baselineSite, db: db, baselineDB: baselineDB, redis: redis}
	defer w.close()
	if err := w.open(ctx); err != nil {
		return err
	}
	if o.old != "" && !o.admission && !o.pushes && !o.latency {
		if w.former, err = openFormer(ctx, o); err != nil {
			return fmt.Errorf("former product: %w", err)
		}
		defer func() { err = errors.Join(err, w.former.close(ctx)) }()
		if err := takeTurn(w.shop, w.former.shop); err != nil {
			return err
		}
	}
	r := &report{Rates: map[string]float64{}, Micros: map[string]float64{}, Shares: map[string]shares{}, Rounds: o.rounds,
		Store: w.services.store}
	switch {
	case o.ways:
		if err := w.measureWays(ctx, r); err != nil {
			return fmt.Errorf("ways: %w", err)
		}
	case o.latency:
		if err := w.measureLatency(ctx, r); err != nil {
			return fmt.Errorf("latency: %w", err)
		}
	case o.pushes:
		if err := sockets(ctx, w, r); err != nil {
			return fmt.Errorf("sockets: %w", err)
		}
	case !o.admission:
		if r, err = w.everything(ctx); err != nil {
			if r != nil {
				r.print(os.Stdout)
			}
			return err
		}
	}
	if !o.path && !o.pushes && !o.ways && !o.latency {
		if err := measureAdmission(ctx, w, r); err != nil {
			return fmt.Errorf("admission: %w", err)
		}
	}
	if !o.path && !o.pushes && !o.ways && !o.latency && !o.admission && !o.quick {
		figures, err := idleCost(ctx, o)
		if err != nil {
			return fmt.Errorf("idle processes: %w", err)
		}
		r.Figures = append(r.Figures, figures...)
	}
	r.print(os.Stdout)
	if err := r.save(o.out); err != nil {
		return err
	}
	if o.page != "" {
		if err := r.writeResults(o.page, time.Now()); err != nil {
			return err
		}
	}
	if !r.passed() {
		return errors.New("the orders do not add up")
	}
	return nil
}

// measureIdle measures idle processes only.
func measureIdle(ctx context.Context, o options) error {
	figures, err := idleCost(ctx, o)
	if err != nil {
		return fmt.Errorf("idle processes: %w", err)
	}
	r := &report{Figures: figures, Rounds: 1}
	r.print(os.Stdout)
	return r.save(o.out)
}

// everything runs all measurements except those of admission. If a measurement after the
// rounds fails, it returns the report so far with the error.
func (w *suite) everything(ctx context.Context) (*report, error) {
	var stock, batch []sample
	for n := range w.opts.rounds {
		say("round %d of %d", n+1, w.opts.rounds)
		if err := w.round(ctx, n); err != nil {
			return nil, err
		}
		if w.opts.path {
			continue
		}
		theirs, ours, err := subscriberRound(ctx, w.redis, fmt.Sprintf("%sbench:%d:", w.site.cfg.RedisPrefix, n),
			w.opts.messages)
		if err != nil {
			return nil, fmt.Errorf("subscribers: %w", err)
		}
		stock, batch = append(stock, theirs), append(batch, ours)
	}
	w.done["stock subscriber"], w.done["batch subscriber"] = stock, batch
	r := w.report()
	var err error
	if r.Checks, err = w.checks(ctx); err != nil {
		return nil, err
	}
	if w.opts.path {
		return r, nil
	}
	if err = w.measureWays(ctx, r); err != nil {
		return r, fmt.Errorf("ways: %w", err)
	}
	if err = w.former.close(ctx); err != nil {
		return r, fmt.Errorf("former product: %w", err)
	}
	w.former = nil
	if err = w.further(ctx, r); err != nil {
		return r, err
	}
	if err = w.crowd(ctx, r); err != nil {
		err = fmt.Errorf("crowd: %w", err)
	}
	if failed := sockets(ctx, w, r); failed != nil {
		err = errors.Join(err, fmt.Errorf("sockets: %w", failed))
	}
	return r, err
}

func (w *suite) report() *report {
	d := w.done
	r := &report{Rates: map[string]float64{}, Micros: map[string]float64{}, Shares: map[string]shares{},
		Rounds: w.opts.rounds, Store: w.services.store,
		Body: len(orderBody(w.soldOut.ItemID, w.soldOut.Users[0].Path))}
	for name, samples := range d {
		if len(samples) == 0 {
			continue
		}
		r.note(name, samples)
	}
	r.Figures = []figure{
		compare("no-op mutation / floor", d["no-op"], d["floor"], "0.75", "0.80"),
		compare("authenticated no-op / floor", d["authenticated no-op"], d["floor"], "", ""),
		compare("placeOrder, whole path / authenticated no-op", d["whole path"], d["authenticated no-op"], "0.51", "0.65"),
		compare("placeOrder, bare path / authenticated no-op", d["bare path"], d["authenticated no-op"], "", ""),
		compare("placeOrder, whole path / bare path", d["whole path"], d["bare path"], "", ""),
		compare("sold-out refusal / authenticated no-op", d["sold-out refusal"], d["authenticated no-op"], "0.91", "0.95"),
		compare("whole path / former whole path", d["whole path"], d["former whole path"], "1.6", "1.35"),
		compare("whole path / naive design, orders taken in", d["whole path"], d["naive design, taken in"], "2.1", "2.3"),
		compare("whole path / naive design, orders written", d["whole path"], d["naive design, written"], "", ""),
		compare("batch subscriber / stock subscriber", d["batch subscriber"], d["stock subscriber"], "12", "10"),
	}
	r.Figures = slices.DeleteFunc(r.Figures, func(f figure) bool { return f.Ratio == 0 }) // not measured: --path
	return r
}

func say(format string, args ...any) { fmt.Fprintf(os.Stderr, "bench: "+format+"\n", args...) }
