package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"seckill/internal/buy/reservation"
	"seckill/internal/ops/seed"
	"seckill/internal/platform/config"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
	"seckill/internal/platform/redisconn"
)

// growthConnections is the number of connections of the generator: fewer than in the
// rounds, so that the queue in front of the server does not hide the latency.
const growthConnections = 32

// axis is a quantity that grows while the path of an order is measured.
type axis struct {
	Name   string  `json:"name"`  // of the file
	Title  string  `json:"title"` // of the curve
	Points []point `json:"points"`
	values []int
	quick  []int
	// prepare brings an installation to the value and seeds the sales that are measured.
	prepare func(ctx context.Context, g *growthSite, value int) error
	// measure measures a prepared installation; nil = orders with a path token.
	measure func(ctx context.Context, g *growthSite, value int) (point, error)
	// draw is set instead of both for draws, which need no server.
	draw func(ctx context.Context, entries int) (point, error)
}

// point is one measurement.
type point struct {
	At   int      `json:"at"`
	Rate float64  `json:"perSecond"`
	P99  float64  `json:"p99Ms"`
	CPU  float64  `json:"serverMicros"`   // processor time of the server per order
	Draw *drawing `json:"draw,omitempty"` // of a draw, instead of the three
}

// growthSite is the installation of one point.
type growthSite struct {
	*site
	opts    options
	db      *postgres.DB
	redis   *redisconn.Conn
	shop    *server
	roles   string // of the server; "" = all
	offers  []*seed.Result
	sockets []*socket
	lost    atomic.Int64 // sockets that the server closed
}

func axes() []axis {
	return []axis{
		{Name: "stock", Title: "units of the item", values: []int{1, 100, 10_000, 1_000_000}, quick: []int{1, 1000, 100_000},
			prepare: func(ctx context.Context, g *growthSite, v int) error {
				return g.offer(ctx, g.opts.growthOrders, v)
			}},
		{Name: "buyers", Title: "accounts with a path token for the sale", values: []int{10, 1000, 100_000, 1_000_000},
			quick:   []int{10, 1000, 10_000},
			prepare: func(ctx context.Context, g *growthSite, v int) error { return g.offer(ctx, v, v+1000) }},
		{Name: "crowd", Title: "buyers for each unit, from the captcha to the order", values: []int{1, 10, 100, 1000},
			quick: []int{1, 10, 100}, prepare: func(context.Context, *growthSite, int) error { return nil }, measure: measureCrowd},
		{Name: "sales", Title: "sales that are open at the same time", values: []int{1, 10, 100, 1000},
			quick: []int{1, 10, 100}, prepare: manySales},
		{Name: "old-sales", Title: "sales that ended long ago", values: []int{0, 100, 2000, 20_000},
			quick: []int{0, 200, 2000}, prepare: oldSales},
		{Name: "sockets", Title: "open sockets that follow the sale", values: []int{0, 1000, 5000, maxSockets()},
			quick: []int{0, 500, 2000}, prepare: manySockets},
		{Name: "backlog", Title: "accepted orders that wait for a worker", values: []int{0, 10_000, 100_000, 1_000_000},
			quick: []int{0, 10_000, 100_000}, prepare: backlog},
		{Name: "orders", Title: "rows of the table of orders", values: []int{0, 100_000, 1_000_000, 10_000_000},
			quick: []int{0, 10_000, 200_000}, prepare: oldOrders},
		{Name: "entries", Title: "entries of a draw", values: []int{1000, 10_000, 100_000, 1_000_000},
			quick: []int{1000, 10_000, 100_000}, draw: measureDraw},
	}
}

// growth measures every axis, or one, and writes the curves. The points are kept beside the
// other results, so that the page can be written after the last of several runs.
func growth(ctx context.Context, o options) error {
	for _, a := range axes() {
		if o.axis != "" && o.axis != a.Name {
			continue
		}
		values := a.values
		if o.quick {
			values = a.quick
		}
		for _, value := range values {
			say("%s: %d", a.Name, value)
			p, err := growthPoint(ctx, o, a, value)
			if err != nil {
				return fmt.Errorf("%s %d: %w", a.Name, value, err)
			}
			if p.Draw == nil {
				say("%s: %d: %.0f/s, p99 %.1f ms, server %.0f us", a.Name, value, p.Rate, p.P99, p.CPU)
			} else {
				say("%s: %d: %+v", a.Name, value, *p.Draw)
			}
			a.Points = append(a.Points, p)
		}
		if err := writeCurve(o, a); err != nil {
			return err
		}
	}
	return writeGrowthPage(o)
}

func growthPoint(ctx context.Context, o options, a axis, value int) (p point, err error) {
	if a.draw != nil {
		p, err = a.draw(ctx, value)
		p.At = value
		return p, err
	}
	s, err := newSite(ctx)
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, s.remove(ctx)) }()
	g := &growthSite{site: s, opts: o}
	defer g.close()
	if g.db, err = s.database(ctx); err != nil {
		return p, err
	}
	if g.redis, err = redisconn.Open(ctx, s.cfg.RedisURL.Reveal()); err != nil {
		return p, err
	}
	if err := a.prepare(ctx, g, value); err != nil {
		return p, err
	}
	if err := g.start(ctx); err != nil {
		return p, err
	}
	profiled := g.shop.profile(ctx, o.profile, fmt.Sprintf("%s-%d.prof", a.Name, value), 3)
	if a.measure != nil {
		p, err = a.measure(ctx, g, value)
	} else {
		p, err = g.measure(ctx)
	}
	err = errors.Join(err, <-profiled)
	if lost := g.lost.Load(); err == nil && lost > 0 {
		err = fmt.Errorf("the server closed %d of %d sockets", lost, len(g.sockets))
	}
	p.At = value
	return p, err
}

func (g *growthSite) close() {
	for _, c := range g.sockets {
		_ = c.conn.Close()
	}
	if g.shop != nil {
		g.shop.stop()
	}
	if g.redis != nil {
		_ = g.redis.Close()
	}
	if g.db != nil {
		_ = g.db.Close()
	}
}

// start runs the product unless it runs.
func (g *growthSite) start(ctx context.Context) (err error) {
	if g.shop != nil {
		return nil
	}
	var flags []string
	if g.roles != "" {
		flags = append(flags, "--roles="+g.roles)
	}
	g.shop, err = startShop(ctx, g.opts.seckill, g.site, flags...)
	return err
}

// offer seeds a sale.
func (g *growthSite) offer(ctx context.Context, users, stock int) error {
	offer, err := g.seed(ctx, users, stock)
	if err != nil {
		return fmt.Errorf("seed: %w", err)
	}
	g.offers = append(g.offers, offer)
	return nil
}

// measure places orders in three parts and returns the medians of the parts.
func (g *growthSite) measure(ctx context.Context) (p point, err error) {
	const parts = 3
	requests := g.requests()
	users := min(len(requests), g.opts.growthOrders)
	if users < len(requests) {
		requests = requests[:users]
	}
	if err := warmAllTokens(ctx, g.shop, g.offers, users); err != nil {
		return p, err
	}
	lats := newLatencies()
	var rates, micros []float64
	n := g.opts.growthOrders / parts
	for part := range parts {
		before, err := g.shop.cpu()
		if err != nil {
			return p, err
		}
		res, err := load{
			addr: g.shop.public, count: n, conns: growthConnections, latency: lats, want: []byte(`"orderTask"`),
			request: func(i int) []byte { return requests[(part*n+i)%len(requests)] },
		}.run(ctx)
		if err == nil && res.bad > 0 {
			err = fmt.Errorf("%d answers are wrong, for example %s", res.bad, res.sample)
		}
		if err != nil {
			return p, err
		}
		after, err := g.shop.cpu()
		if err != nil {
			return p, err
		}
		rates = append(rates, float64(res.good)/res.took.Seconds())
		micros = append(micros, float64((after-before).Microseconds())/float64(n))
	}
	return point{Rate: median(rates), P99: lats.at(99), CPU: median(micros)}, nil
}

// measureCrowd sends the buyers of a new sale the whole way, with as many for each unit.
func measureCrowd(ctx context.Context, g *growthSite, value int) (p point, err error) {
	w := &suite{opts: g.opts, site: g.site, db: g.db, redis: g.redis, shop: g.shop, done: map[string][]sample{}}
	w.opts.profile = "" // the point has one
	if w.services, err = findServices(ctx, g.db, g.redis); err != nil {
		return p, err
	}
	crowd := way{name: "way", buyers: g.opts.growthOrders, perUnit: value, waves: 3, latency: newLatencies()}
	if err := (&product{program: g.opts.seckill, site: g.site, db: g.db, shop: g.shop}).measureWay(ctx, w, crowd); err != nil {
		return p, err
	}
	whole := w.done[crowd.name][0]
	return point{Rate: whole.rate(), P99: crowd.latency.at(99), CPU: whole.micros()}, nil
}

// requests returns the orders of all sales in turns.
func (g *growthSite) requests() (requests [][]byte) {
	for i := 0; len(requests) < g.opts.growthOrders; i++ {
		before := len(requests)
		for _, o := range g.offers {
			if i < len(o.Users) {
				requests = append(requests, httpRequest(g.shop.public, o.Users[i].AccessToken,
					orderBody(o.ItemID, o.Users[i].Path)))
			}
		}
		if len(requests) == before {
			break
		}
	}
	return requests
}

func warmAllTokens(ctx context.Context, s *server, offers []*seed.Result, users int) error {
	for _, o := range offers {
		if err := warmTokens(ctx, s, o.Users[:min(len(o.Users), users)]); err != nil {
			return err
		}
	}
	return nil
}

// busySales is how many of many open sales take orders.
const busySales = 10

// manySales seeds many sales, of which some take the orders.
func manySales(ctx context.Context, g *growthSite, value int) error {
	busy := min(value, busySales)
	for i := range value {
		if i < busy {
			if err := g.offer(ctx, g.opts.growthOrders/busy+1, g.opts.growthOrders+1000); err != nil {
				return err
			}
			continue
		}
		if _, err := g.seed(ctx, 1, 10); err != nil {
			return fmt.Errorf("seed: %w", err)
		}
	}
	return nil
}

// standard seeds one sale for all orders.
func (g *growthSite) standard(ctx context.Context) error {
	return g.offer(ctx, g.opts.growthOrders, g.opts.growthOrders+1000)
}

// oldSales inserts sales that have ended and are settled.
func oldSales(ctx context.Context, g *growthSite, value int) error {
	if err := g.standard(ctx); err != nil {
		return err
	}
	return g.statements(ctx,
		`INSERT INTO goods (id, name, list_price_minor, currency, created_at)
			SELECT md5('g' || i)::uuid, 'Old ' || i, 9900, 'CNY', now() - interval '90 days' FROM generate_series(1, `+strconv.Itoa(value)+`) i`,
		`INSERT INTO sales (id, slug, title, rules, status, starts_at, ends_at, preheat_at, payment_window_seconds, purchase_limit, created_at, settled_at)
			SELECT md5('s' || i)::uuid, 'old-' || i, 'Old ' || i, '', 'ENDED', now() - interval '91 days', now() - interval '90 days', now() - interval '91 days',
			900, 1, now() - interval '92 days', now() - interval '89 days' FROM generate_series(1, `+strconv.Itoa(value)+`) i`,
		`INSERT INTO sale_items (id, sale_id, goods_id, position, price_minor, currency, total, available)
			SELECT md5('i' || i)::uuid, md5('s' || i)::uuid, md5('g' || i)::uuid, 0, 4900, 'CNY', 10, 10 FROM generate_series(1, `+strconv.Itoa(value)+`) i`,
		"ANALYZE sales")
}

// maxSockets returns 20,000, or fewer where a process may open fewer files.
func maxSockets() int {
	most := 20_000
	if files, err := config.OpenFiles(); err == nil {
		_, sockets := config.Connections(files)
		most = min(most, sockets)
	}
	return most
}

// manySockets opens sockets that follow the sale.
func manySockets(ctx context.Context, g *growthSite, value int) error {
	const perUser = 3 // sockets that the server allows
	if err := g.offer(ctx, max(g.opts.growthOrders, value/perUser+1), g.opts.growthOrders+1000); err != nil {
		return err
	}
	if err := g.start(ctx); err != nil {
		return err
	}
	offer := g.offers[0]
	follow := []byte(`{"id":"1","type":"subscribe","payload":{"query":"subscription($s:ID!){saleStock(saleId:$s){kind items{id stock{level}}}}","variables":{"s":"` + offer.SaleID + `"}}}`)
	for i := range value {
		c, err := dialSocket(ctx, g.shop.public, offer.Users[i%len(offer.Users)].AccessToken)
		if err == nil {
			err = c.send(follow)
		}
		if err != nil {
			return fmt.Errorf("socket %d: %w", i, err)
		}
		g.sockets = append(g.sockets, c)
		go func() {
			for {
				if _, err := c.read(); err != nil {
					g.lost.Add(1) // growthPoint reads the counter before it closes the sockets
					return
				}
			}
		}()
	}
	return g.shop.waitIdle(ctx)
}

// backlog fills the order stream of the sale's shard with copies of a message, and runs no
// worker.
func backlog(ctx context.Context, g *growthSite, value int) error {
	g.roles = "api"
	const first = 256 // orders of the messages that are copied
	if err := g.offer(ctx, g.opts.growthOrders+first, g.opts.growthOrders+first+1000); err != nil {
		return err
	}
	if err := g.start(ctx); err != nil {
		return err
	}
	offer := g.offers[0]
	requests := orderRequests(g.shop.public, offer.ItemID, offer.Users[:first])
	if res, err := (load{addr: g.shop.public, count: first, request: cycle(requests), want: []byte(`"SUBMITTED"`)}).
		run(ctx); err != nil || res.good != first {
		return fmt.Errorf("first orders: %w %s", err, res.sample)
	}
	offer.Users = offer.Users[first:]
	sale, err := id.ParseSale(offer.SaleID)
	if err != nil {
		return err
	}
	stream := reservation.Keys{Prefix: g.cfg.RedisPrefix}.Orders(id.ShardOf(sale))
	entries, err := g.redis.Cmd.XLen(ctx, stream).Result()
	if err != nil {
		return err
	}
	// One copy of all messages adds the first orders once more. Few are made in one call,
	// which Redis must answer within seconds.
	const some = 40
	for copies := value / first; copies > 0; copies -= some {
		if err := g.redis.Cmd.Eval(ctx, `
			local entries = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', ARGV[2])
			for _ = 1, tonumber(ARGV[1]) do
				for _, entry in ipairs(entries) do redis.call('XADD', KEYS[1], '*', unpack(entry[2])) end
			end
			return #entries`, []string{stream}, min(copies, some), entries).Err(); err != nil {
			return err
		}
	}
	return nil
}

// oldOrders inserts orders of an earlier sale.
func oldOrders(ctx context.Context, g *growthSite, value int) error {
	if err := g.standard(ctx); err != nil {
		return err
	}
	const some = 20_000 // rows of one statement, whose answer the connection awaits for seconds only
	var inserts []string
	for from := 1; from <= value; from += some {
		inserts = append(inserts, fmt.Sprintf(
			`INSERT INTO orders (id, number, sale_id, item_id, user_id, kind, status, quantity, unit_price_minor, currency,
			version, epoch, reserved_at, created_at, updated_at, return_due)
			SELECT ('01900000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid, 'n' || i, md5('s')::uuid, md5('i')::uuid, gen_random_uuid(), 'SECKILL', 'PAID',
			1, 4900, 'CNY', 1, 1, t, t, t, false FROM generate_series(%d, %d) i, (SELECT now() - interval '90 days' AS t) AS past`, from, min(from+some-1, value)))
	}
	return g.statements(ctx, append(inserts, "ANALYZE orders")...)
}

// statements runs statements without the product's timeouts.
func (g *growthSite) statements(ctx context.Context, statements ...string) error {
	conn, err := g.db.SQL.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	for _, s := range append([]string{"SET statement_timeout = 0", "SET synchronous_commit = off"}, statements...) {
		if _, err := conn.ExecContext(ctx, s); err != nil {
			return fmt.Errorf("%.60s: %w", s, err)
		}
	}
	return nil
}

// pointsFile has the points of an axis as JSON.
func pointsFile(o options, a axis) string {
	return filepath.Join(filepath.Dir(o.out), "growth-"+a.Name+".json")
}

// writeCurve writes the points of an axis and their curve.
func writeCurve(o options, a axis) error {
	if err := os.MkdirAll(o.curves, 0o750); err != nil {
		return err
	}
	points, err := json.Marshal(a.Points)
	if err != nil {
		return err
	}
	if err := os.WriteFile(pointsFile(o, a), points, 0o600); err != nil {
		return err
	}
	if a.draw != nil {
		return nil // a table
	}
	return os.WriteFile(filepath.Join(o.curves, a.Name+".svg"), curve(a), 0o644)
}

// writeGrowthPage writes the page with all curves, once each axis has been measured.
func writeGrowthPage(o options) error {
	done := axes()
	for i := range done {
		points, err := os.ReadFile(pointsFile(o, done[i]))
		if errors.Is(err, fs.ErrNotExist) {
			say("no page of the curves: %s has not been measured", done[i].Name)
			return nil
		}
		if err != nil {
			return err
		}
		if err := json.Unmarshal(points, &done[i].Points); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(filepath.Dir(o.curves), "growth.md"), growthPage(done, time.Now()), 0o644)
}
