package order

import (
	"context"

	"seckill/ent"
	"seckill/internal/identity/person"
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
			due = append(due, recipient.Order{ID: o.ID, User: o.User, At: b.at(o.Sale, o.Persons.Address)})
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
// of buyers who have no address where the sale requires one, or changed it after their
// path token was issued and the limits of the sale count addresses.
func (b *orderBatch) refuseWithoutAddress(ctx context.Context, tx *ent.Tx, requests []Request) (left []Request,
	failed []Failure, err error) {
	var users []id.User
	for _, r := range requests {
		if b.terms[r.Item].address && b.giveUp[r.Task] == "" {
			users = append(users, r.User)
		}
	}
	of, err := recipient.Defaults(ctx, tx, users)
	if err != nil {
		return nil, nil, err
	}
	for _, r := range requests {
		reason := ""
		if b.terms[r.Item].address && b.giveUp[r.Task] == "" {
			to, there := of[r.User]
			counted := b.at(r.Sale, r.Persons.Address)
			switch {
			case !there:
				reason = "no address when the order was written"
			case counted != nil && !counted(to):
				reason = "another address when the order was written than the limit counted"
			}
		}
		if reason != "" {
			failed = append(failed, b.failure(r, fault.AddressRequired, reason))
			continue
		}
		left = append(left, r)
	}
	return left, failed, nil
}

// at returns a function that compares an address with the one that the gate counted for a
// limit; nil if it counted none.
func (b *orderBatch) at(sale id.Sale, counted person.Key) func(recipient.Recipient) bool {
	if counted == "" || b.persons == nil {
		return nil
	}
	return func(r recipient.Recipient) bool { return b.persons.Address(sale, r.Place()) == counted }
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
