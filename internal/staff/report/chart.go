package report

import (
	"html/template"
	"math"
	"slices"

	"seckill/internal/platform/money"
)

const (
	// minWindow is the shortest period of a chart, in milliseconds.
	minWindow = 2000.0
	// maxBins limits the steps of a chart of counts, so that each is wide enough to be seen.
	maxBins = 120
	// openingMs is how long before the opening requests are shown, in milliseconds.
	openingMs = -1000.0
)

// window is the period of a chart, in milliseconds from the opening.
type window struct{ from, to float64 }

func (w window) span() float64 { return w.to - w.from }

// fit returns the window of events. It begins at the opening if that is near.
func fit(first, last float64) window {
	span := max(last-first, minWindow)
	w := window{first - span/20, first + span*1.15}
	if first >= 0 && first <= span/2 {
		w.from = 0
	}
	return w
}

// rush returns the window in which most units were taken: until the sale was sold out or,
// if it was not, until 95% of the most units ever taken.
func (r *Report) rush() window {
	if r.Sale.FirstMs < 0 {
		return window{0, minWindow}
	}
	first, last := float64(r.Sale.FirstMs), float64(r.Sale.SoldOutMs)
	if last < 0 {
		low := slices.MinFunc(r.Curve, func(a, b Level) int { return a.Left - b.Left }).Left
		reached := slices.IndexFunc(r.Curve, func(l Level) bool {
			return 20*(r.Units.Total-l.Left) >= 19*(r.Units.Total-low)
		})
		if reached < 0 {
			reached = len(r.Curve) - 1
		}
		last = float64(r.Curve[reached].Ms)
	}
	return fit(first, last)
}

// whole returns the window from the opening to the last event.
func (r *Report) whole() window {
	last := minWindow
	if n := len(r.Curve); n > 0 {
		last = max(last, float64(r.Curve[n-1].Ms))
	}
	if n := len(r.Series); n > 0 {
		last = max(last, float64(r.Series[n-1].Ms+1000*r.step()))
	}
	return window{0, last}
}

// step returns the seconds of one entry of the series.
func (r *Report) step() int64 { return max(1, r.StepSeconds) }

// peak returns the window of 95% of the counts, but not so long that the rush is too
// narrow to be seen.
func (r *Report) peak(of func(Second) int) window {
	rush := r.rush()
	all, seen, first, last := 0, 0, math.NaN(), 0.0
	for _, s := range r.Series {
		all += of(s)
	}
	for _, s := range r.Series {
		if of(s) == 0 || float64(s.Ms) < openingMs {
			continue
		}
		if math.IsNaN(first) {
			first = float64(s.Ms)
		}
		seen += of(s)
		last = float64(s.Ms + 1000*r.step())
		if 20*seen >= 19*all {
			break
		}
	}
	if math.IsNaN(first) {
		return rush
	}
	room := max(10*rush.span(), 60_000)
	return fit(max(first, min(first, rush.to)-room), min(last, rush.to+room))
}

// binSteps are the widths of bins, in seconds.
var binSteps = []int64{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 86400}

// bins returns a figure per second over a window as the steps of a curve, and the width
// of a step in seconds.
func (r *Report) bins(in window, of func(Second) int) (c curve, width int64) {
	width = r.step()
	for _, s := range binSteps {
		if width = max(width, s); in.span()/float64(1000*width) <= maxBins {
			break
		}
	}
	width += (r.step() - width%r.step()) % r.step()
	ms := 1000 * width
	sums := make([]int, int(in.span())/int(ms)+2)
	start := math.NaN()
	for _, s := range r.Series {
		if at := float64(s.Ms); of(s) == 0 || at < min(in.from, openingMs) || at > in.to {
			continue
		} else if math.IsNaN(start) {
			start = at - math.Floor(max(0, at-in.from)/float64(ms))*float64(ms)
		}
		if n := int(float64(s.Ms)-start) / int(ms); n >= 0 && n < len(sums) {
			sums[n] += of(s)
		}
	}
	if math.IsNaN(start) {
		start = in.from
	}
	c = curve{step: true, area: true, x: []float64{in.from}, y: []float64{0}}
	for n, sum := range sums {
		if x := start + float64(int64(n)*ms); x <= in.to {
			c.x, c.y = append(c.x, max(x, in.from)), append(c.y, float64(sum)/float64(width))
		}
	}
	c.x, c.y = append(c.x, in.to), append(c.y, c.y[len(c.y)-1])
	return c, width
}

// stockPlot draws the units left.
func (r *Report) stockPlot(w words, title string, in window) plot {
	c := curve{class: "a", step: true, area: true}
	before := -1
	for i, l := range r.Curve {
		x := float64(l.Ms)
		if x < in.from {
			before = i
		} else if x <= in.to {
			c.x, c.y = append(c.x, x), append(c.y, float64(l.Left))
		}
	}
	if before >= 0 {
		c.x, c.y = append([]float64{in.from}, c.x...), append([]float64{float64(r.Curve[before].Left)}, c.y...)
	}
	if n := len(c.y); n > 0 {
		c.x, c.y = append(c.x, in.to), append(c.y, c.y[n-1])
	}
	about := w.say(stockSummary, grouped(int64(r.Units.Total)), w.reached(r.Sale.SoldOutMs))
	return plot{title: title, about: about, window: in, whole: true, curves: []curve{c}}
}

// revenuePlot draws the revenue; "" without any.
func (r *Report) revenuePlot(w words, title string) template.HTML {
	if len(r.Revenue) == 0 {
		return ""
	}
	unit := math.Pow10(money.Amount{Currency: r.Orders.Currency}.Digits())
	in := fit(float64(r.Revenue[0].Ms), float64(r.Revenue[len(r.Revenue)-1].Ms))
	c := curve{class: "b", step: true, area: true, x: []float64{in.from}, y: []float64{0}}
	for _, point := range r.Revenue {
		c.x, c.y = append(c.x, float64(point.Ms)), append(c.y, float64(point.Minor)/unit)
	}
	c.x, c.y = append(c.x, in.to), append(c.y, c.y[len(c.y)-1])
	about := w.say(revenueSummary, r.Orders.Net, r.Orders.Currency)
	return plot{title: title, about: about, window: in, curves: []curve{c}}.draw(w)
}

// seriesPlot draws one figure per second.
func (r *Report) seriesPlot(w words, title, class string, of func(Second) int) plot {
	in := r.peak(of)
	c, width := r.bins(in, of)
	c.class = class
	most := 0
	for _, s := range r.Series {
		most = max(most, of(s))
	}
	about := ""
	if r.step() == 1 {
		about = w.say(busiestSecond, grouped(int64(most)))
	}
	return plot{title: title, about: about, window: in, whole: width == 1, curves: []curve{c}}
}

// lagPlot draws how long accepted attempts waited for their row.
func (r *Report) lagPlot(w words, title string) plot {
	fast, slow := curve{class: "b"}, curve{class: "c"}
	for _, p := range r.LagCurve {
		fast.x, fast.y = append(fast.x, float64(p.Ms)), append(fast.y, p.P50Ms)
		slow.x, slow.y = append(slow.x, float64(p.Ms)), append(slow.y, p.P99Ms)
	}
	about := w.waited(r.Lag)
	return plot{title: title, about: about, window: r.rush(), unit: " " + w.say(milliseconds), curves: []curve{slow, fast}}
}

// waited returns how long buyers waited in a sentence.
func (w words) waited(l Lag) string {
	return w.say(waitedSummary,
		w.lasts(l.P50Ms), w.lasts(l.P99Ms), w.lasts(l.MaxMs))
}

// Texts of charts for screen readers.
var (
	stockSummary   = text{"%s units on sale; sold out after: %s.", "上架 %s 件；售罄用时：%s。"}
	revenueSummary = text{"%s %s in all.", "共 %s %s。"}
	busiestSecond  = text{"At most %s in a second.", "峰值每秒 %s。"}
	waitedSummary  = text{"From the accepted attempt to the stored order: half of all within %s, 99 of 100 within %s, the slowest %s.", "从抢到至订单写入：一半不超过 %s，99%% 不超过 %s，最慢 %s。"}
)
