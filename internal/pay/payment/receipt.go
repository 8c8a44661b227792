package payment

import (
	"cmp"
	"context"
	"fmt"

	"seckill/ent"
	"seckill/internal/buy/order"
	"seckill/internal/platform/locale"
	"seckill/internal/platform/money"
)

// Receipts writes what buyers receive about their money, in the caller's transaction.
type Receipts interface {
	// Paid is called once for the money that paid an order. method names how, in each language.
	Paid(ctx context.Context, tx *ent.Tx, o *order.Order, method func(locale.Language) string) error
	// Refunded is called once for each refund whose money is back with the buyer, with the
	// units that the money paid.
	Refunded(ctx context.Context, tx *ent.Tx, o *order.Order, amount money.Amount, units int) error
}

func (s *Service) writePaid(ctx context.Context, tx *ent.Tx, o *order.Order, provider string) error {
	if s.receipts == nil {
		return nil
	}
	if err := s.receipts.Paid(ctx, tx, o, s.Option(provider).Label.In); err != nil {
		return fmt.Errorf("write receipt of order %s: %w", o.ID, err)
	}
	return nil
}

func (s *Service) writeRefunded(ctx context.Context, tx *ent.Tx, o *order.Order, r *Refund) error {
	if s.receipts == nil {
		return nil
	}
	units := cmp.Or(r.units(o), o.Quantity)
	if err := s.receipts.Refunded(ctx, tx, o, money.Amount{Minor: r.AmountMinor, Currency: r.Currency},
		units); err != nil {
		return fmt.Errorf("write receipt of refund %s: %w", r.ID, err)
	}
	return nil
}
