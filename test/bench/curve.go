package main

import (
	"bytes"
	"fmt"
	"math"
	"time"
)

// Size of a curve in pixels.
const (
	curveWidth, curveHeight = 640, 260
	curveLeft, curveRight   = 60, 60
	curveTop, curveBottom   = 30, 45
)

// scale maps values to pixels.
type scale struct{ most, from, to float64 }

func (s scale) at(v float64) float64 { return s.from + (s.to-s.from)*v/s.most }

// curve draws orders per second and the p99 latency over the values of an axis, in equal
// steps: the values grow by factors.
func curve(a axis) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" font-family="sans-serif" font-size="12">`+"\n", curveWidth, curveHeight)
	fmt.Fprintf(&b, "<title>Orders per second and p99 latency by %s</title>\n", a.Title)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#fff"/>`+"\n", curveWidth, curveHeight)
	bottom := float64(curveHeight - curveBottom)
	step := 0.0
	if len(a.Points) > 1 {
		step = float64(curveWidth-curveLeft-curveRight) / float64(len(a.Points)-1)
	}
	for i, p := range a.Points {
		x := curveLeft + step*float64(i)
		fmt.Fprintf(&b, `<line x1="%.0f" y1="%d" x2="%.0f" y2="%.0f" stroke="#ddd"/><text x="%.0f" y="%.0f" text-anchor="middle">%s</text>`+"\n",
			x, curveTop, x, bottom, x, bottom+16, thousands(p.At))
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="middle">%s</text>`+"\n", curveWidth/2, curveHeight-8, a.Title)
	series{"orders/s", "#0b57d0", curveLeft - 8, "end", func(p point) float64 { return p.Rate }}.draw(&b, a.Points, step)
	series{"p99 ms", "#b3261e", curveWidth - curveRight + 8, "start", func(p point) float64 { return p.P99 }}.draw(&b,
		a.Points, step)
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// series is one line with an axis of its own that begins at zero.
type series struct {
	unit, colour string
	labels       int    // position of the labels of its axis
	anchor       string // of the labels
	of           func(point) float64
}

// draw draws the line, with points at equal steps.
func (l series) draw(b *bytes.Buffer, points []point, step float64) {
	most := 0.0
	for _, p := range points {
		most = max(most, l.of(p))
	}
	s := scale{nice(most), float64(curveHeight - curveBottom), curveTop}
	for _, part := range []float64{0, 0.5, 1} {
		fmt.Fprintf(b, `<text x="%d" y="%.0f" text-anchor="%s" fill="%s">%s</text>`+"\n", l.labels, s.at(part*s.most)+4,
			l.anchor, l.colour, label(part*s.most))
	}
	fmt.Fprintf(b, `<text x="%d" y="14" text-anchor="%s" fill="%s">%s</text>`+"\n", l.labels, l.anchor, l.colour, l.unit)
	fmt.Fprintf(b, `<polyline fill="none" stroke="%s" stroke-width="2" points="`, l.colour)
	for i, p := range points {
		fmt.Fprintf(b, "%.1f,%.1f ", curveLeft+step*float64(i), s.at(l.of(p)))
	}
	b.WriteString(`"/>` + "\n")
	for i, p := range points {
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"><title>%s: %s %s</title></circle>`+"\n",
			curveLeft+step*float64(i), s.at(l.of(p)), l.colour, thousands(p.At), label(l.of(p)), l.unit)
	}
}

// nice returns the next round number: 1, 2 or 5 times a power of ten.
func nice(v float64) float64 {
	if v <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, f := range []float64{1, 2, 5} {
		if v <= f*power {
			return f * power
		}
	}
	return 10 * power
}

func label(v float64) string {
	if v >= 100 || v == math.Trunc(v) {
		return thousands(int(math.Round(v)))
	}
	return fmt.Sprintf("%.1f", v)
}

// thousands separates groups of digits with commas.
func thousands(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// growthPage returns the page with all curves and one sentence for each.
func growthPage(done []axis, at time.Time) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `# Growth

Orders per second and p99 latency of `+"`placeOrder`"+` while one quantity grows; written by `+"`make growth`"+` (method: [performance](performance.md)), %s.
Each point is an installation of its own: %d connections, three parts, medians of the parts. CPU time of the server per order is the steadiest figure on a
machine that other work shares.
`, at.UTC().Format(time.DateOnly), growthConnections)
	for _, a := range done {
		if len(a.Points) == 0 {
			continue
		}
		if a.draw != nil {
			writeDraws(&b, a)
			continue
		}
		first, last := a.Points[0], a.Points[len(a.Points)-1]
		fmt.Fprintf(&b, "\n## %s%s\n\n![Orders per second and p99 latency by %s](growth/%s.svg)\n\n",
			string(a.Title[0]-'a'+'A'), a.Title[1:], a.Title, a.Name)
		fmt.Fprintf(&b, "From %s to %s: %s to %s orders/s, p99 %.1f to %.1f ms, %.0f to %.0f µs of the server per order. %s\n",
			thousands(first.At), thousands(last.At), label(first.Rate), label(last.Rate), first.P99, last.P99, first.CPU,
			last.CPU, remarks[a.Name])
	}
	return b.Bytes()
}

// remarks say what a curve shows beside its figures.
var remarks = map[string]string{
	"stock":     "Where the stock is smaller than the orders, most answers are sold-out refusals from memory, which are cheaper.",
	"buyers":    "Where buyers are fewer than orders, they repeat theirs with the same key and get the same task.",
	"crowd":     "Here an order is all that a buyer asks for, from the captcha on; the p99 latency is that of `placeOrder` alone. Most get no unit.",
	"sales":     "At most ten of them take the orders. A call of the script serves one item, so that its batches are smaller with ten.",
	"old-sales": "A change of a sale reads the active sales only.",
	"sockets":   "Each socket receives the stock at most twice a second; the generator, which reads them all, and the server share two cores.",
	"backlog":   "No worker runs. The orders are taken in and wait.",
	"orders":    "The rows are of an earlier sale.",
}
