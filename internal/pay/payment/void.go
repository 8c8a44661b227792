package payment

import (
	"context"
	"fmt"

	"seckill/internal/buy/order"
	"seckill/internal/platform/fault"
)

// VoidUnpaid cancels an unpaid order on an operator's behalf. An order that is paid, or
// was paid in the meantime, is refused, so that only Void refunds money. Voiding again
// changes nothing.
func (s *Service) VoidUnpaid(ctx context.Context, in VoidInput) (*order.Order, error) {
	o, err := s.orders.Reload(ctx, in.Order)
	if err != nil {
		return nil, fmt.Errorf("void order %s: %w", in.Order, err)
	}
	if o == nil {
		return nil, fault.Refused{Why: fault.Unknown, At: []string{"orderId"}}
	}
	return s.callOff(ctx, o, order.Entry{
		By: order.Actor{Kind: order.Operator, User: in.Operator}, Code: order.CodeVoided, Note: in.Note,
	})
}
