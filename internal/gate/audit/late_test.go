package audit_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"seckill/ent"
	entpayment "seckill/ent/payment"
	"seckill/internal/buy/order"
	"seckill/internal/buy/reservation"
	"seckill/internal/pay/payment"
	"seckill/internal/platform/id"
	"seckill/internal/testdb"
)

// lateReservation expires the first order and reserves its units again, as a late payment does
// before its transaction. It returns the event of the payment.
func (w *world) lateReservation() (event func(state string)) {
	w.Helper()
	w.buy(1)
	w.work(1)
	gate := reservation.NewGate(reservation.GateConfig{Client: w.redis.Script, Keys: w.keys})
	ref := reservation.Ref{Sale: w.sale, Item: w.item, User: w.users[0], Task: w.tasks[0]}
	w.move(0, order.Expired, nil, false)
	_, err := gate.Release(w.Context(), ref)
	w.must(err)
	w.returned()
	ref.Task = payment.LateReservation(id.Order(w.tasks[0]))
	got, err := gate.Reacquire(w.Context(), reservation.Reacquire{Ref: ref, Before: id.Order(w.tasks[0]), Quantity: 1})
	if err != nil || got.Code != reservation.Reacquired {
		w.Fatalf("%+v %v", got, err)
	}
	p := w.pay(0, entpayment.StatusCLOSED, time.Now().Add(time.Minute))
	row := id.New[id.Held]()
	w.update(func(ctx context.Context, tx *ent.Tx) error {
		now := time.Now()
		return tx.PaymentEvent.Create().SetID(row).SetProvider("bank").SetEventID(row.String()).SetPaymentID(p).SetKind("SUCCEEDED").
			SetTransaction("T").SetAmountMinor(69900).SetCurrency("CNY").SetState("RECEIVED").SetTryAt(now).SetHappenedAt(now).SetCreatedAt(now).Exec(ctx)
	})
	return func(state string) {
		w.update(func(ctx context.Context, tx *ent.Tx) error {
			return tx.PaymentEvent.UpdateOneID(row).SetState("HANDLED").SetOutcome(state).Exec(ctx)
		})
	}
}

// The units are reserved in Redis, and the transaction that pays the order is open: sent
// again as an order of its own, the buyer would have two, and the money would go back.
func TestTheUnitsOfALatePaymentAreNotLostWhileItsTransactionIsOpen(t *testing.T) {
	t.Parallel()
	w := setup(t, testdb.Postgres(t))
	w.lateReservation()
	applied, commit, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- w.db.WithTx(context.Background(), func(ctx context.Context, tx *ent.Tx) error {
			row, err := tx.Order.Get(ctx, id.Order(w.tasks[0]))
			if err != nil {
				return err
			}
			reserved := payment.LateReservation(row.ID)
			_, err = order.Apply(ctx, tx, order.Move{
				Order: order.FromRow(row), To: order.Paid, At: time.Now(), NewReservation: &reserved,
				Entry: order.Entry{By: order.Actor{Kind: order.Provider}, Code: order.CodePaidLate},
			})
			close(applied)
			<-commit
			return err
		})
	}()
	<-applied
	report := w.audit()
	close(commit)
	w.must(<-ended)
	if !report.OK || len(report.Lost) > 0 {
		t.Errorf("while the transaction is open: %q, lost %v", report.Findings, report.Lost)
	}
}

// Nothing will use the units: a rebuild of the gate frees them.
func TestTheUnitsOfALatePaymentThatEndedOtherwiseAreFoundAndNotSentAgain(t *testing.T) {
	t.Parallel()
	w := setup(t, testdb.Postgres(t))
	settle := w.lateReservation()
	settle("refund begun: the order had ended")
	report := w.audit()
	if found := strings.Join(report.Findings, " "); !strings.Contains(found, "1 reservations in Redis belong to tasks that have ended") || len(report.Lost) > 0 {
		t.Errorf("findings %q, lost %v", found, report.Lost)
	}
}
