package report

import (
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"
	"time"
)

// Geometry of a plot, in the units of its viewBox.
const (
	plotWidth, plotHeight             = 720.0, 250.0
	leftEdge, rightEdge               = 64.0, 16.0
	topEdge, bottomEdge               = 14.0, 34.0
	innerWidth                        = plotWidth - leftEdge - rightEdge
	innerHeight                       = plotHeight - topEdge - bottomEdge
	barHeight, barGap, barLabel, wide = 22.0, 8.0, 190.0, 720.0
)

// maxDots limits the points of a line that are marked: a single one would not be seen.
const maxDots = 20

// curve is one line of a plot. Points are in the order of x.
type curve struct {
	class string // a, b or c: its colour
	x, y  []float64
	step  bool // holds its value until the next point
	area  bool // filled down to the axis
}

// plot is a diagram of curves over time.
type plot struct {
	title, about string // about is the text alternative for screen readers
	unit         string
	window       window
	whole        bool // the values are whole numbers
	curves       []curve
}

// draw returns the plot as inline SVG.
func (p plot) draw(w words) template.HTML {
	top := 0.0
	for _, c := range p.curves {
		for _, y := range c.y {
			top = max(top, y)
		}
	}
	ticks := niceTicks(top, p.whole)
	top = max(ticks[len(ticks)-1], 1e-9)
	from, to := p.window.from, p.window.to
	span := max(to-from, 1)
	px := func(x float64) float64 { return leftEdge + (min(max(x, from), to)-from)/span*innerWidth }
	py := func(y float64) float64 { return topEdge + (1-y/top)*innerHeight }

	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %g %g" role="img" aria-label="%s">`, plotWidth, plotHeight,
		escape(p.title+". "+p.about))
	for _, t := range ticks {
		fmt.Fprintf(&b, `<line class="grid" x1="%g" x2="%g" y1="%.1f" y2="%.1f"/>`, leftEdge, plotWidth-rightEdge, py(t),
			py(t))
		fmt.Fprintf(&b, `<text class="tick" x="%g" y="%.1f" text-anchor="end">%s</text>`, leftEdge-8, py(t)+4,
			escape(short(t)+p.unit))
	}
	times := timeTicks(from, to)
	for _, t := range times {
		fmt.Fprintf(&b, `<text class="tick" x="%.1f" y="%g" text-anchor="%s">%s</text>`, px(t), plotHeight-12,
			anchor(t, p.window), escape(w.tick(t, times)))
	}
	for _, c := range p.curves {
		c.draw(&b, px, py)
	}
	fmt.Fprintf(&b, `<line class="axis" x1="%g" x2="%g" y1="%.1f" y2="%.1f"/></svg>`, leftEdge, plotWidth-rightEdge, py(0),
		py(0))
	return inline(&b)
}

// anchor keeps the outermost labels inside the diagram.
func anchor(t float64, p window) string {
	switch {
	case t <= p.from:
		return "start"
	case t >= p.to:
		return "end"
	}
	return "middle"
}

func (c curve) draw(b *strings.Builder, px, py func(float64) float64) {
	if len(c.x) == 0 {
		return
	}
	var path strings.Builder
	for i := range c.x {
		x, y := px(c.x[i]), py(c.y[i])
		switch {
		case i == 0:
			fmt.Fprintf(&path, "M%.1f %.1f", x, y)
		case c.step:
			fmt.Fprintf(&path, "H%.1fV%.1f", x, y)
		default:
			fmt.Fprintf(&path, "L%.1f %.1f", x, y)
		}
	}
	if c.area {
		fmt.Fprintf(b, `<path class="area %s" d="%sV%.1fH%.1fZ"/>`, c.class, path.String(), py(0), px(c.x[0]))
	}
	fmt.Fprintf(b, `<path class="line %s" d="%s"/>`, c.class, path.String())
	if c.step || len(c.x) > maxDots {
		return
	}
	for i := range c.x {
		fmt.Fprintf(b, `<circle class="dot %s" cx="%.1f" cy="%.1f" r="2.5"/>`, c.class, px(c.x[i]), py(c.y[i]))
	}
}

// bar is one line of a bar chart.
type bar struct {
	label string
	value int64
}

// drawBars returns a bar chart as inline SVG.
func drawBars(title string, bars []bar) template.HTML {
	most := int64(1)
	for _, r := range bars {
		most = max(most, r.value)
	}
	height := float64(len(bars))*(barHeight+barGap) + barGap
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %g %g" role="img" aria-label="%s">`, wide, height, escape(title))
	for i, r := range bars {
		y := barGap + float64(i)*(barHeight+barGap)
		length := max(2.0, float64(r.value)/float64(most)*(wide-barLabel-110))
		fmt.Fprintf(&b, `<text class="label" x="%g" y="%.1f" text-anchor="end">%s</text>`, barLabel-10, y+barHeight-6,
			escape(r.label))
		fmt.Fprintf(&b, `<rect class="bar" x="%g" y="%.1f" width="%.1f" height="%g" rx="2"/>`, barLabel, y, length, barHeight)
		fmt.Fprintf(&b, `<text class="value" x="%.1f" y="%.1f">%s</text>`, barLabel+length+8, y+barHeight-6, grouped(r.value))
	}
	b.WriteString(`</svg>`)
	return inline(&b)
}

// inline returns markup that was built here of numbers and escaped text.
func inline(b *strings.Builder) template.HTML { return template.HTML(b.String()) } //nolint:gosec // see above

func escape(text string) string { return template.HTMLEscapeString(text) }

// niceTicks returns round numbers from 0 to at least top.
func niceTicks(top float64, whole bool) []float64 {
	if top <= 0 {
		return []float64{0, 1}
	}
	step := niceStep(top / 5)
	if whole {
		step = max(1, step)
	}
	ticks := []float64{0}
	for t := step; ticks[len(ticks)-1] < top; t += step {
		ticks = append(ticks, t)
	}
	return ticks
}

// niceStep returns 1, 2 or 5 times a power of ten, at least least.
func niceStep(least float64) float64 {
	base := math.Pow(10, math.Floor(math.Log10(least)))
	for _, f := range []float64{1, 2, 5} {
		if f*base >= least {
			return f * base
		}
	}
	return 10 * base
}

// timeSteps are the steps of a time axis, in milliseconds.
var timeSteps = []float64{
	1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 10e3, 15e3, 30e3, 60e3, 120e3, 300e3, 600e3, 900e3, 1800e3,
	3600e3, 7200e3, 10800e3, 21600e3, 43200e3, 86400e3,
}

func timeTicks(from, to float64) []float64 {
	step := timeSteps[len(timeSteps)-1]
	for _, s := range timeSteps {
		if (to-from)/s <= 8 {
			step = s
			break
		}
	}
	var ticks []float64
	for t := math.Ceil(from/step) * step; t <= to && len(ticks) < 50; t += step {
		ticks = append(ticks, t)
	}
	return ticks
}

// tick returns the label of a time tick: a duration or, for ticks that are less than a
// minute apart, minutes and seconds where seconds alone are hard to read.
func (w words) tick(t float64, all []float64) string {
	const second, minute = 1000.0, 60_000.0
	apart := math.Mod(all[len(all)-1]-all[0], minute) != 0 || len(all) > 1 && all[1]-all[0] < minute
	if t < 2*minute || !apart {
		return w.lasts(t)
	}
	d := time.Duration(t * float64(time.Millisecond)).Truncate(time.Second)
	text := fmt.Sprintf("%d:%02d", int(d.Minutes())%60, int(d.Seconds())%60)
	if d >= time.Hour {
		text = fmt.Sprintf("%d:%02d:%02d", int(d.Hours()), int(d.Minutes())%60, int(d.Seconds())%60)
	}
	if rest := math.Mod(t, second); rest > 0 {
		text += strings.TrimPrefix(strconv.FormatFloat(rest/second, 'f', -1, 64), "0")
	}
	return text
}

// lasts formats milliseconds as a duration.
func lasts(ms float64) string { return words{}.lasts(ms) }

// lasting returns a duration as a number and its unit; 0 has none.
func lasting(ms float64) (string, text) {
	d := time.Duration(math.Abs(ms) * float64(time.Millisecond))
	sign := ""
	if ms < 0 {
		sign = "−"
	}
	number := func(v float64) string { return sign + strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64) }
	switch {
	case d == 0:
		return "0", text{}
	case d < 10*time.Microsecond:
		return "0.01", milliseconds
	case d < 10*time.Millisecond:
		return number(float64(d.Microseconds()) / 1000), milliseconds
	case d < time.Second:
		return number(float64(d.Milliseconds())), milliseconds
	case d < 2*time.Minute:
		return number(d.Seconds()), seconds
	case d < 3*time.Hour:
		return number(d.Minutes()), minutes
	}
	return number(d.Hours()), hours
}

// short formats a number for an axis.
func short(v float64) string {
	switch {
	case v >= 1e6:
		return strconv.FormatFloat(v/1e6, 'f', -1, 64) + "M"
	case v >= 1e4:
		return strconv.FormatFloat(v/1e3, 'f', -1, 64) + "k"
	}
	return strconv.FormatFloat(math.Round(v*1000)/1000, 'f', -1, 64)
}

// grouped formats an integer in groups of three digits.
func grouped(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "\u202f" + text[i:]
	}
	return text
}
