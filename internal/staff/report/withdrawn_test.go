package report_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"seckill/ent"
	"seckill/internal/buy/order"
	"seckill/internal/buy/reservation"
	"seckill/internal/gate/audit"
	"seckill/internal/platform/clock"
	"seckill/internal/testenv"
)

// A refund that does not return the unit takes it off the sale: the total falls, the
// report and the audit agree.
func TestAUnitThatARefundTookOffTheSaleAddsUpInReportAndAudit(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.rush()
	before := e.build()
	rows, err := e.db.Ent.Order.Query().All(t.Context())
	e.must(err)
	keep := []bool{true, false} // off the sale, or back to stock
	for _, row := range rows {
		o := order.FromRow(row)
		if o.Status != order.Paid || len(keep) == 0 {
			continue
		}
		at := o.UpdatedAt.Add(time.Minute)
		e.must(e.db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) error {
			by := order.Actor{Kind: order.Clock}
			o, err := order.Apply(ctx, tx, order.Move{Order: o, To: order.Refunding, At: at, Entry: order.Entry{By: by, Code: order.CodeRefundAsked}})
			if err != nil {
				return err
			}
			_, err = order.Apply(ctx, tx, order.Move{
				Order: o, To: order.Refunded, At: at, KeepUnits: keep[0], Entry: order.Entry{By: by, Code: order.CodeRefunded},
			})
			return err
		}))
		keep = keep[1:]
	}
	r := e.build()
	want := before.Units
	want.Total--
	want.Remaining++
	want.Sold -= 2
	want.Returned++
	want.Withdrawn++
	if !r.Conserved || len(r.Findings) != 0 || r.Units != want {
		t.Errorf("findings %q, units %+v, want %+v", r.Findings, r.Units, want)
	}
	conn, prefix := testenv.Redis(t) // no gate: the audit compares Postgres with itself
	a := audit.Auditor{DB: e.db, Redis: conn, Keys: reservation.Keys{Prefix: prefix}, Clock: clock.System{}}
	checked, err := a.Sale(t.Context(), e.sale)
	e.must(err)
	if p := checked.Postgres; p.Total != r.Units.Total || p.Available != r.Units.Remaining || p.Held != r.Units.Held || p.Sold != r.Units.Sold {
		t.Errorf("the audit has %+v, the report %+v", p, r.Units)
	}
	for _, finding := range checked.Findings {
		if !strings.Contains(finding, "not paid exactly once") && !strings.Contains(finding, "no gate in Redis") { // the test writes no payments and no gate
			t.Errorf("audit: %s", finding)
		}
	}
}
