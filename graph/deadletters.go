package graph

import (
	"context"
	"strings"

	"github.com/google/uuid"

	"seckill/graph/model"
	"seckill/internal/auth"
	"seckill/internal/fault"
	"seckill/internal/id"
	"seckill/internal/money"
	"seckill/internal/orderintake"
	"seckill/internal/payment"
)

// maxFieldText bounds the shown text of a message field, in bytes.
const maxFieldText = 4000

func toLetter(l *orderintake.Letter) *model.DeadLetter {
	if l == nil {
		return nil
	}
	out := &model.DeadLetter{
		ID: l.ID, SetAsideAt: l.At, Stream: l.Stream, Reason: l.Reason, Deliveries: l.Deliveries, Attempts: l.Attempts,
		Fields: []*model.DeadLetterField{}, Source: l,
	}
	for _, f := range l.Fields {
		out.Fields = append(out.Fields, &model.DeadLetterField{Name: readable(f.Name), Value: readable(f.Value)})
	}
	return out
}

// readable returns the printable form of bytes.
func readable(b []byte) string {
	return strings.ToValidUTF8(string(b[:min(len(b), maxFieldText)]), "\uFFFD")
}

func toLetters(list []*orderintake.Letter) []*model.DeadLetter {
	out := make([]*model.DeadLetter, len(list))
	for i, l := range list {
		out[i] = toLetter(l)
	}
	return out
}

func toLetterActs(list []*orderintake.Act) []*model.DeadLetterAct {
	out := make([]*model.DeadLetterAct, len(list))
	for i, a := range list {
		out[i] = &model.DeadLetterAct{
			At: a.At, Kind: a.Kind, LetterID: a.Letter, Note: a.Note, Reason: a.Reason, Source: a,
		}
	}
	return out
}

// decision returns the caller's decision about a dead letter.
func decision(ctx context.Context, letterID, note string) orderintake.Decision {
	return orderintake.Decision{Letter: letterID, Actor: auth.PrincipalFrom(ctx).UserID, Note: note}
}

func toHeld(list []payment.Held) []*model.HeldPayment {
	out := make([]*model.HeldPayment, len(list))
	for i, h := range list {
		out[i] = &model.HeldPayment{
			ID: id.Format(id.Held, h.ID), At: h.At, Amount: toMoney(money.Amount{Minor: h.AmountMinor, Currency: h.Currency}),
			Provider: h.Provider, Transaction: h.Transaction, Reason: h.Why, Source: h,
		}
	}
	return out
}

// paidFor returns the order of a payment, or nil when it is unknown.
func (r *Resolver) paidFor(ctx context.Context, paymentID uuid.UUID) (*model.Order, error) {
	p, err := r.Payments.Payment(ctx, paymentID)
	if err != nil || p == nil {
		return nil, err
	}
	o, err := r.Orders.Order(ctx, p.Order)
	return r.toOrder(o), err
}

// heldAfter parses the cursor of heldPayments.
func heldAfter(after *string) (uuid.UUID, error) {
	if after == nil {
		return uuid.Nil, nil
	}
	u, err := id.Parse(id.Held, *after)
	if err != nil {
		return u, fault.Wrap(fault.BadInput, "Invalid cursor.", err)
	}
	return u, nil
}
