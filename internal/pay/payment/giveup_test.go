package payment_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/google/uuid"

	"seckill/ent"
	"seckill/internal/buy/order"
	"seckill/internal/pay/payment"
	"seckill/internal/pay/payment/sandbox"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

// giveUp expires an unpaid order on behalf of an operator.
func (s *shop) giveUp(o *order.Order) (*order.Order, error) {
	s.t.Helper()
	return s.pay.ExpireUnpaid(s.t.Context(), payment.ExpireInput{
		Order: o.ID, Operator: id.New[id.User](), Note: "the provider is gone",
		Commit: func(ctx context.Context, expire func(context.Context, *ent.Tx) error) error {
			return s.db.WithTx(ctx, expire)
		},
	})
}

// gone makes the provider unreachable for calls of the shop; calls to the gate succeed.
func (s *shop) gone() {
	s.flaky.lose(func(call string) fate {
		if call == "give back" || call == "reacquire" {
			return fine
		}
		return unsent
	})
}

// Several operators at once, on an order whose payment cannot be closed.
func TestAnOrderWhoseProviderIsGoneFreesItsUnitOnce(t *testing.T) {
	onBoth(t, 3, func(t *testing.T, s *shop) {
		o := s.buy()
		s.begin(o, "key-1")
		s.gone()
		var mu sync.Mutex
		var wg sync.WaitGroup
		done := 0
		for range 6 {
			wg.Go(func() {
				got, err := s.giveUp(o)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					done++
				case fault.ReasonOf(err) != fault.Conflict || got == nil || got.Status != order.Expired:
					t.Errorf("%+v, %v", got, err)
				}
			})
		}
		wg.Wait()
		if done != 1 {
			t.Errorf("expired %d times", done)
		}
		s.wantOrder(o, order.Expired)
		for range 3 {
			s.step(s.returner.Step)
		}
		s.wantFigures(figures{available: 3, stock: 3})
		if s.place(o.User, 1) == nil {
			t.Error("the buyer may not buy again")
		}
	})
}

// The money is kept for the order while a unit is left, and sent back otherwise.
func TestMoneyThatComesAfterAnOperatorGaveItUpIsSettled(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, s *shop) {
		served, refunded := s.buy(), s.buy()
		first, second := s.begin(served, "key-1"), s.begin(refunded, "key-1")
		for p, o := range map[*payment.Payment]*order.Order{first: served, second: refunded} {
			s.approve(p, sandbox.Late) // paid, and reported after the deadline
			s.gone()
			if got, err := s.giveUp(o); err != nil || got.Status != order.Expired {
				t.Fatalf("%+v, %v", got, err)
			}
			s.flaky.lose(nil)
		}
		s.step(s.returner.Step)
		s.wantFigures(figures{available: 2, stock: 2})
		s.payNow(s.buy()) // one unit is left for the two
		s.clock.Advance(window)
		s.settleDown()
		statuses := map[order.Status]int{s.order(served).Status: 1}
		statuses[s.order(refunded).Status]++
		if statuses[order.Paid] != 1 || statuses[order.Expired] != 1 {
			t.Errorf("orders %v, want one paid and one expired", statuses)
		}
		for p, o := range map[*payment.Payment]*order.Order{first: served, second: refunded} {
			want := payment.Refunded
			if s.order(o).Status == order.Paid {
				want = payment.Succeeded
			}
			s.wantPayment(p, want)
		}
	})
}

// A provider that answers is asked: money that is there already wins.
func TestAnOrderThatIsPaidIsNotGivenUp(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, s *shop) {
		paid, reported := s.buy(), s.buy()
		s.approve(s.begin(paid, "key-1"), sandbox.Delayed) // paid, and not yet reported
		s.payNow(reported)
		for _, o := range []*order.Order{paid, reported} {
			got, err := s.giveUp(o)
			s.wantRefused(err, fault.Conflict)
			if got == nil || got.Status != order.Paid {
				t.Errorf("order %+v", got)
			}
		}
		_, err := s.giveUp(&order.Order{ID: id.Order(uuid.New())})
		s.wantRefused(err, fault.Unknown)
	})
}

// The buyer is not to blame for a provider that is gone.
func TestAnOrderThatAnOperatorExpiresDoesNotCountAgainstItsBuyer(t *testing.T) {
	t.Parallel()
	s := newShop(t, 2)
	o, overdue := s.buy(), s.buy()
	if _, err := s.giveUp(o); err != nil {
		t.Fatal(err)
	}
	s.expirePayments()
	for user, want := range map[id.User]int{o.User: 0, overdue.User: 1} {
		n, _ := s.conn.Cmd.Get(t.Context(), s.keys.Expiries(id.ShardOf(s.sale), s.sale, user)).Int()
		if n != want {
			t.Errorf("%d expiries, want %d", n, want)
		}
	}
}

// A transaction that fails leaves the order as it was.
func TestAnActThatIsNotLoggedExpiresNothing(t *testing.T) {
	t.Parallel()
	s := newShop(t, 1)
	o := s.buy()
	broken := errors.New("the log is full")
	_, err := s.pay.ExpireUnpaid(t.Context(), payment.ExpireInput{Order: o.ID, Operator: id.New[id.User](), Note: "x",
		Commit: func(ctx context.Context, expire func(context.Context, *ent.Tx) error) error {
			return s.db.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error { return errors.Join(expire(ctx, tx), broken) })
		}})
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	s.wantOrder(o, order.PendingPayment)
	s.wantFigures(figures{held: 1, reserved: 1, holders: 1})
}
