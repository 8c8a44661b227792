package payment

import (
	"context"
	"errors"
	"fmt"

	"entgo.io/ent/dialect"

	"seckill/ent"
	entorder "seckill/ent/order"
	entpayment "seckill/ent/payment"
	"seckill/internal/buy/order"
	"seckill/internal/buy/sale"
	"seckill/internal/identity/person"
	"seckill/internal/platform/id"
)

// errPayerUsedUp reports that the units which a means of payment has paid in a sale use up a
// limit.
var errPayerUsedUp = errors.New("the means of payment has used up the limit of the sale")

// namePayer asks a provider for the means of payment of money that was reported without it, where
// a limit counts it.
func (s *Service) namePayer(ctx context.Context, provider string, e *Event) error {
	namer, ok := s.providers[provider].(PayerNamer)
	if !ok || e.Kind != EventSucceeded && e.Kind != EventAuthorized || e.Payer != "" || e.Transaction == "" {
		return nil
	}
	p, err := s.Payment(ctx, e.Payment)
	if err != nil || p == nil {
		return err
	}
	var of id.Sale
	if entry, err := s.entry(ctx, p.Entry); err != nil {
		return err
	} else if entry != nil {
		of = entry.SaleID
	} else if o, err := s.cfg.Orders.Reload(ctx, p.Order); err != nil || o == nil {
		return err
	} else {
		of = o.Sale
	}
	row, err := s.cfg.DB.Ent.Sale.Get(ctx, of)
	if err != nil || !sale.ParseLimitBy(row.LimitBy).Payment {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	if e.Payer, err = namer.Payer(ctx, e.Transaction); err != nil {
		return fmt.Errorf("means of payment of %s: %w", e.Transaction, err)
	}
	return nil
}

// payerKey returns the person key of an event's means of payment; "" where the limits of the sale
// do not count it. Keys of a settled sale are gone, and none is added.
func (s *Service) payerKey(row *ent.Sale, e *ent.PaymentEvent) person.Key {
	if e.Payer == nil || row.SettledAt != nil || !sale.ParseLimitBy(row.LimitBy).Payment {
		return ""
	}
	return s.cfg.Persons.Payment(row.ID, *e.Payer)
}

// countPayer records the means of payment of an order that is being paid. It returns
// errPayerUsedUp when the units that it paid before leave too little of the limit. Payments
// with one means wait for each other.
func (s *Service) countPayer(ctx context.Context, tx *ent.Tx, e *ent.PaymentEvent, o *order.Order) error {
	if e.Payer == nil {
		return nil
	}
	row, err := tx.Sale.Get(ctx, o.Sale)
	if err != nil {
		return fmt.Errorf("read sale %s: %w", o.Sale, err)
	}
	key := s.payerKey(row, e)
	if key == "" {
		return nil
	}
	limit, paid, err := s.paidWith(ctx, tx, row, paying{o.Item, key, o.ID})
	if err != nil {
		return err
	}
	if paid+o.Quantity > limit {
		return errPayerUsedUp
	}
	return tx.Order.Update().Where(entorder.ID(o.ID)).SetPaymentKey(string(key)).Exec(ctx)
}

// paying is a purchase by a means of payment.
type paying struct {
	item  id.Item
	key   person.Key
	order id.Order // its own; zero = none yet
}

// paidWith locks a means of payment and returns the limit of its units in a sale, or without one of
// the sale in an item, and the units that it paid for in other orders.
func (s *Service) paidWith(ctx context.Context, tx *ent.Tx, row *ent.Sale,
	by paying) (limit, units int, err error) {
	if s.cfg.DB.Dialect == dialect.Postgres { // SQLite has one writer
		if _, err := tx.ExecContext(ctx, `SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`, string(by.key)); err != nil {
			return 0, 0, fmt.Errorf("lock means of payment: %w", err)
		}
	}
	paid := tx.Order.Query().Where(entorder.SaleID(row.ID), entorder.PaymentKey(string(by.key)), entorder.IDNEQ(by.order),
		entorder.StatusIn(entorder.StatusPAID, entorder.StatusREFUNDING))
	if limit = sale.LimitOf(row); limit == 0 {
		item, err := tx.SaleItem.Get(ctx, by.item)
		if err != nil {
			return 0, 0, fmt.Errorf("read item %s: %w", by.item, err)
		}
		limit = sale.ItemLimitOf(row, item)
		paid.Where(entorder.ItemID(by.item))
	}
	rows, err := paid.All(ctx)
	if err != nil {
		return 0, 0, fmt.Errorf("read orders of a means of payment: %w", err)
	}
	for _, other := range rows {
		units += order.FromRow(other).Left()
	}
	return limit, units, nil
}

// refusePayer returns money of a means of payment that has used up a limit, and cancels its order,
// whose units are for others, in one transaction.
func (s *Service) refusePayer(ctx context.Context, e *ent.PaymentEvent, p *Payment, o *order.Order) (done, error) {
	return s.finish(ctx, e, outcomeLimit, func(ctx context.Context, tx *ent.Tx) (*order.Order, error) {
		if err := s.mark(ctx, tx, p, entpayment.StatusSUCCEEDED, e); err != nil {
			return nil, err
		}
		cancelled, err := s.apply(ctx, tx, order.Move{Order: o, To: order.Cancelled, At: s.now(), Entry: order.Entry{
			By: order.Actor{Kind: order.Provider}, Code: order.CodeLimit,
		}})
		if err != nil {
			return nil, err
		}
		return cancelled, s.newRefund(ctx, tx, refundDraft{
			payment: p, cause: Late, status: RefundSending, key: ownKey("auto", p.ID), reason: string(outcomeLimit),
		})
	})
}
