package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"seckill/internal/app"
	"seckill/internal/ops/seed"
)

const (
	// crowdOpens is the delay until the sale opens: longer than the sockets need to connect.
	crowdOpens = 30 * time.Second
	// crowdWait bounds the wait for a push.
	crowdWait = time.Minute
)

// crowd measures what thousands of buyers do at the same moment: they follow a sale until
// it opens, request a captcha, and join the waitlist when the stock is gone.
func (w *suite) crowd(ctx context.Context, r *report) error {
	n := w.opts.crowd
	say("a crowd of %d", n)
	offer, err := app.Seed(ctx, w.site.cfg, seed.Input{
		Users: n, Stock: 1, OpensIn: crowdOpens, Lasts: 2 * time.Hour, PurchaseLimit: 1, PaymentWindow: time.Hour,
		PathTTL: time.Hour,
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		return fmt.Errorf("seed: %w", err)
	}
	opens := time.Now().Add(crowdOpens) // not before: the seed has taken some of it
	if err := w.onSale(ctx, offer); err != nil {
		return err
	}
	pushed, err := w.crowdOpening(ctx, offer)
	if err != nil {
		return fmt.Errorf("opening: %w", err)
	}
	if time.Now().After(opens.Add(crowdWait)) {
		return errors.New("the opening came too late")
	}
	add := func(what string, l *latencies) {
		for _, p := range []float64{50, 100} {
			name := fmt.Sprintf("%s, p50", what)
			if p == 100 {
				name = what + ", the last"
			}
			r.Figures = append(r.Figures, figure{Name: fmt.Sprintf("%d at once: %s", n, name), Ratio: l.at(p), Unit: "ms"})
		}
	}
	add("opening push", pushed)
	captchas := make([][]byte, n)
	for i, u := range offer.Users {
		captchas[i] = httpRequest(w.shop.public, u.AccessToken, captchaBody("SECKILL", offer.SaleID, "PROOF_OF_WORK"))
	}
	lats, err := w.crowdRequests(ctx, captchas, `"cap_`)
	if err != nil {
		return fmt.Errorf("captchas: %w", err)
	}
	add("captcha", lats)
	joins, err := w.solved(ctx, offer, "WAITLIST", joinBody)
	if err != nil {
		return fmt.Errorf("captchas of the waitlist: %w", err)
	}
	first := orderRequests(w.shop.public, offer.ItemID, offer.Users[:1])
	if res, err := (load{addr: w.shop.public, count: 1, request: cycle(first), want: []byte(`"SUBMITTED"`)}).
		run(ctx); err != nil || res.good != 1 {
		return fmt.Errorf("sell the last unit: %w %s", err, res.sample)
	}
	if lats, err = w.crowdRequests(ctx, joins[1:], `"wtl_`); err != nil {
		return fmt.Errorf("waitlist: %w", err)
	}
	add("join the waitlist", lats)
	return nil
}

func joinBody(itemID, challenge, solution string) string {
	return fmt.Sprintf(`{"query":"mutation J($i:JoinWaitlistInput!){joinWaitlist(input:$i){waitlistEntry{id} userErrors{code}}}",`+
		`"variables":{"i":{"itemId":%q,"captcha":{"challengeId":%q,"answer":%q}}}}`, itemID, challenge, solution)
}

// crowdRequests sends all requests at once on the generator's connections: the latency of a
// request counts from the common start.
func (w *suite) crowdRequests(ctx context.Context, requests [][]byte, want string) (*latencies, error) {
	return load{addr: w.shop.public, count: len(requests), request: cycle(requests), want: []byte(want)}.atRate(ctx, 1e12)
}

// crowdOpening opens a socket for each buyer, and measures how long after the opening each
// received the open sale.
func (w *suite) crowdOpening(ctx context.Context, offer *seed.Result) (*latencies, error) {
	follow := []byte(`{"id":"1","type":"subscribe","payload":{"query":"subscription($s:ID!){saleStatus(saleId:$s){sale{phase startsAt revision}}}","variables":{"s":"` +
		offer.SaleID + `"}}}`)
	conns := make([]*socket, 0, len(offer.Users))
	defer func() {
		for _, c := range conns {
			_ = c.conn.Close()
		}
	}()
	for _, u := range offer.Users {
		c, err := dialSocket(ctx, w.shop.public, u.AccessToken)
		if err != nil {
			return nil, err
		}
		conns = append(conns, c)
		if err := c.send(follow); err != nil {
			return nil, err
		}
	}
	lats := newLatencies()
	errs := make([]error, len(conns))
	var wg sync.WaitGroup
	for i, c := range conns {
		wg.Go(func() {
			_ = c.conn.SetReadDeadline(time.Now().Add(crowdWait)) // a TCP connection has deadlines
			for {
				text, err := c.read()
				if err != nil {
					errs[i] = err
					return
				}
				if !bytes.Contains(text, []byte(`"phase":"LIVE"`)) {
					continue
				}
				opened, err := startsAt(text)
				if err != nil {
					errs[i] = err
					return
				}
				lats.add(time.Since(opened))
				return
			}
		})
	}
	wg.Wait()
	return lats, firstError(errs)
}

// firstError returns the first error with the number of errors.
func firstError(errs []error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("%d of them, the first: %w", len(errs), errs[0])
}

// startsAt reads the opening of the sale from a frame.
func startsAt(text []byte) (time.Time, error) {
	_, rest, found := bytes.Cut(text, []byte(`"startsAt":"`))
	value, _, closed := bytes.Cut(rest, []byte(`"`))
	if !found || !closed {
		return time.Time{}, fmt.Errorf("no opening in %s", text)
	}
	return time.Parse(time.RFC3339, string(value))
}

// drawing is what a draw with a unit for each hundred entries takes, from the closing of its entries to
// the last offer.
type drawing struct {
	Root    float64 `json:"rootSeconds"`    // until the root of the entries is published
	Numbers float64 `json:"numbersSeconds"` // from the random value until each entry has its number
	Offers  float64 `json:"offersSeconds"`  // until each unit is offered
	Heap    float64 `json:"heapMB"`         // at the highest
}

// measureDraw runs the benchmark of package waitlist.
func measureDraw(ctx context.Context, entries int) (point, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", fmt.Sprintf("Draw/^%d$", entries),
		"-benchtime", "1x", "-timeout", "30m", "./internal/buy/waitlist")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return point{}, fmt.Errorf("%w: %s", err, out)
	}
	d, words := &drawing{}, strings.Fields(string(out))
	of := map[string]*float64{"root-s": &d.Root, "numbers-s": &d.Numbers, "offers-s": &d.Offers, "heap-MB": &d.Heap}
	for i, unit := range words {
		if figure := of[unit]; figure != nil {
			if *figure, err = strconv.ParseFloat(words[i-1], 64); err != nil {
				return point{}, fmt.Errorf("%s: %w", unit, err)
			}
		}
	}
	if d.Heap == 0 {
		return point{}, fmt.Errorf("no figures: %s", out)
	}
	return point{Draw: d}, nil
}

// writeDraws writes a row for each size of a draw.
func writeDraws(w io.Writer, a axis) {
	fmt.Fprintf(w, "\n## Entries of a draw\n\nSeconds from the closing of the entries to the last offer, with a unit for each hundred "+
		"entries, in one process; the random value is there at once.\n\n"+
		"| entries | root | numbers | offers | in all | peak of the heap |\n|---|---|---|---|---|---|\n")
	for _, p := range a.Points {
		d := p.Draw
		fmt.Fprintf(w, "| %s | %.1f | %.1f | %.1f | %.1f s | %.0f MB |\n", thousands(p.At), d.Root, d.Numbers, d.Offers,
			d.Root+d.Numbers+d.Offers, d.Heap)
	}
}
