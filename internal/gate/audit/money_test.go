package audit_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"seckill/ent"
	"seckill/ent/payment"
	"seckill/ent/refund"
	"seckill/internal/buy/order"
	"seckill/internal/gate/audit"
	"seckill/internal/platform/id"
	"seckill/internal/testdb"
)

// pay writes a payment of an order.
func (w *world) pay(i int, status payment.Status, until time.Time) id.Payment {
	w.Helper()
	p := id.New[id.Payment]()
	w.update(func(ctx context.Context, tx *ent.Tx) error {
		return tx.Payment.Create().SetID(p).SetOrderID(id.Order(w.tasks[i])).SetUserID(w.users[i]).SetProvider("sandbox").
			SetIdempotencyKey(p.String()).SetStatus(status).SetAmountMinor(69900).SetCurrency("CNY").
			SetExpiresAt(until).SetCheckAt(until).SetCreatedAt(time.Now()).SetUpdatedAt(time.Now()).Exec(ctx)
	})
	return p
}

// sendBack writes a refund of a payment.
func (w *world) sendBack(i int, p id.Payment, cause refund.Cause, status refund.Status) {
	w.Helper()
	w.update(func(ctx context.Context, tx *ent.Tx) error {
		return tx.Refund.Create().SetID(id.New[id.Refund]()).SetOrderID(id.Order(w.tasks[i])).SetPaymentID(p).SetIdempotencyKey(p.String()).
			SetCause(cause).SetStatus(status).SetAmountMinor(69900).SetCurrency("CNY").SetReason("x").SetTryAt(time.Now()).
			SetCreatedAt(time.Now()).SetUpdatedAt(time.Now()).SetQuantity(1).Exec(ctx)
	})
}

// sendPart writes a finished refund of some money of a payment.
func (w *world) sendPart(i int, p id.Payment, amount int64) {
	w.Helper()
	w.update(func(ctx context.Context, tx *ent.Tx) error {
		return tx.Refund.Create().SetID(id.New[id.Refund]()).SetOrderID(id.Order(w.tasks[i])).SetPaymentID(p).SetIdempotencyKey(id.New[uuid.UUID]().String()).
			SetCause(refund.CauseASKED).SetStatus(refund.StatusSUCCEEDED).SetAmountMinor(amount).SetCurrency("CNY").SetReason("x").SetTryAt(time.Now()).
			SetCreatedAt(time.Now()).SetUpdatedAt(time.Now()).SetQuantity(1).Exec(ctx)
	})
}

// Row I4: every payment ends in a paid order or a refund of the same amount.
func TestTheAuditFindsMoneyThatIsNotWhereItBelongs(t *testing.T) {
	t.Parallel()
	soon := time.Now().Add(time.Minute)
	for name, c := range map[string]struct {
		make func(w *world)
		part string
	}{
		"all is well": {func(w *world) {
			w.pay(0, payment.StatusPENDING, soon)
			w.pay(0, payment.StatusCLOSED, soon)
			w.sendBack(1, w.pay(1, payment.StatusREFUNDED, soon), refund.CauseLATE, refund.StatusSUCCEEDED)
		}, ""},
		"sold, and nothing came": {func(w *world) {
			w.pay(0, payment.StatusCLOSED, soon)
			w.sell(0)
		}, "1 sold orders are not paid exactly once"},
		"paid twice, and both kept": {func(w *world) {
			w.pay(0, payment.StatusSUCCEEDED, soon)
			w.pay(0, payment.StatusSUCCEEDED, soon)
			w.sell(0)
		}, "1 sold orders are not paid exactly once"},
		"not sold, and money kept": {func(w *world) { w.pay(0, payment.StatusSUCCEEDED, soon) }, "1 orders are not sold, and their money is kept"},
		"sent back, and still ours": {func(w *world) {
			w.sendBack(0, w.pay(0, payment.StatusSUCCEEDED, soon), refund.CauseLATE, refund.StatusSUCCEEDED)
		}, "1 payments do not agree with their refunds (pay_"},
		"refunded units that the order still has": {func(w *world) {
			p := w.pay(0, payment.StatusREFUNDED, soon)
			w.sell(0)
			w.sendBack(0, p, refund.CauseASKED, refund.StatusSUCCEEDED)
			w.update(func(ctx context.Context, tx *ent.Tx) error { return tx.Refund.Update().SetApplied(true).Exec(ctx) })
		}, "1 orders do not agree with their refunds about the refunded units"},
		"more went back than was paid": {func(w *world) {
			p := w.pay(0, payment.StatusSUCCEEDED, soon)
			w.sell(0)
			w.sendPart(0, p, 60000)
			w.sendPart(0, p, 60000)
		}, "1 payments do not agree with their refunds (pay_"},
		"never ends": {func(w *world) { w.pay(0, payment.StatusPENDING, time.Now().Add(-time.Hour)) }, "1 payments have no end long after their time (pay_"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, testdb.Postgres(t))
			w.buy(2)
			w.work(2)
			c.make(w)
			if c.part != "" {
				w.finds(c.part)
				return
			}
			if r := w.audit(); !r.OK || r.Money != (audit.Money{Paid: 69900, Back: 69900}) {
				t.Errorf("%+v", r)
			}
		})
	}
}

// sell moves an order to PAID without a payment.
func (w *world) sell(i int) {
	w.Helper()
	w.moveOnly(i, order.Paid, nil, false)
}
