package payment

import (
	"context"
	"fmt"
	"time"

	entpayment "seckill/ent/payment"
	"seckill/ent/paymentevent"
	entrefund "seckill/ent/refund"
)

// Unfinished counts what should have ended by itself before an instant and has
// not: payments past their time, events that were not handled, money that is to go
// back. The loops finish it once the provider answers. Held money waits for a
// person, however new it is.
func (s *Service) Unfinished(ctx context.Context, before time.Time) (map[string]int, error) {
	counts := map[string]int{}
	for what, count := range map[string]func(context.Context) (int, error){
		"payments": s.db.Ent.Payment.Query().
			Where(entpayment.StatusIn(openStatuses...), entpayment.ExpiresAtLT(before)).Count,
		"payment_events": s.db.Ent.PaymentEvent.Query().
			Where(paymentevent.StateEQ(paymentevent.StateRECEIVED), paymentevent.CreatedAtLT(before)).Count,
		"refunds": s.db.Ent.Refund.Query().
			Where(entrefund.StatusEQ(entrefund.StatusSENDING), entrefund.UpdatedAtLT(before)).Count,
		"held_payments": s.db.Ent.PaymentEvent.Query().Where(paymentevent.StateEQ(paymentevent.StateHELD)).Count,
	} {
		n, err := count(ctx)
		if err != nil {
			return nil, fmt.Errorf("count unfinished %s: %w", what, err)
		}
		counts[what] = n
	}
	return counts, nil
}
