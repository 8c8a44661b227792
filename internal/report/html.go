package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"time"
)

//go:embed page.gohtml
var pageSource string

var pageTemplate = template.Must(template.New("report").Funcs(template.FuncMap{
	"n":   func(n int) string { return grouped(int64(n)) },
	"n64": grouped,
	"lasts": func(ms int64) string {
		if ms < 0 {
			return "not reached"
		}
		return lasts(float64(ms))
	},
	"ms":  func(v float64) string { return lasts(v) },
	"at":  func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000") },
	"day": func(t time.Time) string { return t.UTC().Format("2 January 2006, 15:04:05 MST") },
	"when": func(t *time.Time) string {
		if t == nil {
			return "–"
		}
		return t.UTC().Format("15:04:05.000")
	},
}).Parse(pageSource))

// view is the data of the page in addition to the report.
type view struct {
	*Report
	Rush    template.HTML // units left, during the rush
	Whole   template.HTML // units left, over the whole sale
	Asked   template.HTML
	Written template.HTML
	Waited  template.HTML
	Why     template.HTML
}

// HTML writes the report as one self-contained page: styles and plots are inline, and
// there is no script.
func (r *Report) HTML(out io.Writer) error {
	end, asked, last := r.rushEnd(), r.askedEnd(), r.lastMs()
	v := view{
		Report:  r,
		Rush:    r.stockPlot("Units left during the rush", 0, end).draw(),
		Asked:   r.seriesPlot("Requests per second", asked, "a", func(s Second) int { return s.Requests }).draw(),
		Written: r.seriesPlot("Orders written per second", asked, "b", func(s Second) int { return s.Orders }).draw(),
		Waited:  r.lagPlot(end).draw(),
		Why:     r.refusals(),
	}
	if last > 3*end {
		v.Whole = r.stockPlot("Units left over the whole sale", 0, last).draw()
	}
	if err := pageTemplate.Execute(out, v); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// rushEnd returns the end of the rush: a little after the sale was sold out or, if it was
// not, after 95% of the most units ever taken.
func (r *Report) rushEnd() float64 {
	end := float64(r.Sale.SoldOutMs)
	if end < 0 {
		end = r.lastMs()
		low := r.Units.Total
		for _, l := range r.Curve {
			low = min(low, l.Left)
		}
		for _, l := range r.Curve {
			if 20*(r.Units.Total-l.Left) >= 19*(r.Units.Total-low) {
				end = float64(l.Ms)
				break
			}
		}
	}
	return max(2000, end*1.15)
}

// askedEnd returns the end of the request peak: after 98% of the requests, but not so
// late that the rush is too narrow to see.
func (r *Report) askedEnd() float64 {
	rush := r.rushEnd()
	all, seen := 0, 0
	for _, s := range r.Series {
		all += s.Requests
	}
	for _, s := range r.Series {
		if seen += s.Requests; 50*seen >= 49*all {
			return min(max(rush, float64(s.Ms+2000)), max(10*rush, 60_000))
		}
	}
	return rush
}

// lastMs returns the time of the last event.
func (r *Report) lastMs() float64 {
	last := int64(2000)
	if n := len(r.Curve); n > 0 {
		last = max(last, r.Curve[n-1].Ms)
	}
	if n := len(r.Series); n > 0 {
		last = max(last, r.Series[n-1].Ms+1000)
	}
	return float64(last)
}

func (r *Report) stockPlot(title string, from, to float64) plot {
	c := curve{name: "units left", class: "a", step: true, area: true}
	for _, l := range r.Curve {
		if x := float64(l.Ms); x <= to {
			c.x, c.y = append(c.x, max(from, x)), append(c.y, float64(l.Left))
		}
	}
	if n := len(c.y); n > 0 {
		c.x, c.y = append(c.x, to), append(c.y, c.y[n-1])
	}
	about := fmt.Sprintf("%d units on sale; sold out after %s.", r.Units.Total, orNever(r.Sale.SoldOutMs))
	return plot{title: title, about: about, from: from, to: to, curves: []curve{c}}
}

func orNever(ms int64) string {
	if ms < 0 {
		return "never"
	}
	return lasts(float64(ms))
}

// seriesPlot draws one figure by the second; seconds without counts are 0.
func (r *Report) seriesPlot(title string, to float64, class string, of func(Second) int) plot {
	c := curve{name: title, class: class, step: true, area: true}
	most, from := 0, 0.0
	next := int64(0)
	for _, s := range r.Series {
		if float64(s.Ms) > to {
			break
		}
		if s.Ms < -1000 || of(s) == 0 {
			continue
		}
		if s.Ms > next || len(c.x) == 0 {
			c.x, c.y = append(c.x, float64(next)), append(c.y, 0)
		}
		from = min(from, float64(s.Ms))
		c.x, c.y = append(c.x, float64(s.Ms)), append(c.y, float64(of(s)))
		most = max(most, of(s))
		next = s.Ms + 1000
	}
	c.x, c.y = append(c.x, float64(next)), append(c.y, 0)
	return plot{title: title, about: fmt.Sprintf("At most %d in a second.", most), from: from, to: max(to, from+1), curves: []curve{c}}
}

func (r *Report) lagPlot(to float64) plot {
	fast, slow := curve{name: "half of the orders", class: "b"}, curve{name: "99 of 100", class: "c"}
	for _, p := range r.LagCurve {
		if float64(p.Ms) > to {
			break
		}
		fast.x, fast.y = append(fast.x, float64(p.Ms)), append(fast.y, p.P50Ms)
		slow.x, slow.y = append(slow.x, float64(p.Ms)), append(slow.y, p.P99Ms)
	}
	about := fmt.Sprintf("Half of all orders within %s, 99 of 100 within %s.", lasts(r.Lag.P50Ms), lasts(r.Lag.P99Ms))
	return plot{title: "From taking the unit to the written order", about: about, unit: " ms", to: to, curves: []curve{slow, fast}}
}

// reasons are the display texts of refusal reasons.
var reasons = map[string]string{
	"SOLD_OUT": "sold out", "PATH_INVALID": "no valid path", "RATE_LIMITED": "too many tries", "SALE_NOT_STARTED": "not begun",
	"SALE_CLOSED": "over or held", "PURCHASE_LIMIT_REACHED": "bought before", "IDEMPOTENCY_MISMATCH": "key used otherwise",
	"CAPTCHA_INVALID": "wrong captcha", "CAPTCHA_REQUIRED": "no captcha", "INVALID_INPUT": "bad input", "NOT_FOUND": "unknown item",
}

func (r *Report) refusals() template.HTML {
	bars := make([]bar, 0, len(r.Requests.Refused)+1)
	for _, f := range r.Requests.Refused {
		label, ok := reasons[string(f.Reason)]
		if !ok {
			label = string(f.Reason)
		}
		bars = append(bars, bar{label, f.Count})
	}
	if r.Requests.Faulted > 0 {
		bars = append(bars, bar{"server fault or overload", r.Requests.Faulted})
	}
	if len(bars) == 0 {
		return ""
	}
	slices.SortStableFunc(bars, func(a, b bar) int { return int(min(1, max(-1, b.value-a.value))) })
	return drawBars("Refused requests by reason", bars)
}
