package payment

import (
	"context"
	"errors"
	"fmt"

	"seckill/ent"
	"seckill/internal/buy/order"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

// ExpireInput expires an unpaid order on an operator's behalf.
type ExpireInput struct {
	Order    id.Order
	Operator id.User
	Note     string // reason, shown to the buyer
	// Commit runs expire in a transaction, beside what the caller logs.
	Commit func(ctx context.Context, expire func(ctx context.Context, tx *ent.Tx) error) error
}

// ExpireUnpaid expires an unpaid order before the clock does. Its payment is closed first
// where the provider answers; a provider that is gone holds nothing up, because money
// that arrives later is settled like any late money. An order that has ended or is paid,
// also in the meantime, is returned beside the refusal.
func (s *Service) ExpireUnpaid(ctx context.Context, in ExpireInput) (*order.Order, error) {
	at := []string{"orderId"}
	entry := order.Entry{By: order.Actor{Kind: order.Operator, User: in.Operator}, Code: order.CodeExpired, Note: in.Note}
	for range maxRaces {
		o, err := s.orders.Reload(ctx, in.Order)
		switch {
		case err != nil:
			return nil, fmt.Errorf("expire order %s: %w", in.Order, err)
		case o == nil:
			return nil, fault.Refused{Why: fault.Unknown, At: at}
		case o.Status != order.PendingPayment:
			return o, fault.Refused{Why: fault.Conflict, At: at}
		}
		switch how, err := s.closePayments(ctx, o.ID); {
		case err != nil:
			return nil, err
		case how == closedPaid:
			continue // the money is settled: read the order again
		}
		var moved *order.Order
		err = in.Commit(ctx, func(ctx context.Context, tx *ent.Tx) (err error) {
			moved, err = s.apply(ctx, tx, order.Move{Order: o, To: order.Expired, At: s.now(), ReturnAfter: s.returnAfter(),
				Entry: entry})
			return err
		})
		if err == nil {
			s.publisher.Publish(ctx, moved)
			return moved, nil
		}
		if !errors.Is(err, order.ErrMoved) {
			return nil, err
		}
	}
	return nil, fault.New(fault.Unavailable, "The order is being changed. Please try again.")
}
