package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// waySettle is how long after the last answer a server may still write about refusals, and
	// how long its use without buyers is measured.
	waySettle = 2500 * time.Millisecond
)

// way is what a buyer does, from the captcha to the stored order.
type way struct {
	name    string
	buyers  int // 0 = a third of the orders of a round
	perUnit int // buyers who compete for one unit; 1 = there is more than a unit for each
	waves   int // of buyers at once: the later ones of the losers find nothing left
	goal    string
	former  string     // goal of the processor time relative to the former product
	latency *latencies // of placeOrder; nil = not kept
}

var buyerWays = []way{
	{name: "winner's way", perUnit: 1, waves: 1, goal: "9", former: "0.40"},
	{name: "loser's way", perUnit: 100, waves: 3, goal: "5", former: "0.35"},
}

// measureWays measures the whole way of a buyer by proof of work in all processes: of winners,
// who all get a unit, and of losers. The proofs are solved between the requests, outside of
// the count.
func (w *suite) measureWays(ctx context.Context, r *report) error {
	products := []*product{{program: w.opts.seckill, site: w.site, db: w.db, shop: w.shop}}
	if w.former != nil {
		products = append(products, w.former)
	}
	floor := "floor beside the ways"
	for n := range w.opts.rounds {
		say("ways of buyers, round %d of %d", n+1, w.opts.rounds)
		s, err := w.measure(ctx, w.floor, load{addr: w.floor.public, request: cycle(w.anonymous), want: []byte(`"SUBMITTED"`),
			lasts: w.opts.lasts})
		if err != nil {
			return err
		}
		w.done[floor] = append(w.done[floor], s)
		for _, way := range buyerWays {
			for _, p := range products {
				if err := w.inTurn(p, func() error { return p.measureWay(ctx, w, way) }); err != nil {
					return fmt.Errorf("%s%s: %w", p.prefix, way.name, err)
				}
			}
		}
	}
	for name, samples := range w.done {
		if name == floor || strings.Contains(name, " way") {
			r.note(name, samples)
		}
	}
	for _, way := range buyerWays {
		for _, p := range products {
			f := costs(fmt.Sprintf("%s%s, in floor requests", p.prefix, way.name), w.done[p.prefix+way.name], w.done[floor])
			if p.prefix == "" {
				f.ToReach = way.goal
			}
			r.Figures = append(r.Figures, f)
		}
		if w.former != nil {
			f := costs(way.name+", processor time / former", w.done[way.name], w.done[w.former.prefix+way.name])
			f.ToReach = way.former
			r.Figures = append(r.Figures, f)
		}
	}
	return nil
}

// costs returns the ratio of the processor time of server, Redis and Postgres per operation.
func costs(name string, ours, theirs []sample) figure {
	var ratios []float64
	for i := range min(len(ours), len(theirs)) {
		ratios = append(ratios, ours[i].allMicros()/theirs[i].allMicros())
	}
	return figure{Name: name, Ratio: median(ratios), Least: slices.Min(ratios), Most: slices.Max(ratios)}
}

// profileSeconds is how long a profile of a way lasts.
const profileSeconds = 20

// walk is one way of many buyers.
type walk struct {
	*product
	suite *suite
	name  string
	lats  *latencies // of placeOrder
	whole sample
	steps map[string]*sample
}

// measureWay sends buyers to a new sale.
func (f *product) measureWay(ctx context.Context, w *suite, way way) error {
	buyers := way.buyers
	if buyers == 0 {
		buyers = w.opts.orders / 3
	}
	stock := max(1, buyers/way.perUnit)
	if way.perUnit == 1 {
		stock += 100
	}
	offer, err := f.seed(ctx, buyers, stock)
	if err != nil {
		return err
	}
	if err := loaded(ctx, f.shop, offer.SaleID); err != nil {
		return err
	}
	if err := w.quiet(ctx, f.shop); err != nil {
		return err
	}
	k := &walk{product: f, suite: w, name: f.prefix + way.name, lats: way.latency, steps: map[string]*sample{}, whole: sample{n: buyers}}
	before, err := w.used(ctx, f.shop)
	if err != nil {
		return err
	}
	began := time.Now()
	profiled := f.shop.profile(ctx, w.opts.profile, strings.ReplaceAll(k.name, " ", "-")+".prof", profileSeconds)
	sold := 0
	for users := range slices.Chunk(offer.Users, (buyers+way.waves-1)/way.waves) {
		tokens := make([]string, len(users))
		requests := make([][]byte, len(users))
		for i, u := range users {
			tokens[i] = u.AccessToken
			requests[i] = httpRequest(f.shop.public, u.AccessToken, captchaBody("SECKILL", offer.SaleID, "PROOF_OF_WORK"))
		}
		answers, err := k.step(ctx, "createCaptcha", requests, `"createCaptcha"`)
		if err != nil {
			return err
		}
		if tokens, requests, err = k.solve(tokens, answers, offer.ItemID); err != nil {
			return err
		}
		if answers, err = k.step(ctx, "issueSeckillPath", requests, `"issueSeckillPath"`); err != nil {
			return err
		}
		var orders [][]byte
		for i, answer := range answers {
			if _, rest, ok := bytes.Cut(answer, []byte(`"path":{"token":"`)); ok {
				path, _, _ := bytes.Cut(rest, []byte(`"`))
				orders = append(orders, httpRequest(f.shop.public, tokens[i], orderBody(offer.ItemID, string(path))))
			}
		}
		if answers, err = k.step(ctx, "placeOrder", orders, `"placeOrder"`); err != nil {
			return err
		}
		for _, answer := range answers {
			if bytes.Contains(answer, []byte(`"SUBMITTED"`)) {
				sold++
			}
		}
	}
	if err := <-profiled; err != nil {
		return err
	}
	if want := min(buyers, stock); sold != want {
		return fmt.Errorf("%d units are sold, not %d", sold, want)
	}
	if err := written(ctx, f.db, offer.SaleID, sold); err != nil {
		return err
	}
	if way.perUnit > 1 { // what waits in memory is written
		if err := pause(ctx, waySettle); err != nil {
			return err
		}
	}
	if err := k.count(ctx, before, began); err != nil {
		return err
	}
	w.done[k.name] = append(w.done[k.name], k.whole)
	for name, s := range k.steps {
		w.done[k.name+": "+name] = append(w.done[k.name+": "+name], *s)
	}
	return nil
}

// quiet waits, for a bounded time, until Postgres has ended its work about the seeded rows,
// which would count as that of the requests.
func (w *suite) quiet(ctx context.Context, s *server) error {
	before, err := w.used(ctx, s)
	for range 15 {
		if err == nil {
			err = pause(ctx, time.Second)
		}
		if err != nil {
			return err
		}
		var now usage
		if now, err = w.used(ctx, s); now.postgres-before.postgres <= 2*clockTick {
			return err
		}
		before = now
	}
	return err
}

// step sends one request of each buyer and adds its cost.
func (k *walk) step(ctx context.Context, name string, requests [][]byte, want string) ([][]byte, error) {
	if len(requests) == 0 {
		return nil, nil
	}
	answers := make([][]byte, len(requests))
	objects, err := k.shop.objects(ctx)
	if err != nil {
		return nil, err
	}
	l := load{
		addr: k.shop.public, count: len(requests), request: cycle(requests), want: []byte(want),
		answered: func(i int, answer []byte) { answers[i] = bytes.Clone(answer) },
	}
	if name == "placeOrder" {
		l.latency = k.lats
	}
	s, err := k.suite.measure(ctx, k.shop, l)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	after, err := k.shop.objects(ctx)
	s.used.objects = after - objects
	if k.steps[name] == nil {
		k.steps[name] = &sample{}
	}
	k.steps[name].add(s)
	k.steps[name].n += s.n
	k.whole.add(s)
	return answers, err
}

// count adds up the way: everything since its beginning, because the server also works
// between the steps, without what the same processes use in as long a time without buyers.
func (k *walk) count(ctx context.Context, before usage, began time.Time) error {
	after, err := k.suite.used(ctx, k.shop)
	if err != nil {
		return err
	}
	between := time.Since(began) - k.whole.took
	if err := pause(ctx, waySettle); err != nil {
		return err
	}
	idle, err := k.suite.used(ctx, k.shop)
	if err != nil {
		return err
	}
	objects := k.whole.used.objects
	k.whole.used = after.since(before).since(idle.since(after).times(float64(between) / float64(waySettle)))
	k.whole.used.objects, k.whole.cpu = objects, k.whole.used.server
	return nil
}

// solve prepares the requests for a path token of those buyers who got a challenge.
func (k *walk) solve(tokens []string, answers [][]byte, item string) (solvers []string, requests [][]byte, err error) {
	all := make([][]byte, len(answers))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, answer := range answers {
		if !bytes.Contains(answer, []byte(`"cap_`)) {
			continue
		}
		group.Go(func() error {
			challenge, solution, err := solve(answer[bytes.Index(answer, headEnd)+len(headEnd):])
			all[i] = httpRequest(k.shop.public, tokens[i], pathBody(item, challenge, solution))
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, nil, err
	}
	for i, request := range all {
		if request != nil {
			solvers, requests = append(solvers, tokens[i]), append(requests, request)
		}
	}
	return solvers, requests, nil
}

// objects returns how many objects the server has allocated since its start.
func (s *server) objects(ctx context.Context) (float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.admin+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	res, err := (&http.Client{Timeout: startTimeout}).Do(req)
	if err != nil {
		return 0, err
	}
	text, err := io.ReadAll(res.Body)
	if err = errors.Join(err, res.Body.Close()); err != nil {
		return 0, err
	}
	_, rest, _ := bytes.Cut(text, []byte("\ngo_memstats_mallocs_total "))
	value, _, _ := bytes.Cut(rest, []byte("\n"))
	return strconv.ParseFloat(string(value), 64)
}
