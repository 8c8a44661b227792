package drill

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/guptarohit/asciigraph"
)

const (
	drawEvery  = 500 * time.Millisecond // the chart on a terminal
	printEvery = 3 * time.Second        // a line elsewhere
	points     = 100                    // of the chart: 50 s
	rows       = 8                      // of the chart
)

// display shows the progress of a drill: a chart on a terminal, lines elsewhere.
type display struct {
	out      io.Writer
	terminal bool
	crowd    *crowd
	began    time.Time

	mu     sync.Mutex
	faults map[string]int // guarded by mu
	rates  [2][]float64   // accepted and written per second
	last   Counts
	drawn  int // lines of the last chart
}

func newDisplay(out io.Writer, terminal bool, c *crowd) *display {
	return &display{out: out, terminal: terminal, crowd: c, began: time.Now(), faults: map[string]int{}}
}

func (d *display) line(format string, args ...any) {
	fmt.Fprintf(d.out, format+"\n", args...)
}

func (d *display) fault(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults[name]++
}

// run shows the progress until stop is called.
func (d *display) run() (stop func()) {
	every := printEvery
	if d.terminal {
		every = drawEvery
	}
	d.began = time.Now()
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-end:
				d.step(every)
				return
			case <-tick.C:
				d.step(every)
			}
		}
	}()
	return func() {
		close(end)
		<-ended
	}
}

// step shows the current figures.
func (d *display) step(every time.Duration) {
	now := d.crowd.counts()
	for i, n := range [2]int{now.Accepted - d.last.Accepted, now.Orders - d.last.Orders} {
		d.rates[i] = append(d.rates[i], float64(n)/every.Seconds())
		d.rates[i] = d.rates[i][max(0, len(d.rates[i])-points):]
	}
	d.last = now
	status := d.status(now)
	if !d.terminal {
		d.line("%s", status)
		return
	}
	chart := asciigraph.PlotMany([][]float64{d.rates[0], d.rates[1]}, asciigraph.Height(rows), asciigraph.Width(points),
		asciigraph.LowerBound(0), asciigraph.Precision(0),
		asciigraph.SeriesColors(asciigraph.Green, asciigraph.Blue), asciigraph.SeriesLegends("accepted per second",
			"orders written per second"))
	text := chart + "\n" + status + "\n"
	if d.drawn > 0 {
		fmt.Fprintf(d.out, "\x1b[%dA\x1b[J", d.drawn) // up, and clear to the end of the screen
	}
	_, _ = io.WriteString(d.out, text) // a closed terminal ends the command by its signal
	d.drawn = strings.Count(text, "\n")
}

func (d *display) status(c Counts) string {
	refused := 0
	for _, n := range c.Refusals {
		refused += n
	}
	text := fmt.Sprintf("%5.1f s  accepted %d, orders %d, refused %d, waited %d, retries %d", time.Since(d.began).
		Seconds(), c.Accepted, c.Orders, refused, c.Waited, c.Retries)
	d.mu.Lock()
	defer d.mu.Unlock()
	return text + named(", fault ", d.faults)
}

// named lists counts by name, each with a prefix.
func named(prefix string, counts map[string]int) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(&b, "%s%s %d", prefix, name, counts[name])
	}
	return b.String()
}

func (v *Verdict) Write(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\nsale\t%s\n", v.SaleID)
	fmt.Fprintf(w, "crowd\t%d buyers for %d units: %d accepted, %d orders in %.1f s\n", v.Buyers, v.Stock,
		v.Counts.Accepted, v.Counts.Orders, v.Took)
	fmt.Fprintf(w, "also\twaited %d, retries %d%s%s\n", v.Counts.Waited, v.Counts.Retries,
		named(", refused ", v.Counts.Refusals), named(", fault ", v.Faults))
	if v.Counts.Seeded > 0 {
		fmt.Fprintf(w, "note\t%d buyers used seeded tokens: the server limits sign-ins of one address; let it trust this one as a proxy (SECKILL_TRUSTED_PROXIES)\n", v.Counts.Seeded)
	}
	fmt.Fprintf(w, "\nlatency\tcalls\tp50\tp90\tp99\tmax\t(ms)\n")
	for _, l := range v.Latencies {
		fmt.Fprintf(w, "%s\t%d\t%.1f\t%.1f\t%.1f\t%.1f\n", l.Stage, l.Calls, l.P50, l.P90, l.P99, l.Max)
	}
	fmt.Fprintln(w)
	for _, c := range v.Checks {
		state := "holds"
		if !c.OK {
			state = "FAILS"
		}
		fmt.Fprintf(w, "%s\t%s\t%s: %s\n", c.ID, state, c.Promise, c.Figures)
	}
	verdict := "every invariant holds"
	if !v.OK {
		verdict = "an invariant does not hold"
	}
	fmt.Fprintf(w, "verdict\t%s\n", verdict)
	return w.Flush()
}
