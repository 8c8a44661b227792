package operator

import (
	"context"

	"seckill/ent"
	"seckill/internal/buy/order"
	"seckill/internal/buy/sale"
	"seckill/internal/pay/payment"
	"seckill/internal/platform/id"
)

// ExpireInput is the input of ExpireOrder.
type ExpireInput struct {
	By    sale.Actor
	Order id.Order
	Note  string // the reason; the buyer sees it
}

// ExpireOrder expires an unpaid order whose money will not come, for example because its
// payment provider is gone: a void would wait for the provider. The order ends in the
// transaction that logs the act. An order that has ended or is paid, also in the
// meantime, is refused, and so is the operator's own. Beside a refusal it returns the
// order.
func (s *Service) ExpireOrder(ctx context.Context, in ExpireInput) (*order.Order, error) {
	if err := authorise(in.By, sale.ActExpire); err != nil {
		return nil, err
	}
	if err := requireNote(&in.Note); err != nil {
		return nil, err
	}
	o, err := s.cfg.Orders.Reload(ctx, in.Order)
	switch {
	case err != nil:
		return nil, err
	case o == nil:
		return nil, unknown("orderId")
	case o.User == in.By.ID:
		return o, selfApproval("orderId")
	}
	if err := s.endable(ctx, o, sale.ActExpire); err != nil {
		return o, err
	}
	return s.cfg.Payments.ExpireUnpaid(ctx, payment.ExpireInput{
		Order: o.ID, Operator: in.By.ID, Note: in.Note,
		Commit: func(ctx context.Context, expire func(context.Context, *ent.Tx) error) error {
			_, err := s.do(ctx, act{
				by: in.By, sale: o.Sale, what: sale.ActExpire, note: in.Note,
				details: map[string]any{"order": o.ID.Public(), "units": o.Quantity},
				within:  func(ctx context.Context, tx *ent.Tx, _ *sale.Sale) error { return expire(ctx, tx) },
			})
			return err
		},
	})
}
