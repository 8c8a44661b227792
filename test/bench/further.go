package main

import (
	"context"
	"errors"
	"fmt"

	"seckill/internal/ops/seed"
)

// further holds measurements of the whole path beside the rounds: latencies at fixed rates,
// and the append-only file written on every command.
type further struct {
	*suite
	offer       *seed.Result
	used        int // buyers that have ordered
	orderTarget orderTarget
}

// openShares are the rates of the open loop, as shares of the median rate of the rounds.
var openShares = []float64{0.25, 0.50, 0.75}

// alwaysRounds is how often the durable setting is compared.
const alwaysRounds = 3

func (w *suite) further(ctx context.Context, r *report) error {
	part := w.opts.orders / 2
	always := w.opts.orders / 4
	n := part*len(openShares) + 2*alwaysRounds*always
	offer, err := w.site.seed(ctx, n, n+1000)
	if err != nil {
		return fmt.Errorf("seed: %w", err)
	}
	if err := w.onSale(ctx, offer); err != nil {
		return err
	}
	f := &further{suite: w, offer: offer, orderTarget: orderTarget{w.shop, w.db, offer.SaleID, offer.ItemID, new(int)}}
	if err := f.openLoops(ctx, r, r.Rates["whole path"], part); err != nil {
		return err
	}
	if err := f.durable(ctx, r, always); err != nil {
		return fmt.Errorf("appendfsync always: %w", err)
	}
	return nil
}

// openLoops places orders at shares of a rate.
func (f *further) openLoops(ctx context.Context, r *report, rate float64, n int) error {
	for _, share := range openShares {
		if err := f.openLoop(ctx, r, share, rate*share, n); err != nil {
			return fmt.Errorf("open loop: %w", err)
		}
	}
	return nil
}

// measureLatency measures the rate of the whole path, and the latencies at shares of it.
func (w *suite) measureLatency(ctx context.Context, r *report) error {
	part := w.opts.orders / 2
	n := part * (1 + len(openShares))
	offer, err := w.site.seed(ctx, n, n+1000)
	if err != nil {
		return fmt.Errorf("seed: %w", err)
	}
	if err := w.onSale(ctx, offer); err != nil {
		return err
	}
	f := &further{suite: w, offer: offer, orderTarget: orderTarget{w.shop, w.db, offer.SaleID, offer.ItemID, new(int)}}
	if err := f.measureOrders(ctx, "whole path", f.orderTarget, f.buyers(part)); err != nil {
		return err
	}
	r.note("whole path", w.done["whole path"])
	return f.openLoops(ctx, r, r.Rates["whole path"], part)
}

// buyers returns the next n buyers.
func (f *further) buyers(n int) []seed.LoadUser {
	f.used += n
	return f.offer.Users[f.used-n : f.used]
}

// openLoop places orders at a fixed rate and reports the latencies.
func (f *further) openLoop(ctx context.Context, r *report, share, rate float64, n int) error {
	say("open loop at %.0f orders/s", rate)
	name := fmt.Sprintf("open loop at %.0f %%", share*100)
	profiled := f.shop.profile(ctx, f.opts.profile, fmt.Sprintf("open-%.0f.prof", share*100), max(1, int(float64(n)/rate)))
	var lats *latencies
	err := f.measured(ctx, name, f.orderTarget, func(l load) (_ loadResult, err error) {
		lats, err = l.atRate(ctx, rate)
		return loadResult{good: l.count}, err
	}, f.buyers(n))
	if err = errors.Join(err, <-profiled); err != nil {
		return err
	}
	r.note(name, f.done[name])
	for _, p := range []float64{50, 99, 99.9} {
		r.Figures = append(r.Figures, figure{Name: fmt.Sprintf("placeOrder p%g, open loop at %.0f %% of the rate", p,
			share*100), Ratio: lats.at(p), Unit: "ms"})
	}
	return nil
}

// durable compares Redis with an append-only file that is written on every command with
// one that is written every second, in turns.
func (f *further) durable(ctx context.Context, r *report, n int) error {
	const setting = "appendfsync"
	before, err := f.redis.Cmd.ConfigGet(ctx, setting).Result()
	if err != nil {
		return err
	}
	defer func() {
		if err := f.redis.Cmd.ConfigSet(context.WithoutCancel(ctx), setting, before[setting]).Err(); err != nil {
			say("%s stays always: %v", setting, err)
		}
	}()
	for round := range alwaysRounds {
		say("appendfsync everysec and always, round %d of %d", round+1, alwaysRounds)
		for _, value := range []string{"everysec", "always"} {
			if err := f.redis.Cmd.ConfigSet(ctx, setting, value).Err(); err != nil {
				return err
			}
			if err := f.measureOrders(ctx, setting+" "+value, f.orderTarget, f.buyers(n)); err != nil {
				return err
			}
		}
	}
	for _, value := range []string{"everysec", "always"} {
		r.note(setting+" "+value, f.done[setting+" "+value])
	}
	r.Figures = append(r.Figures, compare("whole path, appendfsync always / everysec", f.done[setting+" always"],
		f.done[setting+" everysec"], "", "0.80"))
	return nil
}
