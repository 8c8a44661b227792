package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"seckill/internal/app"
	"seckill/internal/buy/reservation"
	"seckill/internal/ops/seed"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
	"seckill/internal/platform/redisconn"
)

// settleTimeout bounds the wait for the orders of one round.
const settleTimeout = 2 * time.Minute

// suite holds the servers and samples of all measurements over HTTP.
type suite struct {
	opts         options
	site         *site
	baselineSite *site // of the naive design and the bare path: their rows would be drift for the product
	db           *postgres.DB
	baselineDB   *postgres.DB // of baselineSite
	redis        *redisconn.Conn

	services                    services
	floor, noop, authed, shop   *server
	naive, bare                 *server
	former                      *product // nil = not compared
	offer, soldOut              *seed.Result
	naiveOffer, bareOffer       *seed.Result
	done                        map[string][]sample
	anonymous, soldOutRequests  [][]byte // prepared requests
	accepted, again             int
	naiveAccepted, bareAccepted int
}

// open starts the servers and seeds their sales.
func (w *suite) open(ctx context.Context) (err error) {
	w.done = map[string][]sample{}
	if w.services, err = findServices(ctx, w.db, w.redis); err != nil {
		return err
	}
	if !w.opts.admission {
		if err := w.startBaselines(ctx); err != nil {
			return err
		}
	}
	if w.soldOut, err = w.site.seed(ctx, connections*2, 1); err != nil {
		return fmt.Errorf("seed: %w", err)
	}
	if w.shop, err = startShop(ctx, w.opts.seckill, w.site); err != nil {
		return err
	}
	w.prepare()
	return w.sellOut(ctx)
}

// startBaselines starts the baselines.
func (w *suite) startBaselines(ctx context.Context) (err error) {
	orders := w.opts.rounds * w.opts.orders
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if w.opts.ways {
		w.floor, err = startServer(ctx, w.site.environ(), self, "child", childFloor)
		return err
	}
	if w.offer, err = w.site.seed(ctx, orders, orders+1000); err != nil {
		return fmt.Errorf("seed: %w", err)
	}
	if w.naiveOffer, err = w.baselineSite.seed(ctx, w.opts.rounds*w.opts.naiveOrders, w.opts.rounds*w.opts.naiveOrders+
		1000); err != nil {
		return fmt.Errorf("seed: %w", err)
	}
	if w.bareOffer, err = w.baselineSite.seed(ctx, 1, orders+1000); err != nil {
		return fmt.Errorf("seed: %w", err)
	}
	sells := func(o *seed.Result, stock int) []string {
		return []string{envSale + "=" + o.SaleID, envItem + "=" + o.ItemID, envStock + "=" + strconv.Itoa(stock)}
	}
	for _, c := range []struct {
		kind string
		into **server
		site *site
		more []string
	}{
		{childFloor, &w.floor, w.site, nil}, {childNoop, &w.noop, w.site, nil}, {childAuthed, &w.authed, w.site, nil},
		{childNaive, &w.naive, w.baselineSite, sells(w.naiveOffer, w.opts.rounds*w.opts.naiveOrders+1000)},
		{childBare, &w.bare, w.baselineSite, sells(w.bareOffer, orders+1000)},
	} {
		if *c.into, err = startServer(ctx, c.site.environ(c.more...), self, "child", c.kind); err != nil {
			return err
		}
	}
	return nil
}

func (w *suite) close() {
	for _, s := range []*server{w.floor, w.noop, w.authed, w.naive, w.bare, w.shop} {
		if s != nil {
			s.stop()
		}
	}
}

// prepare builds the requests that buy nothing.
func (w *suite) prepare() {
	for _, u := range w.soldOut.Users {
		body := orderBody(w.soldOut.ItemID, u.Path)
		w.soldOutRequests = append(w.soldOutRequests, httpRequest(w.shop.public, u.AccessToken, body))
		if !w.opts.admission {
			w.anonymous = append(w.anonymous, httpRequest(w.floor.public, "x", body))
		}
	}
}

// sellOut sells the only unit of the sale that is measured as sold out.
func (w *suite) sellOut(ctx context.Context) error {
	res, err := load{addr: w.shop.public, count: 1, request: cycle(w.soldOutRequests), want: []byte(`"SUBMITTED"`)}.run(
		ctx)
	if err != nil || res.good != 1 {
		return fmt.Errorf("sell the last unit: %w %s", err, res.sample)
	}
	return nil
}

func cycle(requests [][]byte) func(int) []byte {
	return func(i int) []byte { return requests[i%len(requests)] }
}

// round runs every measurement once. All signed-in requests come from the same set of
// users, because the cost of a request depends on how many users the server knows.
func (w *suite) round(ctx context.Context, n int) error {
	crowd := w.offer.Users[n*w.opts.orders : (n+1)*w.opts.orders]
	for _, s := range []*server{w.authed, w.shop, w.bare} {
		if err := warmTokens(ctx, s, crowd); err != nil {
			return err
		}
	}
	submitted := []byte(`"SUBMITTED"`)
	for _, part := range []struct {
		name   string
		server *server
		from   [][]byte
		want   []byte
	}{
		{"floor", w.floor, w.anonymous, submitted},
		{"no-op", w.noop, w.anonymous, submitted},
		{"authenticated no-op", w.authed, orderRequests(w.authed.public, w.offer.ItemID, crowd), submitted},
		{"sold-out refusal", w.shop, orderRequests(w.shop.public, w.soldOut.ItemID, crowd), []byte(`"SOLD_OUT"`)},
	} {
		profiled := w.profileRefusals(ctx, part.server)
		s, err := w.measure(ctx, part.server, load{addr: part.server.public, request: cycle(part.from), want: part.want,
			lasts: w.opts.lasts})
		if err = errors.Join(err, <-profiled); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
		w.done[part.name] = append(w.done[part.name], s)
	}
	if err := w.measureWhole(ctx, crowd); err != nil {
		return fmt.Errorf("whole path: %w", err)
	}
	if err := w.measureBare(ctx, crowd); err != nil {
		return fmt.Errorf("bare path: %w", err)
	}
	if w.former != nil {
		if err := w.inTurn(w.former, func() error { return w.former.measureWhole(ctx, w, n) }); err != nil {
			return fmt.Errorf("former whole path: %w", err)
		}
	}
	if w.opts.path {
		return nil
	}
	if err := w.measureNaive(ctx, n); err != nil {
		return fmt.Errorf("naive: %w", err)
	}
	return nil
}

// profileRefusals profiles the product while it refuses orders; the baselines write their own
// profiles.
func (w *suite) profileRefusals(ctx context.Context, s *server) <-chan error {
	dir := w.opts.profile
	if s != w.shop {
		dir = ""
	}
	return s.profile(ctx, dir, "refusal.prof", max(1, int(w.opts.lasts.Seconds())))
}

// measure runs one load and measures the CPU time of its server.
func (w *suite) measure(ctx context.Context, s *server, l load) (sample, error) {
	before, err := w.used(ctx, s)
	if err != nil {
		return sample{}, err
	}
	res, err := l.run(ctx)
	if err != nil {
		return sample{}, err
	}
	after, err := w.used(ctx, s)
	if err != nil {
		return sample{}, err
	}
	if res.bad > 0 {
		return sample{}, fmt.Errorf("%d of %d answers are wrong, for example %s", res.bad, res.good+res.bad, res.sample)
	}
	used := after.since(before)
	return sample{n: res.good, took: res.took, cpu: used.server, used: used}, nil
}

// warmTokens sends one request with each token, so that the server has verified it before the
// measurement, as it has for buyers who requested a captcha and a path token.
func warmTokens(ctx context.Context, s *server, users []seed.LoadUser) error {
	requests := make([][]byte, len(users))
	for i, u := range users {
		requests[i] = httpRequest(s.public, u.AccessToken, `{"query":"{__typename}"}`)
	}
	res, err := load{addr: s.public, count: len(users), request: cycle(requests), want: []byte(`"Query"`)}.run(ctx)
	if err == nil && res.bad > 0 {
		err = fmt.Errorf("verify the tokens: %s", res.sample)
	}
	return err
}

// measureWhole measures orders of the product from the request to the row.
func (w *suite) measureWhole(ctx context.Context, users []seed.LoadUser) error {
	profiled := w.shop.profile(ctx, w.opts.profile, "shop.prof", max(1, int(w.opts.lasts.Seconds())))
	return errors.Join(w.measureOrders(ctx, "whole path", orderTarget{w.shop, w.db, w.offer.SaleID, w.offer.ItemID,
		&w.accepted}, users), <-profiled)
}

// measureBare measures orders of the minimal order path from the request to the row.
func (w *suite) measureBare(ctx context.Context, users []seed.LoadUser) error {
	return w.measureOrders(ctx, "bare path", orderTarget{w.bare, w.baselineDB, w.bareOffer.SaleID, w.offer.ItemID,
		&w.bareAccepted}, users)
}

// orderTarget is a server that accepts orders, and the database they are written to.
type orderTarget struct {
	server   *server
	db       *postgres.DB
	sale     string
	item     string // that the requests name
	accepted *int   // in all rounds
}

// measureOrders places one order per user and waits until all orders of the sale are written.
func (w *suite) measureOrders(ctx context.Context, name string, t orderTarget, users []seed.LoadUser) error {
	return w.measured(ctx, name, t, func(l load) (loadResult, error) { return l.run(ctx) }, users)
}

// measured places orders with send, and adds what they cost until they are written.
func (w *suite) measured(ctx context.Context, name string, t orderTarget, send func(load) (loadResult, error),
	users []seed.LoadUser,
) error {
	requests := orderRequests(t.server.public, t.item, users)
	before, err := w.used(ctx, t.server)
	if err != nil {
		return err
	}
	began := time.Now()
	res, err := send(load{
		addr: t.server.public, count: len(users), request: cycle(requests), want: []byte(`"SUBMITTED"`),
	})
	if err != nil {
		return err
	}
	*t.accepted += res.good
	w.again += res.again
	if res.bad > 0 {
		return fmt.Errorf("%d orders were not taken in, for example %s", res.bad, res.sample)
	}
	if err := written(ctx, t.db, t.sale, *t.accepted); err != nil {
		return err
	}
	took := time.Since(began)
	after, err := w.used(ctx, t.server)
	used := after.since(before)
	w.done[name] = append(w.done[name], sample{n: res.good, took: took, cpu: used.server, used: used})
	return err
}

// measureNaive measures the naive design: the rate of accepted orders and the rate of written
// orders.
func (w *suite) measureNaive(ctx context.Context, n int) error {
	users := w.naiveOffer.Users[n*w.opts.naiveOrders : (n+1)*w.opts.naiveOrders]
	requests := orderRequests(w.naive.public, w.naiveOffer.ItemID, users)
	before, err := w.naive.cpu()
	if err != nil {
		return err
	}
	began := time.Now()
	res, err := load{addr: w.naive.public, count: len(users), request: cycle(requests), want: []byte(`"SUBMITTED"`)}.run(
		ctx)
	if err != nil {
		return err
	}
	w.naiveAccepted += res.good
	if res.bad > 0 {
		return fmt.Errorf("%d orders were not taken in, for example %s", res.bad, res.sample)
	}
	if err := written(ctx, w.baselineDB, w.naiveOffer.SaleID, w.naiveAccepted); err != nil {
		return err
	}
	took := time.Since(began)
	after, err := w.naive.cpu()
	w.done["naive design, taken in"] = append(w.done["naive design, taken in"], sample{n: res.good, took: res.took})
	w.done["naive design, written"] = append(w.done["naive design, written"],
		sample{n: res.good, took: took, cpu: after - before})
	return err
}

func orderRequests(addr, itemID string, users []seed.LoadUser) [][]byte {
	requests := make([][]byte, len(users))
	for i, u := range users {
		requests[i] = httpRequest(addr, u.AccessToken, orderBody(itemID, u.Path))
	}
	return requests
}

// written waits until Postgres shows the given number of units taken, which is updated in
// the transaction of the rows. Counting the rows would cost more each round, on a CPU
// that the last orders need; checks counts them.
func written(ctx context.Context, db *postgres.DB, saleID string, orders int) error {
	sale, err := id.ParseSale(saleID)
	if err != nil {
		return err
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.Now().Add(settleTimeout)
	for {
		var units int
		if err := db.SQL.QueryRowContext(ctx, "SELECT sum(held) FROM sale_items WHERE sale_id = $1", sale).
			Scan(&units); err != nil {
			return err
		}
		if units == orders {
			return nil
		}
		if units > orders || time.Now().After(deadline) {
			return fmt.Errorf("%d orders were taken in, %d are written", orders, units)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// checks compares the order counts in Redis and Postgres.
func (w *suite) checks(ctx context.Context) ([]check, error) {
	sale, err := id.ParseSale(w.offer.SaleID)
	if err != nil {
		return nil, err
	}
	audit, err := app.Audit(ctx, w.site.cfg, sale)
	if err != nil {
		return nil, err
	}
	var rows, held, gone int
	err = w.db.SQL.QueryRowContext(ctx, `SELECT (SELECT count(*) FROM orders WHERE sale_id = $1),
		(SELECT sum(held) FROM sale_items WHERE sale_id = $1), (SELECT sum(total - available) FROM sale_items WHERE sale_id = $1)`, sale).
		Scan(&rows, &held, &gone)
	if err != nil {
		return nil, err
	}
	item, err := id.ParseItem(w.offer.ItemID)
	if err != nil {
		return nil, err
	}
	keys := reservation.Keys{Prefix: w.site.cfg.RedisPrefix}
	left, err := w.redis.Cmd.HGet(ctx, keys.Item(id.ShardOf(sale), item), "stock").Int()
	if err != nil {
		return nil, err
	}
	taken := len(w.offer.Users) + 1000 - left
	return []check{
		{"accepted = rows = units gone in Postgres = units gone in Redis", w.accepted == rows && rows == gone &&
			gone == taken && held == rows,
			fmt.Sprintf("%d = %d = %d = %d (%d asked again)", w.accepted, rows, gone, taken, w.again)},
		{"audit of the sale", audit.OK, fmt.Sprintf("%d findings %v", len(audit.Findings), audit.Findings)},
	}, nil
}
