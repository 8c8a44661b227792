package payment

import (
	"context"
	"slices"

	"seckill/ent"
	entpayment "seckill/ent/payment"
	"seckill/internal/buy/order"
)

// Decline is why a provider declined a payment. The list is closed and the same for all
// providers: clients have a text for each, and metrics a label.
type Decline string

// Reasons of declined payments.
const (
	CardDeclined         Decline = "CARD_DECLINED" // the bank gave no reason that helps the buyer
	InsufficientFunds    Decline = "INSUFFICIENT_FUNDS"
	CardExpired          Decline = "CARD_EXPIRED"
	WrongDetails         Decline = "WRONG_DETAILS" // of the card: number, date or code
	AuthenticationFailed Decline = "AUTHENTICATION_FAILED"
	LimitExceeded        Decline = "LIMIT_EXCEEDED"
	NotSupported         Decline = "NOT_SUPPORTED"    // by the card: currency or kind of purchase
	ProcessingError      Decline = "PROCESSING_ERROR" // a failure on the way to the bank
	OtherDecline         Decline = "OTHER"
)

// Declines are all reasons of declined payments.
var Declines = []Decline{
	CardDeclined, InsufficientFunds, CardExpired, WrongDetails, AuthenticationFailed, LimitExceeded, NotSupported,
	ProcessingError, OtherDecline,
}

// DeclineOf returns the reason with a code; OtherDecline for any other code.
func DeclineOf(code string) Decline {
	if d := Decline(code); slices.Contains(Declines, d) {
		return d
	}
	return OtherDecline
}

func (k EventKind) declines() bool { return k == EventDeclined || k == EventAttemptDeclined }

// settleAttempt records that an attempt was declined on a payment that stays open: the
// buyer may try another card at the same page. The log of the order notes a reason once,
// because the number of attempts is not bounded by the shop.
func (s *Service) settleAttempt(ctx context.Context, e *ent.PaymentEvent, p *Payment) (done, error) {
	if !p.Status.IsOpen() {
		return s.finish(ctx, e, outcomeRepeated, nil)
	}
	return s.finish(ctx, e, outcomeAttempt, func(ctx context.Context, tx *ent.Tx) (*order.Order, error) {
		if err := s.mark(ctx, tx, p, entpayment.Status(p.Status), e); err != nil {
			return nil, err
		}
		if p.Decline == DeclineOf(e.Reason) || !p.hasOrder() {
			return nil, nil
		}
		return s.noteOrder(ctx, tx, p, order.Entry{Code: order.CodePaymentDeclined})
	})
}
