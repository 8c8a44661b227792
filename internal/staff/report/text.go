package report

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
)

// JSON writes the report for programs.
func (r *Report) JSON(out io.Writer) error {
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	if err := enc.Encode(r); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// Text writes the report in a few lines for a terminal.
func (r *Report) Text(out io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  (%s, %s)\n", r.Title, r.SaleID, r.Status)
	fmt.Fprintf(&b, "  sold       %d of %d units, %d unpaid, %d left; sold out after %s\n",
		r.Units.Sold, r.Units.Total, r.Units.Held, r.Units.Remaining, orNever(r.Sale.SoldOutMs))
	fmt.Fprintf(&b, "  people     %d tried, %d got a unit, %d paid, %d were not refunded\n", r.People.Tried, r.People.Ordered,
		r.People.Paid, r.People.Kept)
	fmt.Fprintf(&b, "  requests   %d: %d accepted, %d replayed, %d faulted; p50 %s, p99 %s\n", r.Requests.Total,
		r.Requests.Accepted, r.Requests.Replayed, r.Requests.Faulted, lasts(r.Requests.P50Ms), lasts(r.Requests.P99Ms))
	if since := r.Requests.CountedSince; since != nil {
		fmt.Fprintf(&b, "  counted    requests since %s; Redis lost the counts before\n", since.Format(time.RFC3339))
	}
	for _, g := range r.Requests.Gate {
		if g.Calls == 0 {
			continue
		}
		fmt.Fprintf(&b, "  %-9s  %d calls: %d passed, %d queued, %d faulted\n", strings.ToLower(string(g.Stage)), g.Calls,
			g.Passed, g.Queued, g.Faulted)
		for _, f := range g.Refused {
			fmt.Fprintf(&b, "    refused  %d %s\n", f.Count, f.Reason)
		}
	}
	fmt.Fprintf(&b, "  orders     %d written, %d paid (net %s %s), %d expired, %d cancelled, %d refunded, %d tasks failed\n",
		r.Orders.Written, r.Orders.Paid, r.Orders.Net, r.Orders.Currency, r.Orders.Expired, r.Orders.Cancelled,
		r.Orders.Refunded, r.Orders.Failed)
	fmt.Fprintf(&b, "  queue      p50 %s, p99 %s, at most %s from the unit to the order\n", lasts(r.Lag.P50Ms),
		lasts(r.Lag.P99Ms), lasts(r.Lag.MaxMs))
	fmt.Fprintf(&b, "  returned   %d units, %d of them from expired orders; %d found another buyer\n", r.Units.Returned,
		r.Units.Expired, r.Units.Resold)
	if e := r.Earlier; e != nil {
		fmt.Fprintf(&b, "  earlier    %s: %d buyers (now %d), %d accepted, %d paid, net %s %s, %.1f%% sold (now %.1f%%), sold out after %s\n", e.Title, e.Buyers,
			r.Orders.Buyers, e.Accepted, e.Paid, e.Net, e.Currency, 100*e.SellThrough, 100*r.Summary.SellThrough,
			orNever(e.SoldOutMs))
	}
	people := 0
	for _, a := range r.Acts {
		if a.Actor != "" {
			people++
		}
	}
	fmt.Fprintf(&b, "  operators  %d acts; the system %d\n", people, len(r.Acts)-people)
	if r.Conserved {
		b.WriteString("  everything adds up\n")
	}
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "  DOES NOT ADD UP: %s\n", f)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func orNever(ms int64) string {
	if ms < 0 {
		return "never"
	}
	return lasts(float64(ms))
}
