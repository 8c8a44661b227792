package main

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
)

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
