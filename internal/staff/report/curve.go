package report

import (
	"math"
	"slices"
	"time"

	"seckill/internal/buy/sale"
	"seckill/internal/buy/salestats"
)

const (
	// maxLevels and lagPoints limit the points of a curve.
	maxLevels = 1200
	lagPoints = 80
)

// addCurves adds the series over time.
func (r *Report) addCurves(v *sale.Sale, b *book, history *salestats.Kept) {
	since := func(at time.Time) int64 { return at.Sub(v.StartsAt).Milliseconds() }
	r.addSelling(b, since)
	r.addPayments(b, since)
	r.addLag(b, since)
	r.addSeries(b, history, since)
}

// addSelling adds the units left over time.
func (r *Report) addSelling(b *book, since func(time.Time) int64) {
	changes := b.changes()
	total := r.Units.Total + r.Units.Withdrawn - b.moved(adjusted) // at the opening
	left, taken := total, 0
	r.Sale = Selling{-1, -1, -1, -1}
	levels := []Level{{Ms: 0, Left: left}}
	for _, c := range changes {
		left += c.units
		at := since(c.at)
		if c.took {
			taken -= c.units
			r.Sale.reach(at, taken, total, left)
		}
		if n := len(levels) - 1; levels[n].Ms == at {
			levels[n].Left = left
		} else {
			levels = append(levels, Level{at, left})
		}
	}
	r.Curve = thinned(levels)
}

// reach records when a share of the units was first taken.
func (s *Selling) reach(at int64, taken, total, left int) {
	for _, mark := range []struct {
		at      *int64
		reached bool
	}{
		{&s.FirstMs, true}, {&s.HalfMs, 2*taken >= total}, {&s.NinetyMs, 10*taken >= 9*total}, {&s.SoldOutMs, left <= 0},
	} {
		if mark.reached && *mark.at < 0 {
			*mark.at = max(0, at)
		}
	}
}

// addPayments adds the revenue over time, and how long buyers took to pay.
func (r *Report) addPayments(b *book, since func(time.Time) int64) {
	paid := make([]entry, 0, len(b.orders))
	took := make([]time.Duration, 0, len(b.orders))
	for _, o := range b.orders {
		if o.paid == nil {
			continue
		}
		took = append(took, max(0, o.paid.Sub(o.written)))
		if o.net > 0 {
			paid = append(paid, o)
		}
	}
	slices.SortFunc(paid, func(a, b entry) int { return a.paid.Compare(*b.paid) })
	r.Revenue = []Income{}
	sum, every := int64(0), len(paid)/maxLevels+1
	for i, o := range paid {
		sum += o.net
		if i%every == 0 || i == len(paid)-1 {
			r.Revenue = append(r.Revenue, Income{since(*o.paid), sum})
		}
	}
	r.Pay = Pay{WindowMs: ms(b.sale.PaymentWindow)}
	if len(took) > 0 {
		slices.Sort(took)
		r.Pay.P50Ms, r.Pay.P90Ms = ms(quantile(took, 0.50)), ms(quantile(took, 0.90))
	}
}

// thinned removes levels too close to be visible: of levels close together it keeps the
// first, the lowest and the last.
func thinned(levels []Level) []Level {
	if len(levels) <= maxLevels {
		return levels
	}
	group := 3 * (len(levels)/maxLevels + 1)
	out := make([]Level, 0, maxLevels+3)
	for start := 0; start < len(levels); start += group {
		part := levels[start:min(start+group, len(levels))]
		lowest := slices.MinFunc(part, func(a, b Level) int { return a.Left - b.Left })
		for _, l := range []Level{part[0], lowest, part[len(part)-1]} {
			if n := len(out); n == 0 || out[n-1].Ms < l.Ms {
				out = append(out, l)
			}
		}
	}
	return out
}

// addLag measures how long orders waited for their row, in total and, during the rush,
// over time.
func (r *Report) addLag(b *book, since func(time.Time) int64) {
	r.LagCurve = []LagPoint{}
	if len(b.orders) == 0 {
		return
	}
	all := make([]time.Duration, len(b.orders))
	rush := r.rush()
	from, width := int64(rush.from), max(1, int64(rush.span())/lagPoints)
	buckets := make([][]time.Duration, lagPoints)
	for i, o := range b.orders {
		all[i] = max(0, o.written.Sub(o.reserved))
		if n := (since(o.reserved) - from) / width; n >= 0 && n < lagPoints {
			buckets[n] = append(buckets[n], all[i])
		}
	}
	for n, lags := range buckets {
		if len(lags) == 0 {
			continue
		}
		slices.Sort(lags)
		r.LagCurve = append(r.LagCurve, LagPoint{
			Ms: from + int64(n)*width + width/2, P50Ms: ms(quantile(lags, 0.50)), P99Ms: ms(quantile(lags, 0.99)),
		})
	}
	slices.Sort(all)
	r.Lag = Lag{P50Ms: ms(quantile(all, 0.50)), P99Ms: ms(quantile(all, 0.99)), MaxMs: ms(all[len(all)-1])}
}

// quantile returns the value that the given share of the sorted values does not exceed.
func quantile(sorted []time.Duration, share float64) time.Duration {
	return sorted[max(0, int(math.Ceil(share*float64(len(sorted))))-1)]
}

// addSeries combines requests and written orders, by the second or the history's step.
func (r *Report) addSeries(b *book, history *salestats.Kept, since func(time.Time) int64) {
	step := max(1, history.Step)
	r.StepSeconds = step
	written := map[int64]int{}
	for _, o := range b.orders {
		at := o.written.Unix()
		written[at-at%step]++
	}
	r.Series = []Second{}
	add := func(at int64, s Second) {
		s.Ms = since(time.Unix(at, 0))
		r.Series = append(r.Series, s)
	}
	for _, m := range history.Series {
		at := int64(m.At)
		add(at, Second{Requests: m.Requests, Accepted: m.Accepted, Orders: written[at]})
		delete(written, at)
	}
	for at, n := range written { // seconds without requests
		add(at, Second{Orders: n})
	}
	slices.SortFunc(r.Series, func(a, b Second) int { return int(a.Ms - b.Ms) })
}
