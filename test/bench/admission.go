package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"seckill/internal/ops/seed"
	"seckill/internal/platform/captcha"
)

const (
	// backgroundRate is the number of orders per second placed during the measurement: a
	// steady load, not the maximum.
	backgroundRate = 1000
	// captchasPerSecond is the rate of captcha requests: ten thousand buyers in a little
	// over a minute, one each.
	captchasPerSecond = 150
	// admissionPow is the smallest difficulty that the settings allow, because the generator solves
	// the proofs of work.
	admissionPow = 10_000
)

var errNoCaptcha = errors.New("no captcha")

// backgroundOrders places orders at a steady rate until end is called.
type backgroundOrders struct {
	good, bad atomic.Int64
	sample    atomic.Pointer[string]
	stop      context.CancelFunc
	wg        sync.WaitGroup
}

// startBackgroundOrders starts orders that run during a measurement. There must be enough buyers for
// its duration.
func startBackgroundOrders(ctx context.Context, addr string, requests [][]byte) *backgroundOrders {
	ctx, stop := context.WithCancel(ctx)
	b := &backgroundOrders{stop: stop}
	due := make(chan []byte, len(requests))
	for range 16 {
		b.wg.Go(func() {
			conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
			if err != nil {
				return // end reports the missing orders
			}
			defer conn.Close()
			c := client{conn: conn, buf: make([]byte, 32<<10)}
			for request := range due {
				ok, answer, err := c.ask(request, []byte(`"SUBMITTED"`))
				if err != nil || !ok {
					b.bad.Add(1)
					text := fmt.Sprintf("%s %v", answer, err)
					b.sample.CompareAndSwap(nil, &text)
				}
				if err != nil {
					return
				}
				if ok {
					b.good.Add(1)
				}
			}
		})
	}
	b.wg.Go(func() {
		defer close(due)
		const beat = 10 * time.Millisecond
		tick := time.NewTicker(beat)
		defer tick.Stop()
		for next := 0; next < len(requests); {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			for range min(backgroundRate*int(beat)/int(time.Second), len(requests)-next) {
				due <- requests[next]
				next++
			}
		}
	})
	return b
}

// end stops the orders. It returns an error when an order was not accepted.
func (b *backgroundOrders) end() error {
	b.stop()
	b.wg.Wait()
	if b.good.Load() == 0 || b.bad.Load() > 0 {
		text := ""
		if s := b.sample.Load(); s != nil {
			text = *s
		}
		return fmt.Errorf("background orders: %d taken in, %d not, for example %s", b.good.Load(), b.bad.Load(), text)
	}
	return nil
}

// measureAdmission measures admission while orders run: the latency of captcha images and the rate of
// path tokens.
func measureAdmission(ctx context.Context, w *suite, r *report) error {
	var slow, paths []float64
	asked, pictures := 0, 0
	for n := range w.opts.rounds {
		say("admission, round %d of %d", n+1, w.opts.rounds)
		lats, drawn, err := w.captchas(ctx)
		if err != nil {
			return fmt.Errorf("captchas: %w", err)
		}
		slow = append(slow, float64(lats[len(lats)*99/100].Microseconds())/1000)
		say("captchas: p50 %s, p90 %s, p99 %s, slowest %s", lats[len(lats)/2], lats[len(lats)*9/10], lats[len(lats)*99/100],
			lats[len(lats)-1])
		asked, pictures = asked+len(lats), pictures+drawn
		rate, err := w.paths(ctx)
		if err != nil {
			return fmt.Errorf("paths: %w", err)
		}
		paths = append(paths, rate)
	}
	r.Figures = append(r.Figures,
		figure{Name: fmt.Sprintf("createCaptcha p99, beside %d orders/s", backgroundRate), Ratio: median(slow), Unit: "ms",
			ToReach: "10"},
		figure{Name: fmt.Sprintf("issueSeckillPath, beside %d orders/s", backgroundRate), Ratio: median(paths), Unit: "/s"})
	r.Checks = append(r.Checks, check{
		Name: "captchas asked for as pictures are pictures", OK: pictures*100 >= asked*95,
		Text: fmt.Sprintf("%d of %d", pictures, asked),
	})
	return nil
}

// startOrdersFor seeds a sale with enough buyers for a duration and starts their orders.
func (w *suite) startOrdersFor(ctx context.Context, lasts time.Duration) (_ *backgroundOrders, saleID string, err error) {
	n := int(lasts.Seconds()+1) * backgroundRate
	offer, err := w.site.seed(ctx, n, n+100)
	if err != nil {
		return nil, "", err
	}
	if err := w.onSale(ctx, offer); err != nil {
		return nil, "", err
	}
	return startBackgroundOrders(ctx, w.shop.public, orderRequests(w.shop.public, offer.ItemID, offer.Users)), offer.SaleID, nil
}

// onSale waits until the server has loaded a sale, and sends one request with each
// buyer's token.
func (w *suite) onSale(ctx context.Context, offer *seed.Result) error {
	if err := loaded(ctx, w.shop, offer.SaleID); err != nil {
		return err
	}
	return warmTokens(ctx, w.shop, offer.Users)
}

// loaded waits until a server has loaded a sale.
func loaded(ctx context.Context, s *server, saleID string) error {
	request := httpRequest(s.public, "", fmt.Sprintf(`{"query":"{sale(by:{id:\"%s\"}){id}}"}`, saleID))
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(startTimeout); time.Now().Before(deadline); <-tick.C {
		res, err := load{addr: s.public, count: 1, request: cycle([][]byte{request}), want: []byte(saleID)}.run(ctx)
		if err != nil || res.good == 1 {
			return err
		}
	}
	return errors.New("the server does not hear of a new sale")
}

// captchas requests captcha images at a steady rate. It returns the sorted latencies and
// the number of images; the server issues a proof of work when the image pool is empty.
func (w *suite) captchas(ctx context.Context) (lats []time.Duration, pictures int, err error) {
	orders, saleID, err := w.startOrdersFor(ctx, w.opts.lasts)
	if err != nil {
		return nil, 0, err
	}
	requests := make([][]byte, len(w.soldOut.Users)) // a sold-out sale has no captcha
	for i, u := range w.soldOut.Users {
		requests[i] = httpRequest(w.shop.public, u.AccessToken, captchaBody("SECKILL", saleID, "TEXT"))
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	errs := make([]error, 4)
	deadline := time.Now().Add(w.opts.lasts)
	for worker := range errs {
		wg.Go(func() {
			conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", w.shop.public)
			if err != nil {
				errs[worker] = err
				return
			}
			defer conn.Close()
			c := client{conn: conn, buf: make([]byte, 128<<10)}
			tick := time.NewTicker(time.Second * time.Duration(len(errs)) / captchasPerSecond)
			defer tick.Stop()
			for i := worker; time.Now().Before(deadline); i += len(errs) {
				<-tick.C
				began := time.Now()
				ok, answer, err := c.ask(requests[i%len(requests)], []byte(`"cap_`))
				if err != nil || !ok {
					errs[worker] = fmt.Errorf("%.600s: %w", answer, cmp.Or(err, errNoCaptcha))
					return
				}
				mu.Lock()
				lats = append(lats, time.Since(began))
				if bytes.Contains(answer, []byte(`"TEXT"`)) {
					pictures++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if err = errors.Join(errors.Join(errs...), orders.end()); err == nil && len(lats) == 0 {
		err = errors.New("none was answered")
	}
	slices.Sort(lats)
	return lats, pictures, err
}

// paths returns how many path tokens are issued per second. Their captchas were solved
// beforehand.
func (w *suite) paths(ctx context.Context) (float64, error) {
	n := 250 * int(w.opts.lasts/time.Second+1)
	offer, err := w.site.seed(ctx, n, n+100)
	if err != nil {
		return 0, err
	}
	if err := w.onSale(ctx, offer); err != nil {
		return 0, err
	}
	requests, err := w.solved(ctx, offer, "SECKILL", pathBody)
	if err != nil {
		return 0, err
	}
	orders, _, err := w.startOrdersFor(ctx, w.opts.lasts)
	if err != nil {
		return 0, err
	}
	res, err := load{addr: w.shop.public, count: n, request: cycle(requests), want: []byte(`"path":{"token"`)}.run(ctx)
	if err = errors.Join(err, orders.end()); err == nil && res.bad > 0 {
		err = fmt.Errorf("%d of %d were not issued, for example %s", res.bad, n, res.sample)
	}
	return float64(res.good) / res.took.Seconds(), err
}

// solved creates and solves a proof of work for each buyer and prepares the request that body
// makes of the answer.
func (w *suite) solved(ctx context.Context, offer *seed.Result, purpose string,
	body func(itemID, challenge, solution string) string) ([][]byte, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", w.shop.public)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	c := client{conn: conn, buf: make([]byte, 32<<10)}
	requests := make([][]byte, len(offer.Users))
	for i, u := range offer.Users {
		ok, answer, err := c.ask(httpRequest(w.shop.public, u.AccessToken, captchaBody(purpose, offer.SaleID, "PROOF_OF_WORK")),
			[]byte(`"cap_`))
		if err != nil || !ok {
			return nil, fmt.Errorf("%.600s: %w", answer, cmp.Or(err, errNoCaptcha))
		}
		challenge, solution, err := solve(answer[bytes.Index(answer, headEnd)+len(headEnd):])
		if err != nil {
			return nil, err
		}
		requests[i] = httpRequest(w.shop.public, u.AccessToken, body(offer.ItemID, challenge, solution))
	}
	return requests, nil
}

func pathBody(itemID, challenge, solution string) string {
	return fmt.Sprintf(`{"query":"mutation I($i:IssueSeckillPathInput!){issueSeckillPath(input:$i){path{token} userErrors{code}}}",`+
		`"variables":{"i":{"itemId":%q,"captcha":{"challengeId":%q,"answer":%q}}}}`, itemID, challenge, solution)
}

func captchaBody(purpose, saleID, kind string) string {
	return fmt.Sprintf(`{"query":"mutation C($i:CreateCaptchaInput!){createCaptcha(input:$i){challenge{id kind image parameters} userErrors{code}}}",`+
		`"variables":{"i":{"purpose":%q,"saleId":%q,"kind":%q}}}`, purpose, saleID, kind)
}

// solve reads an answer of createCaptcha and returns the solution of the proof of work.
func solve(answer []byte) (challenge, solution string, err error) {
	var out struct {
		Data struct {
			CreateCaptcha struct {
				Challenge struct{ ID, Parameters string }
			}
		}
	}
	if err := json.Unmarshal(answer, &out); err != nil {
		return "", "", err
	}
	got := out.Data.CreateCaptcha.Challenge
	solution, err = captcha.Solve(got.Parameters)
	return got.ID, solution, err
}
