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

// product is a build of the product on an installation of its own: the present one, or that
// of an earlier commit as one more line of the same rounds.
type product struct {
	prefix string // of its lines

	program  string
	site     *site
	db       *postgres.DB
	shop     *server
	offer    *seed.Result
	accepted int
}

// openFormer migrates, seeds and starts the installation with the program itself: its
// schema and its path tokens may differ from the present ones.
func openFormer(ctx context.Context, o options) (f *product, err error) {
	f = &product{prefix: "former ", program: o.old}
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
	if orders := o.rounds * o.orders; !o.ways {
		if f.offer, err = f.seed(ctx, orders, orders+1000, "--paths", "--path-ttl", "1h"); err != nil {
			return nil, err
		}
	}
	if f.shop, err = startShop(ctx, f.program, f.site); err != nil {
		return nil, fmt.Errorf("%s: %w", f.program, err)
	}
	return f, nil
}

// seed creates an open sale by the program.
func (f *product) seed(ctx context.Context, users, stock int, more ...string) (offer *seed.Result, err error) {
	out, err := f.run(ctx, append([]string{"seed", "--users", strconv.Itoa(users), "--stock", strconv.Itoa(stock),
		"--lasts", "2h", "--json"}, more...)...)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(out, &offer); err != nil {
		return nil, fmt.Errorf("seed of %s: %w", f.program, err)
	}
	return offer, f.site.analyze(ctx)
}

// run runs a command of the program to its end and returns its output.
func (f *product) run(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, f.program, args...)
	cmd.Env, cmd.Stderr = f.site.environ("SECKILL_LOG_LEVEL=warn"), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", f.program, args[0], err)
	}
	return out, nil
}

// close ends the installation. A nil product has none.
func (f *product) close(ctx context.Context) error {
	if f == nil {
		return nil
	}
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

// inTurn measures a build while the other one is stopped.
func (w *suite) inTurn(p *product, measure func() error) (err error) {
	if p == w.former {
		if err := takeTurn(p.shop, w.shop); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, takeTurn(w.shop, p.shop)) }()
	}
	return measure()
}

// measureWhole measures orders of one round from the request to the row.
func (f *product) measureWhole(ctx context.Context, w *suite, n int) error {
	users := f.offer.Users[n*w.opts.orders : (n+1)*w.opts.orders]
	if err := warmTokens(ctx, f.shop, users); err != nil {
		return err
	}
	return w.measureOrders(ctx, "former whole path", orderTarget{f.shop, f.db, f.offer.SaleID, f.offer.ItemID,
		&f.accepted}, users)
}
