package report_test

import (
	"bytes"
	"context"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"seckill/ent"
	"seckill/internal/buy/salestats"
	"seckill/internal/staff/report"
)

// buy writes orders at even distances, the first some time after the opening, and counts
// their requests.
func (e *env) buy(orders int, first, apart time.Duration) {
	e.t.Helper()
	e.must(e.db.WithTx(e.t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		for i := range orders {
			at := e.opens.Add(first + time.Duration(i)*apart)
			if _, err := e.order(ctx, tx, at, time.Duration(20+i%7)*time.Millisecond); err != nil {
				return err
			}
		}
		return nil
	}))
	e.clock.Advance(first)
	for range orders {
		e.count.Placed(salestats.Placement{Sale: e.sale, Took: time.Millisecond})
		e.must(e.count.Flush(e.t.Context()))
		e.clock.Advance(apart)
	}
}

var (
	figures = regexp.MustCompile(`(?s)<svg[^>]*role="img".*?</svg>`)
	lines   = regexp.MustCompile(`<path class="line \w" d="([^"]*)"`)
	steps   = regexp.MustCompile(`([MLHV])([\d.-]+)(?: ([\d.-]+))?`)
	labels  = regexp.MustCompile(`<text class="tick"[^>]*>([^<]*)</text>`)
)

// drawn returns which share of a chart's width, in percent, has values above 0, and which
// share of its height they reach.
func drawn(t *testing.T, chart string) (width, height float64) {
	t.Helper()
	const left, right, top, bottom = 64.0, 704.0, 14.0, 216.0
	from, to, highest := right, left, bottom
	for _, path := range lines.FindAllStringSubmatch(chart, -1) {
		x, y := 0.0, bottom
		for _, step := range steps.FindAllStringSubmatch(path[1], -1) {
			a, err := strconv.ParseFloat(step[2], 64)
			if err != nil {
				t.Fatal(err)
			}
			was, high := x, y
			switch step[1] {
			case "H":
				x = a
			case "V":
				y = a
			default:
				x = a
				if y, err = strconv.ParseFloat(step[3], 64); err != nil {
					t.Fatal(err)
				}
			}
			if min(y, high) < bottom && was > 0 {
				from, to, highest = min(from, was), max(to, x), min(highest, y)
			}
		}
	}
	return 100 * max(0, to-from) / (right - left), 100 * (bottom - highest) / (bottom - top)
}

// The windows of charts follow the data: a few orders in some seconds, long after the
// opening, or a sale of an hour.
func TestNoChartIsBlank(t *testing.T) {
	t.Parallel()
	for name, sale := range map[string]struct {
		orders       int
		first, apart time.Duration
	}{
		"11 orders in a few seconds": {11, 300 * time.Second, 400 * time.Millisecond},
		"11 orders at the opening":   {11, 0, 100 * time.Millisecond},
		"one order":                  {1, 40 * time.Minute, time.Second},
		"an hour":                    {360, 3 * time.Second, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := setup(t)
			e.buy(sale.orders, sale.first, sale.apart)
			var page bytes.Buffer
			e.must(e.build().HTML(&page, report.Reader{}))
			charts := figures.FindAllString(page.String(), -1)
			if len(charts) < 4 {
				t.Fatalf("%d charts", len(charts))
			}
			for _, chart := range charts {
				title, _, _ := strings.Cut(chart[strings.Index(chart, "aria-label"):], ".")
				if strings.Contains(chart, "circle") {
					continue
				}
				if width, height := drawn(t, chart); width < 20 || height < 20 {
					t.Errorf("%s: %.0f %% of the width and %.0f %% of the height", title, width, height)
				}
				seen := map[string]bool{}
				for _, tick := range labels.FindAllStringSubmatch(chart, -1) {
					if seen[tick[1]] && tick[1] != "0" {
						t.Errorf("%s: the tick %s is there twice", title, tick[1])
					}
					seen[tick[1]] = true
					if strings.Contains(tick[1], ".") && !strings.Contains(tick[1], ":") && !strings.HasSuffix(tick[1], "s") && !strings.Contains(title, "per second") {
						t.Errorf("%s: the tick %s is not a whole number", title, tick[1])
					}
				}
			}
		})
	}
}
