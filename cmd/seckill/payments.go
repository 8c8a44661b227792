package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"seckill/internal/app"
	"seckill/internal/pay/payment"
	"seckill/internal/platform/config"
	"seckill/internal/platform/money"
)

type paymentsCmd struct {
	Reconcile paymentsReconcileCmd `cmd:"" help:"Compare the payments of a day with their provider."`
}

type paymentsReconcileCmd struct {
	Provider string    `required:"" placeholder:"NAME" help:"Option id of the provider: stripe, wechat, alipay, …"`
	Day      time.Time `required:"" format:"2006-01-02" placeholder:"YYYY-MM-DD" help:"The day, in UTC, on which the payments were begun."`
	JSON     bool      `help:"Print the result as JSON."`
}

func (paymentsReconcileCmd) Help() string {
	return "Asks the provider about each payment that was begun on the day, and compares the bill of the day, which WeChat Pay and Alipay have on the day after, by the " +
		"clock of Beijing. Money whose report was lost is settled as if it had come: it pays its order, goes back, or waits for an operator; so does money of the bill " +
		"that the shop does not know. Exit 1 when something differs. May run while sales do.\n\n" + examples(
		"seckill payments reconcile --provider stripe --day 2026-11-20",
		"seckill payments reconcile --provider wechat --day 2026-11-20 --json",
	)
}

// reconciledJSON is the result as JSON. Fields are only ever added.
type reconciledJSON struct {
	Provider string            `json:"provider"`
	Day      string            `json:"day"`
	Payments int               `json:"payments"`
	Paid     map[string]string `json:"paid"` // by currency
	Findings []findingJSON     `json:"findings"`
	Bill     *billJSON         `json:"bill,omitempty"` // of providers that have one

	FeesUnread int    `json:"feesUnread"` // payments whose fee could not be read
	FeeError   string `json:"feeError,omitempty"`
}

type billJSON struct {
	From   time.Time `json:"from"`
	Until  time.Time `json:"until"`
	Lines  int       `json:"lines"`
	Others int       `json:"others"` // of other software of the merchant
	Error  string    `json:"error,omitempty"`
}

type findingJSON struct {
	PaymentID string           `json:"paymentId"`
	OrderID   string           `json:"orderId"`
	Kind      payment.Mismatch `json:"kind"`
	Ours      string           `json:"ours"`
	Theirs    string           `json:"theirs"`
}

func (p paymentsReconcileCmd) Run(c *call) error {
	if err := c.cfg.Validate(config.NeedDatabase, config.NeedRedis, config.NeedKeys); err != nil {
		return err
	}
	found, err := app.ReconcilePayments(c.ctx, c.cfg, app.ReconcileInput{Provider: p.Provider, Day: p.Day}, silent())
	if err != nil {
		return err
	}
	out := reconciledJSON{
		Provider: p.Provider, Day: p.Day.Format(time.DateOnly), Payments: found.Payments, Paid: map[string]string{},
		Findings: []findingJSON{},
	}
	for currency, minor := range found.Paid {
		out.Paid[currency] = money.Amount{Minor: minor, Currency: currency}.Decimal()
	}
	for _, f := range found.Findings {
		out.Findings = append(out.Findings, findingJSON{f.Payment.Public(), f.Order.Public(), f.Mismatch, f.Ours, f.Theirs})
	}
	out.FeesUnread = found.FeesUnread
	if found.FeeError != nil {
		out.FeeError = found.FeeError.Error()
	}
	if b := found.Bill; b != nil {
		out.Bill = &billJSON{From: b.From, Until: b.Until, Lines: b.Lines, Others: b.Others}
		if b.Error != nil {
			out.Bill.Error = b.Error.Error()
		}
	}
	if p.JSON {
		err = printJSON(c.env.stdout, out)
	} else {
		err = printReconciled(c.env.stdout, out)
	}
	if err == nil && (len(out.Findings) > 0 || out.Bill != nil && out.Bill.Error != "") {
		return errFinding
	}
	return err
}

func printReconciled(out io.Writer, r reconciledJSON) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "provider\t%s\nday\t%s\npayments\t%d\n", r.Provider, r.Day, r.Payments)
	for _, currency := range slices.Sorted(maps.Keys(r.Paid)) {
		fmt.Fprintf(w, "paid\t%s %s\n", r.Paid[currency], currency)
	}
	if r.FeesUnread > 0 {
		fmt.Fprintf(w, "fees\tof %d payments could not be read: %s\n", r.FeesUnread, r.FeeError)
	}
	if b := r.Bill; b != nil && b.Error != "" {
		fmt.Fprintf(w, "bill\tcould not be read: %s\n", b.Error)
	} else if b != nil {
		fmt.Fprintf(w, "bill\t%d lines, %d of them of other software\n", b.Lines, b.Others)
	}
	for _, f := range r.Findings {
		fmt.Fprintf(w, "finding\t%s: payment %s of order %s is %s, at the provider %s\n", f.Kind, f.PaymentID, f.OrderID,
			f.Ours, f.Theirs)
	}
	fmt.Fprintf(w, "verdict\t%d findings\n", len(r.Findings))
	return w.Flush()
}
