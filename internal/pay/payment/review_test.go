package payment_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"seckill/ent"
	"seckill/internal/buy/order"
	"seckill/internal/identity/person"
	"seckill/internal/pay/payment"
	"seckill/internal/pay/payment/sandbox"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

const network = "nAAAABBBBCCCCDDDD"

// fromOneNetwork returns unpaid orders of several accounts from one network.
func (s *shop) fromOneNetwork(n int) []*order.Order {
	s.t.Helper()
	orders := make([]*order.Order, n)
	for i := range orders {
		orders[i] = s.buy()
	}
	s.must(s.db.WithTx(s.t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE orders SET network_key = $2 WHERE sale_id = $1 AND network_key IS NULL`, s.sale, network)
		return err
	}))
	return orders
}

// holdsFrom makes the sale hold clusters of so many accounts.
func (s *shop) holdsFrom(accounts int) {
	s.t.Helper()
	s.must(s.db.WithTx(s.t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE sales SET review_accounts = $2 WHERE id = $1`, s.sale, accounts)
		return err
	}))
}

func (s *shop) tryPay(o *order.Order) error {
	_, err := s.pay.Pay(s.t.Context(), payment.PayInput{Order: o.ID, User: o.User, Provider: sandbox.Name, IdempotencyKey: "key-0123456789abcdef"})
	return err
}

// wantHeld checks that an order is held, without a deadline, and returns it.
func (s *shop) wantHeld(o *order.Order) *order.Order {
	s.t.Helper()
	now := s.wantOrder(o, order.PendingPayment)
	if !now.UnderReview() || now.PaymentDeadline != nil || !slices.Equal(now.Review.Kinds, []person.Kind{person.Network}) || slices.Contains(now.Actions(s.clock.Now()), order.ActionPay) {
		s.t.Fatalf("order %+v with the review %+v is not held", now, now.Review)
	}
	return now
}

// The payment itself looks for the cluster: no loop has to run before it.
func TestAnOrderOfAClusterIsHeldBeforeItsPayment(t *testing.T) {
	onBoth(t, 5, func(t *testing.T, s *shop) {
		s.holdsFrom(3)
		first := s.fromOneNetwork(2)
		if err := s.tryPay(first[0]); err != nil {
			t.Fatalf("two accounts of three: %v", err)
		}
		third := s.fromOneNetwork(1)[0]
		err := s.tryPay(third)
		s.wantRefused(err, fault.UnderReview)
		if seen, ok := errors.AsType[order.UnderReview](err); !ok || !slices.Equal(seen.Kinds, []person.Kind{person.Network}) {
			t.Errorf("the refusal says %+v", err)
		}
		s.wantHeld(third)
		s.step(s.pay.StepReviews)
		s.wantHeld(first[1])
		if o := s.order(first[0]); o.UnderReview() {
			t.Error("the order whose payment has begun is held")
		}
		// The deadline does not run.
		s.clock.Advance(2 * window)
		s.step(s.pay.ExpireOverdue)
		s.wantHeld(third)

		text := "We are a shared flat."
		for i, want := range []fault.Reason{"", fault.Conflict} {
			if _, err := s.pay.Answer(t.Context(), third.ID, third.User, text); fault.ReasonOf(err) != want {
				t.Errorf("answer %d: %v, want %q", i, err, want)
			}
		}
		if _, err := s.pay.Answer(t.Context(), third.ID, first[0].User, text); fault.ReasonOf(err) != fault.Unknown {
			t.Errorf("the answer of another buyer: %v", err)
		}
		if got, err := s.orders.ReviewAnswer(t.Context(), third.ID); got != text {
			t.Errorf("the answer is %q: %v", got, err)
		}
		released, err := s.pay.Release(t.Context(), third.ID, order.Entry{By: order.Actor{Kind: order.Operator, User: id.New[id.User]()}, Note: "a flat"})
		s.must(err)
		if released.UnderReview() || released.PaymentDeadline == nil || released.PaymentDeadline.Sub(s.clock.Now()) < window-time.Second {
			t.Fatalf("released: %+v", released)
		}
		if _, err := s.pay.Release(t.Context(), third.ID, order.Entry{By: order.Actor{Kind: order.Clock}}); fault.ReasonOf(err) != fault.Conflict {
			t.Errorf("released twice: %v", err)
		}
		s.step(s.pay.StepReviews) // does not hold it again
		s.payNow(s.order(third))
		s.wantOrder(third, order.Paid)
		s.sound()
	})
}

// Without a decision a review ends after a day, and the buyer has the whole window.
func TestAReviewWithoutADecisionEndsAfterADay(t *testing.T) {
	onBoth(t, 5, func(t *testing.T, s *shop) {
		s.holdsFrom(2)
		o := s.fromOneNetwork(2)[0]
		s.step(s.pay.StepReviews)
		s.wantHeld(o)
		s.clock.Advance(order.ReviewLife - time.Second)
		s.step(s.pay.StepReviews)
		s.wantHeld(o)
		s.clock.Advance(2 * time.Second)
		s.step(s.pay.StepReviews)
		if now := s.wantOrder(o, order.PendingPayment); now.UnderReview() || !now.PaymentDeadline.Equal(s.clock.Now().Add(window)) {
			t.Fatalf("after a day: %+v, %+v", now, now.Review)
		}
		s.payNow(s.order(o))
		s.wantOrder(o, order.Paid)
	})
}

// An operator holds a cluster whatever the setting; payments that were begun are closed first.
func TestAnOperatorHoldsAClusterAndCancelsItsOrders(t *testing.T) {
	onBoth(t, 5, func(t *testing.T, s *shop) {
		orders := s.fromOneNetwork(3)
		begun := s.begin(orders[0], "key-0123456789abcdef")
		s.payNow(orders[1])
		in := payment.HoldInput{Sale: s.sale, Cluster: person.Key(network).Label(), Operator: orders[2].User, Note: "look"}
		free, left, err := s.pay.Holdable(t.Context(), in)
		s.must(err)
		if len(free) != 1 || free[0].ID != orders[0].ID || left != 1 {
			t.Errorf("%d can be held, %d are left: the paid order and the operator's own are not", len(free), left)
		}
		s.must(s.db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) (err error) {
			free, _, err = s.pay.HoldIn(ctx, tx, free, in)
			return err
		}))
		s.pay.Reviewed(t.Context(), free...)
		s.wantHeld(orders[0])
		if p, err := s.pay.Payment(t.Context(), begun.ID); err != nil || p.Status.IsOpen() {
			t.Errorf("the payment of a held order is %+v: %v", p, err)
		}
		_, err = s.pay.VoidUnpaid(t.Context(), payment.VoidInput{Order: orders[0].ID, Operator: orders[2].User, Note: "a farm"})
		s.must(err)
		s.wantOrder(orders[0], order.Cancelled)
		s.step(s.returner.Step)
		s.sound()
	})
}
