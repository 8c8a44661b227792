package operator_test

import (
	"testing"

	"seckill/ent/salelog"
	"seckill/internal/buy/order"
	"seckill/internal/buy/sale"
	"seckill/internal/identity/person"
	"seckill/internal/staff/operator"
)

// Neither is written without the other: the table of the log is away for a while.
func TestReviewsAndTheirLineInTheLogOfTheSaleAreWrittenTogether(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *env) {
		v := e.put(sale.Live, 10)
		orders := []*order.Order{e.order(v), e.order(v), e.order(v)}
		network := person.Key("nAAAABBBBCCCCDDDD")
		run := func(statement string, values ...any) {
			t.Helper()
			_, err := e.db.SQL.ExecContext(t.Context(), statement, values...)
			e.must(err)
		}
		run("UPDATE orders SET network_key = $1", string(network))
		withoutLog := func(act func() error) {
			t.Helper()
			run("ALTER TABLE " + salelog.Table + " RENAME TO away")
			err := act()
			run("ALTER TABLE away RENAME TO " + salelog.Table)
			if err == nil {
				t.Error("an act without its line succeeds")
			}
		}
		underReview := func() (n int) {
			t.Helper()
			for _, o := range orders {
				now, err := e.orders.Reload(t.Context(), o.ID)
				e.must(err)
				if now.UnderReview() {
					n++
				}
			}
			return n
		}
		hold := operator.HoldOrdersInput{By: ann, Sale: v.ID, Cluster: network.Label(), Note: "a farm"}
		withoutLog(func() error {
			_, err := e.ops.HoldOrders(t.Context(), hold)
			return err
		})
		if n := underReview(); n != 0 {
			t.Errorf("%d orders are held without a line", n)
		}
		if done, err := e.ops.HoldOrders(t.Context(), hold); err != nil || done != (operator.Holding{Held: 3}) || underReview() != 3 {
			t.Fatalf("held %+v: %v", done, err)
		}
		lines, err := e.sales.Log(t.Context(), v.ID, 1)
		e.must(err)
		if want := `{"cluster":"` + network.Label() + `","orders":3}`; lines[0].Act != sale.ActHold || lines[0].Details != want || lines[0].Note != "a farm" {
			t.Errorf("the log has %+v, want %s", lines[0], want)
		}
		release := operator.ReleaseInput{By: bob, Order: orders[0].ID, Note: "a flat"}
		withoutLog(func() error {
			_, err := e.ops.ReleaseOrder(t.Context(), release)
			return err
		})
		if n := underReview(); n != 3 {
			t.Errorf("%d orders are held after a release without a line", n)
		}
		if o, err := e.ops.ReleaseOrder(t.Context(), release); err != nil || o.UnderReview() || underReview() != 2 {
			t.Errorf("released: %+v, %v", o, err)
		}
		if lines, err = e.sales.Log(t.Context(), v.ID, 1); err != nil || lines[0].Act != sale.ActRelease || lines[0].Revision != v.Revision+2 {
			t.Errorf("the log has %+v, %v", lines, err)
		}
	})
}
