package order_test

import (
	"errors"
	"testing"

	"seckill/internal/buy/order"
	"seckill/internal/testenv"
)

// A trigger that refuses every order is the server's condition: no order is blamed. One
// that refuses some orders of a batch is about these.
func TestOrdersThatAllFailAlikeAreNotBlamed(t *testing.T) {
	t.Parallel()
	e := setup(t, stock{units: 50, limit: 1})
	w := e.writer(nil)
	spoil := func(when string) (cure func()) {
		for _, text := range []string{
			`CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'refused'; END $$`,
			`CREATE TRIGGER refuse BEFORE INSERT ON orders FOR EACH ROW ` + when + ` EXECUTE FUNCTION refuse()`,
		} {
			_, err := e.db.SQL.ExecContext(t.Context(), text)
			e.must(err)
		}
		return func() {
			_, err := e.db.SQL.ExecContext(t.Context(), `DROP TRIGGER refuse ON orders`)
			e.must(err)
		}
	}
	failures := func(requests []order.Request) (transient, own int) {
		for _, r := range w.Write(t.Context(), requests...) {
			switch {
			case r.Err != nil && order.IsTransient(r.Err):
				transient++
			case r.Err != nil:
				own++
			}
		}
		return transient, own
	}
	all := e.requests(20)
	cure := spoil("")
	if transient, own := failures(all); transient != 20 || own != 0 {
		t.Errorf("all refused: %d transient, %d of their own", transient, own)
	}
	if transient, own := failures(all[:1]); transient != 0 || own != 1 {
		t.Errorf("one alone: %d transient, %d of its own", transient, own)
	}
	cure()
	cure = spoil(`WHEN (NEW.user_id = '` + all[3].User.String() + `')`)
	if transient, own := failures(all); transient != 0 || own != 1 {
		t.Errorf("one of 20 refused: %d transient, %d of their own", transient, own)
	}
	cure()
	if transient, own := failures(all); transient+own != 0 || e.orders() != 20 {
		t.Errorf("%d transient, %d of their own, %d orders after the cure", transient, own, e.orders())
	}
	testenv.RecordFault(t, testenv.FaultRow{Fault: "Postgres refuses every order, then recovers", Accepted: len(all), Stored: e.orders()})
	old := e.requests(20)
	for i := range old {
		old[i].SubmittedAtMs -= 3_600_000
	}
	defer spoil("")()
	if transient, own := failures(old); transient != 0 || own != 20 {
		t.Errorf("an hour old: %d transient, %d of their own", transient, own)
	}
	if end := w.Write(t.Context(), old[0])[0]; end.Err == nil || errors.Is(end.Err, order.ErrSuperseded) {
		t.Errorf("a refused order: %v", end.Err)
	}
}
