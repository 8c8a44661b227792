package system_test

import (
	"testing"

	"github.com/google/uuid"

	"seckill/internal/gate/audit"
	"seckill/internal/ops/seed"
	"seckill/internal/testenv"
)

// killedUnit is a moment in the refund of one unit at which the process is killed.
type killedUnit struct {
	name string
	// statement is the text with which the statement to hold begins.
	statement string
}

// killedUnits returns the moments that all refunds of units have.
func killedUnits(first ...killedUnit) []killedUnit {
	return append(first,
		killedUnit{"after the provider has refunded a unit, before it is noted", `UPDATE "payments"`},
		killedUnit{"before the refunded unit moves", `INSERT INTO "stock_movements"`},
		killedUnit{"before the refund of a unit is written", `INSERT INTO "refunds"`},
		killedUnit{"before the provider has the refund of a unit", `UPDATE "sandbox_charges"`},
		killedUnit{"after the gate has the refunded unit, before it is noted", `UPDATE "orders" SET "return_due"`},
	)
}

// One order is refunded unit by unit, so that each point costs a kill and no purchase. The
// sums after each kill contain the refunds before it: one that was made twice would show.
func TestAProcessKilledInsideAPartialRefundReturnsMoneyAndUnitsOnce(t *testing.T) {
	t.Parallel()
	for name, way := range map[string]struct {
		points []killedUnit
		refund func(*payingBuyer, string) // by its idempotency key
	}{
		"requested by the buyer": {killedUnits(killedUnit{"before the decision about a unit is recorded", `UPDATE "refunds"`}), (*payingBuyer).askUnit},
		"voided by the shop": {killedUnits(
			killedUnit{"before the confirmation of a void is recorded", `UPDATE "interventions" SET "state" = $1, "decided_by"`},
			killedUnit{"before the void of a unit is in the log of its sale", `INSERT INTO "sale_logs"`},
		), (*payingBuyer).voidUnit},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			points := atMost(killsPerTest, way.points)
			units := len(points) + 1 // one is left
			p := s.payingBuyer(seed.Input{Users: 1, Stock: units, PurchaseLimit: units})
			p.second = s.staff("second@example.com", "OPERATOR")
			p.order = s.paid(p.token, p.boughtUnits(units))
			for i, point := range points {
				key := uuid.NewString()
				p.killAt(point.statement, func() { way.refund(p, key) })
				p.wantUnits(point.name, i+1, units)
			}
		})
	}
}

// boughtUnits buys units and returns the task.
func (p *payingBuyer) boughtUnits(units int) (task string) {
	p.t.Helper()
	testenv.Eventually(p.t, patience, func() bool {
		challenge, right := p.captcha(p.token, p.made.SaleID)
		path, why := p.path(p.token, p.made.ItemID, challenge, right)
		if why != "" {
			return false
		}
		in := order(p.made.ItemID, path)
		in["quantity"] = units
		placed, err := p.place(p.token, in)
		if err == nil && placed.why() == "" {
			task = placed.OrderTask.ID
		}
		return task != ""
	}, "the units are bought")
	return task
}

// asked repeats a document until it is answered without an error.
func (p *payingBuyer) asked(token, document string, variables map[string]any) (out answer) {
	p.t.Helper()
	testenv.Eventually(p.t, testenv.Wait, func() bool {
		var err error
		out, err = p.try(token, document, variables)
		return err == nil && out.code() == ""
	}, "an answer to "+document)
	return out
}

// refundedUnits returns the status of the order and the units of it that were refunded.
func (p *payingBuyer) refundedUnits() (status string, units int) {
	p.t.Helper()
	var data struct {
		Order struct {
			Status           string
			RefundedQuantity int
		}
	}
	p.asked(p.token, `query($o: ID!) { order(by: { id: $o }) { status refundedQuantity } }`, map[string]any{"o": p.order}).into(p.t, &data)
	return data.Order.Status, data.Order.RefundedQuantity
}

// oneMore runs what refunds one unit, and waits until one more is refunded.
func (p *payingBuyer) oneMore(refund func()) {
	p.t.Helper()
	_, before := p.refundedUnits()
	refund()
	testenv.Eventually(p.t, testenv.Wait, func() bool {
		status, units := p.refundedUnits()
		return status == "PAID" && units > before
	}, "a unit is refunded")
}

// askUnit asks for the refund of a unit and approves it.
func (p *payingBuyer) askUnit(key string) {
	p.t.Helper()
	p.oneMore(func() {
		p.asked(p.token, `mutation($o: ID!, $k: String!) { requestRefund(input: {orderId: $o, quantity: 1, reason: "one is enough", idempotencyKey: $k}) { userErrors { code } } }`,
			map[string]any{"o": p.order, "k": key})
		var data struct {
			Refunds struct{ Edges []struct{ Node listedRefund } }
		}
		p.asked(p.operator, `{ refunds(filter: {states: [REQUESTED]}) { edges { node { id } } } }`, nil).into(p.t, &data)
		for _, e := range data.Refunds.Edges {
			p.asked(p.operator, `mutation($r: ID!) { decideRefund(input: {refundId: $r, approve: true}) { userErrors { code } } }`, map[string]any{"r": e.Node.ID})
		}
	})
}

// voidUnit asks for the void of a unit, confirms it as a second person, and waits for it.
func (p *payingBuyer) voidUnit(string) {
	p.t.Helper()
	p.oneMore(p.void)
}

// void asks for the void of a unit and confirms it as a second person.
func (p *payingBuyer) void() {
	p.t.Helper()
	var data struct {
		VoidOrder struct{ Intervention *struct{ ID, State string } }
	}
	testenv.Eventually(p.t, testenv.Wait, func() bool { // the void before may not be in the log of the sale yet
		p.asked(p.operator, `mutation($o: ID!) { voidOrder(input: {orderId: $o, quantity: 1, note: "cracked"}) { intervention { id state } userErrors { code } } }`,
			map[string]any{"o": p.order}).into(p.t, &data)
		return data.VoidOrder.Intervention != nil && data.VoidOrder.Intervention.State == "REQUESTED"
	}, "the void of a unit waits for a second person")
	p.asked(p.second, `mutation($i: ID!) { decideIntervention(input: {interventionId: $i, confirm: true}) { userErrors { code } } }`,
		map[string]any{"i": data.VoidOrder.Intervention.ID})
}

// wantUnits compares the order, the ledger of the bank, ours and the stock after the
// refund of some units, and records the fault.
func (p *payingBuyer) wantUnits(fault string, refunded, total int) {
	p.t.Helper()
	if status, units := p.refundedUnits(); status != "PAID" || units != refunded {
		p.t.Errorf("%s: the order is %s, %d units of it are refunded, want %d", fault, status, units, refunded)
	}
	var report *audit.Report
	testenv.Eventually(p.t, testenv.Wait, func() bool {
		report = p.look(p.made.SaleID)
		return report.Redis.Stock == refunded
	}, "the units are on sale again")
	var paid, back, sums, refunds int
	err := p.books.SQL.QueryRowContext(p.t.Context(), `SELECT (SELECT sum(amount_minor) FROM sandbox_charges WHERE status = 'PAID'),
		(SELECT sum(refunded_minor) FROM sandbox_charges), (SELECT sum(amount_minor) FROM refunds WHERE status = 'SUCCEEDED'),
		(SELECT count(*) FROM refunds WHERE quantity = 1)`).Scan(&paid, &back, &sums, &refunds)
	if err != nil || back*total != paid*refunded || sums != back || refunds != refunded {
		p.t.Errorf("%s: of %d for %d units the bank gave %d back, and %d are recorded in %d refunds; want %d units (%v)", fault, paid, total, back, sums, refunds, refunded, err)
	}
	if got := report.Postgres; !report.OK || got.Available != refunded || got.Sold != total-refunded || report.Redis.Reserved != total-refunded {
		p.t.Errorf("%s: Postgres has %+v, Redis %+v: %q", fault, got, report.Redis, report.Findings)
	}
	testenv.RecordFault(p.t, testenv.FaultRow{
		Fault: "process killed " + fault, Accepted: 1, Stored: report.Postgres.Orders, LostUnits: lostUnits(report), Recovery: p.recovery,
	})
}
