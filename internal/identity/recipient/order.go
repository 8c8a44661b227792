package recipient

import (
	"context"
	"fmt"

	"seckill/ent"
	"seckill/ent/address"
	"seckill/ent/orderrecipient"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/id"
)

// Order is an order that gets a recipient.
type Order struct {
	ID   id.Order
	User id.User
	// At reports whether the address is the one that the gate counted; nil = any.
	At func(Recipient) bool
}

// Copy writes the recipients of new orders: the default addresses of their buyers, as they
// are now. It returns the number of orders that got one, in the caller's transaction.
func Copy(ctx context.Context, tx *ent.Tx, orders []Order) (copied int, err error) {
	users := collect.Map(orders, func(o Order) id.User { return o.User })
	rows, err := tx.Address.Query().Where(address.UserIDIn(users...), address.IsDefault(true)).All(ctx)
	if err != nil {
		return 0, fmt.Errorf("read addresses of %d buyers: %w", len(users), err)
	}
	of := collect.Index(rows, func(row *ent.Address) id.User { return row.UserID })
	var creates []*ent.OrderRecipientCreate
	for _, o := range orders {
		if a := of[o.User]; a != nil && (o.At == nil || o.At(fromAddress(a))) {
			creates = append(creates, tx.OrderRecipient.Create().SetID(o.ID).SetUserID(o.User).SetName(a.Name).SetPhone(a.Phone).
				SetCountry(a.Country).
				SetRegion(a.Region).SetCity(a.City).SetStreet(a.Street).SetPostalCode(a.PostalCode))
		}
	}
	if len(creates) == 0 {
		return 0, nil
	}
	if err := tx.OrderRecipient.CreateBulk(creates...).Exec(ctx); err != nil {
		return 0, fmt.Errorf("write recipients of %d orders: %w", len(creates), err)
	}
	return len(creates), nil
}

// Defaults returns the default addresses of those users that have one.
func Defaults(ctx context.Context, tx *ent.Tx, users []id.User) (map[id.User]Recipient, error) {
	of := make(map[id.User]Recipient, len(users))
	if len(users) == 0 {
		return of, nil
	}
	rows, err := tx.Address.Query().Where(address.UserIDIn(users...), address.IsDefault(true)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read addresses of %d buyers: %w", len(users), err)
	}
	for _, row := range rows {
		of[row.UserID] = fromAddress(row)
	}
	return of, nil
}

// Of returns the recipients of the orders that have one.
func Of(ctx context.Context, client *ent.OrderRecipientClient, orders ...id.Order) (map[id.Order]Recipient, error) {
	rows, err := client.Query().Where(orderrecipient.IDIn(orders...)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read recipients of orders: %w", err)
	}
	of := make(map[id.Order]Recipient, len(rows))
	for _, row := range rows {
		of[row.ID] = fromOrder(row)
	}
	return of, nil
}

// Replace writes another recipient of an order, in the caller's transaction, and reports whether
// it differs from the one before. False with known = false means that the order has none.
func Replace(ctx context.Context, tx *ent.Tx, order id.Order, to Recipient) (changed, known bool, err error) {
	row, err := tx.OrderRecipient.Get(ctx, order)
	if ent.IsNotFound(err) {
		return false, false, nil
	}
	if err != nil {
		return false, false, fmt.Errorf("read recipient of order %s: %w", order, err)
	}
	if fromOrder(row) == to {
		return false, true, nil
	}
	err = tx.OrderRecipient.UpdateOneID(order).SetName(to.Name).SetPhone(to.Phone).SetCountry(to.Country).
		SetRegion(to.Region).
		SetCity(to.City).SetStreet(to.Street).SetPostalCode(to.PostalCode).Exec(ctx)
	if err != nil {
		return false, true, fmt.Errorf("write recipient of order %s: %w", order, err)
	}
	return true, true, nil
}
