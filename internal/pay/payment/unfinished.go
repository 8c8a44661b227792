package payment

import (
	"context"
	"fmt"
	"time"

	entpayment "seckill/ent/payment"
	"seckill/ent/paymentevent"
	entrefund "seckill/ent/refund"
)

// Unfinished counts overdue work: payments past their deadline before the given time,
// unhandled events, and unsent refunds. The loops finish it once the provider responds.
// Held money and failed refunds wait for an operator and are counted regardless of their
// age.
func (s *Service) Unfinished(ctx context.Context, before time.Time) (map[string]int, error) {
	counts := map[string]int{}
	for what, count := range map[string]func(context.Context) (int, error){
		"payments": s.db.Ent.Payment.Query().
			Where(entpayment.StatusIn(openStatuses...), entpayment.ExpiresAtLT(before)).Count,
		"payment_events": s.db.Ent.PaymentEvent.Query().
			Where(paymentevent.StateEQ(paymentevent.StateRECEIVED), paymentevent.CreatedAtLT(before)).Count,
		"refunds": s.db.Ent.Refund.Query().
			Where(entrefund.StatusEQ(entrefund.StatusSENDING), entrefund.UpdatedAtLT(before)).Count,
		"failed_refunds": s.db.Ent.Refund.Query().Where(entrefund.StatusEQ(entrefund.StatusFAILED)).Count,
		"held_payments":  s.db.Ent.PaymentEvent.Query().Where(paymentevent.StateEQ(paymentevent.StateHELD)).Count,
	} {
		n, err := count(ctx)
		if err != nil {
			return nil, fmt.Errorf("count unfinished %s: %w", what, err)
		}
		counts[what] = n
	}
	return counts, nil
}
