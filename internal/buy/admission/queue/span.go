package queue

import "time"

// Span is an estimate of a wait, between two times.
type Span struct{ From, To time.Duration }

// The span around an estimate, as shares of it: the rate of admissions is that of the
// last ten to twenty seconds and changes with the sale.
const (
	spanFrom = 0.75
	spanTo   = 1.5
)

// spanOf returns the span around an estimate, in round times.
func spanOf(wait time.Duration) Span {
	from, to := time.Duration(spanFrom*float64(wait)), time.Duration(spanTo*float64(wait))
	step := spanStep(to)
	return Span{From: from.Truncate(step), To: (to + step - 1).Truncate(step)}
}

// spanStep returns how fine the times of a span are.
func spanStep(d time.Duration) time.Duration {
	switch {
	case d <= time.Minute:
		return 5 * time.Second
	case d <= 10*time.Minute:
		return 30 * time.Second
	}
	return 5 * time.Minute
}

// steady keeps the span of an earlier read while the new estimate is in it.
func (p *Position) steady(before *Position) {
	if p == nil || before == nil || p.Span == nil || before.Span == nil {
		return
	}
	if *p.Wait >= before.Span.From && *p.Wait <= before.Span.To {
		p.Span = before.Span
	}
}
