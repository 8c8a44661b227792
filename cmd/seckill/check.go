package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"text/tabwriter"
	"time"

	"seckill/internal/app"
	"seckill/internal/gate/audit"
	"seckill/internal/gate/recordloss"
	"seckill/internal/ops/doctor"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/config"
)

type auditCmd struct {
	Sale string `required:"" xor:"which" placeholder:"ID" help:"The sale: sal_…"`
	All  bool   `required:"" xor:"which" help:"Check every sale except drafts, submitted and rejected ones, one after the other."`
	JSON bool   `help:"Print {saleId,ok,findings,notes,postgres,redis,stream}, one line for each sale with --all."`
}

func (auditCmd) Help() string {
	return "Compares the record of stock with the orders, the ledger, the gate in Redis and the messages in between. " +
		"Exit 1 when something does not add up. Changes nothing, and may run while the sale does.\n\n" + examples(
		"seckill audit --sale sal_01jd8z3q4vftn8r2m5w6x7y8z9",
		"seckill audit --sale sal_01jd8z3q4vftn8r2m5w6x7y8z9 --json",
		"seckill audit --all",
	)
}

// Run audits a sale, or all of them.
func (a auditCmd) Run(c *call) error {
	if a.All {
		return a.runAll(c)
	}
	sale, err := saleOf(c, a.Sale, config.NeedDatabase, config.NeedRedis)
	if err != nil {
		return err
	}
	report, err := app.Audit(c.ctx, c.cfg, sale)
	if err != nil {
		return err
	}
	if a.JSON {
		err = printJSON(c.env.stdout, report)
	} else {
		err = printReport(c.env.stdout, report)
	}
	if err == nil && !report.OK {
		return errFinding
	}
	return err
}

func (a auditCmd) runAll(c *call) error {
	if err := c.cfg.Validate(config.NeedDatabase, config.NeedRedis); err != nil {
		return err
	}
	ok := true
	out := json.NewEncoder(c.env.stdout)
	err := app.AuditAll(c.ctx, c.cfg, func(r *audit.Report) error {
		ok = ok && r.OK
		if a.JSON {
			return out.Encode(r)
		}
		return printReport(c.env.stdout, r)
	})
	if err == nil && !ok {
		return errFinding
	}
	return err
}

func printReport(out io.Writer, r *audit.Report) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "sale\t%s\n", r.SaleID)
	fmt.Fprintf(w, "postgres\ttotal %d = available %d + held %d + sold %d; live orders %d\n",
		r.Postgres.Total, r.Postgres.Available, r.Postgres.Held, r.Postgres.Sold, r.Postgres.Orders)
	fmt.Fprintf(w, "redis\tstock %d, reserved %d\n", r.Redis.Stock, r.Redis.Reserved)
	fmt.Fprintf(w, "stream\tunread %d, pending %d, set aside %d\n", r.Stream.Unread, r.Stream.Pending, r.Stream.Dead)
	for _, finding := range r.Findings {
		fmt.Fprintf(w, "finding\t%s\n", finding)
	}
	for _, note := range r.Notes {
		fmt.Fprintf(w, "note\t%s\n", note)
	}
	if r.OK {
		fmt.Fprintf(w, "verdict\tit adds up\n")
	} else {
		fmt.Fprintf(w, "verdict\tit does not add up: %d findings\n", len(r.Findings))
	}
	return w.Flush()
}

type doctorCmd struct {
	JSON         bool `help:"Print JSON: {ok,findings}, or {lostAt,recovered,concerns} with --after-restore."`
	AfterRestore bool `help:"List the orders and payments that Postgres lost in a failover or a restore, instead of the checks."`
}

func (doctorCmd) Help() string {
	return "Looks at the settings, Postgres (version, durability, migrations), Redis (version, eviction, persistence) " +
		"and the clocks of all three. Exit 1 when something must be fixed.\n\n" +
		"With --after-restore it compares the copies in Redis with Postgres, and lists the orders, tasks and payments that a failover or a " +
		"restore concerns. Exit 1 when there are any.\n\n" +
		examples("seckill doctor", "seckill doctor --json", "seckill doctor --after-restore")
}

func (d doctorCmd) Run(c *call) error {
	if d.AfterRestore {
		return d.afterRestore(c)
	}
	findings := doctor.Check(c.ctx, doctor.Deps{Config: c.cfg, Fit: func() error { return app.Fit(c.cfg, roles) },
		Settings: c.settings, Environ: c.env.environ, Former: c.former, Timeout: c.cfg.RequestTimeout, Clock: clock.System{}})
	write := doctor.WriteTable
	if d.JSON {
		write = doctor.WriteJSON
	}
	if err := write(c.env.stdout, findings); err != nil {
		return err
	}
	if !doctor.Healthy(findings) {
		return errFinding
	}
	return nil
}

// afterRestore lists what a loss of commits by Postgres concerns.
func (d doctorCmd) afterRestore(c *call) error {
	report, err := app.AfterRestore(c.ctx, c.cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	if d.JSON {
		e := json.NewEncoder(c.env.stdout)
		e.SetIndent("", "  ")
		err = e.Encode(report)
	} else {
		err = printLoss(c.env.stdout, report)
	}
	if err == nil && len(report.Concerns) > 0 {
		err = errFinding
	}
	return err
}

func printLoss(out io.Writer, report *recordloss.Report) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	switch {
	case report.LostAt == nil:
		fmt.Fprintln(w, "noticed\tno loss of commits")
	case report.Recovered:
		fmt.Fprintf(w, "noticed\tat %s; gates and copies follow Postgres again\n", report.LostAt.Format(time.RFC3339))
	default:
		fmt.Fprintf(w, "noticed\tat %s; gates and copies do not follow Postgres yet\n", report.LostAt.Format(time.RFC3339))
	}
	for _, o := range report.Concerns {
		fmt.Fprintf(w, "%s\t%s\t%s\tsale %s\tuser %s\tseen %s\tPostgres %s\n",
			o.What, cmp.Or(o.Order, o.Task, o.Payment), o.Task, cmp.Or(o.Sale, "-"), cmp.Or(o.User, "-"), cmp.Or(o.Copy, "-"),
			cmp.Or(o.Record, "-"))
	}
	fmt.Fprintf(w, "concerned\t%d; compare the money too: seckill payments reconcile\n", len(report.Concerns))
	return w.Flush()
}
