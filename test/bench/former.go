package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"

	"seckill/internal/ops/seed"
	"seckill/internal/platform/postgres"
)

// former is the product as an earlier commit built it, on an installation of its own: one
// more line of the same rounds.
type former struct {
	program  string
	site     *site
	db       *postgres.DB
	shop     *server
	offer    *seed.Result
	accepted int
}

// openFormer migrates, seeds and starts the installation with the program itself: its
// schema and its path tokens may differ from the present ones.
func openFormer(ctx context.Context, o options) (f *former, err error) {
	f = &former{program: o.old}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.close(ctx))
		}
	}()
	if f.site, err = emptySite(ctx); err != nil {
		return nil, err
	}
	if _, err := f.run(ctx, "migrate", "up"); err != nil {
		return nil, err
	}
	if f.db, err = f.site.database(ctx); err != nil {
		return nil, err
	}
	orders := o.rounds * o.orders
	out, err := f.run(ctx, "seed", "--users", strconv.Itoa(orders), "--stock", strconv.Itoa(orders+1000), "--lasts", "2h",
		"--paths", "--path-ttl", "1h", "--json")
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(out, &f.offer); err != nil {
		return nil, fmt.Errorf("seed of %s: %w", f.program, err)
	}
	if f.shop, err = startShop(ctx, f.program, f.site); err != nil {
		return nil, fmt.Errorf("%s: %w", f.program, err)
	}
	return f, nil
}

// run runs a command of the program to its end and returns its output.
func (f *former) run(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, f.program, args...)
	cmd.Env, cmd.Stderr = f.site.environ("SECKILL_LOG_LEVEL=warn"), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", f.program, args[0], err)
	}
	return out, nil
}

func (f *former) close(ctx context.Context) error {
	if f.shop != nil {
		f.shop.stop()
	}
	if f.db != nil {
		_ = f.db.Close() // only read from
	}
	if f.site == nil {
		return nil
	}
	return f.site.remove(ctx)
}

// measureWhole measures orders of one round from the request to the row.
func (f *former) measureWhole(ctx context.Context, w *suite, n int) error {
	users := f.offer.Users[n*w.opts.orders : (n+1)*w.opts.orders]
	if err := warmTokens(ctx, f.shop, users); err != nil {
		return err
	}
	return w.measureOrders(ctx, "former whole path", orderTarget{f.shop, f.db, f.offer.SaleID, f.offer.ItemID, &f.accepted}, users)
}
