package order

import (
	"context"

	"seckill/ent"
	"seckill/internal/identity/recipient"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

// copyRecipients writes the addresses of those orders whose sales require one. A buyer
// who removed theirs after the path token was issued ends the fast path.
func (b *orderBatch) copyRecipients(ctx context.Context, tx *ent.Tx, orders []*Order) error {
	var due []recipient.Order
	for _, o := range orders {
		if b.terms[o.Item].address {
			due = append(due, recipient.Order{ID: o.ID, User: o.User})
		}
	}
	if len(due) == 0 {
		return nil
	}
	copied, err := recipient.Copy(ctx, tx, due)
	if err == nil && copied < len(due) {
		err = errNeedsOneByOne
	}
	return err
}

// refuseWithoutAddress divides requests into those that may become orders, and failures
// of buyers who have no address where the sale requires one.
func (b *orderBatch) refuseWithoutAddress(ctx context.Context, tx *ent.Tx, requests []Request) (left []Request, failed []Failure, err error) {
	var users []id.User
	for _, r := range requests {
		if b.terms[r.Item].address && b.giveUp[r.Task] == "" {
			users = append(users, r.User)
		}
	}
	missing, err := recipient.Without(ctx, tx, users)
	if err != nil {
		return nil, nil, err
	}
	for _, r := range requests {
		if b.terms[r.Item].address && missing[r.User] && b.giveUp[r.Task] == "" {
			failed = append(failed, b.failure(r, fault.AddressRequired, "no address when the order was written"))
			continue
		}
		left = append(left, r)
	}
	return left, failed, nil
}

// Recipient returns to whom an order goes; nil = its sale requires no address, or the
// buyer's account was deleted.
func (s *Store) Recipient(ctx context.Context, o *Order) (*recipient.Recipient, error) {
	of, err := recipient.Of(ctx, s.db.Ent.OrderRecipient, o.ID)
	if err != nil {
		return nil, err
	}
	if r, ok := of[o.ID]; ok {
		return &r, nil
	}
	return nil, nil
}
