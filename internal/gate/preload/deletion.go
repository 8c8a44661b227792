package preload

import (
	"context"
	"fmt"

	"seckill/ent"
	entorder "seckill/ent/order"
	entsale "seckill/ent/sale"
	"seckill/internal/buy/reservation"
	"seckill/internal/buy/sale"
	"seckill/internal/identity/account"
	"seckill/internal/identity/person"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

// Deletions keeps what an account bought and withheld in running sales when it is deleted, as person
// keys of its contact: a new account of that contact has what the limits leave. It implements
// account.Purchases.
type Deletions struct {
	Catalog *sale.Catalog
	Gate    *reservation.Gate
	Persons person.Hasher
}

// Keep counts the account in the gates of all running sales, and returns what the transaction that
// deletes it has to do: store the keys with its orders, from which gates are rebuilt. That is
// refused when a gate may have been rebuilt without them in between.
func (d Deletions) Keep(ctx context.Context, u *account.User) (func(context.Context, *ent.Tx) error, error) {
	contact, ok := u.Contact()
	if !ok {
		return func(context.Context, *ent.Tx) error { return nil }, nil
	}
	sales, err := d.Catalog.Loaded(ctx)
	if err != nil {
		return nil, fmt.Errorf("list running sales: %w", err)
	}
	epochs := make(map[id.Sale]int64, len(sales))
	for _, v := range sales {
		items := collect.Map(v.Items, func(item *sale.Item) id.Item { return item.ID })
		keys := person.Keys{}.With(d.former(v.ID, v.LimitBy, contact, u.Verified)...)
		if epochs[v.ID], err = d.Gate.CountFormer(ctx, v.ID, items, u.ID, keys); err != nil {
			return nil, fault.Wrap(fault.Unavailable, "The sales cannot be reached now. Please try again shortly.", err)
		}
	}
	return func(ctx context.Context, tx *ent.Tx) error { return d.store(ctx, tx, u, contact, epochs) }, nil
}

// former returns the keys that count a deleted account in a sale: those of later accounts that do
// not verify the contact, and of those that do if the deleted one did. Otherwise a stranger could
// use up the limit of a contact.
func (d Deletions) former(saleID id.Sale, limitBy sale.LimitBy, contact string, verified bool) []person.Key {
	key := d.Persons.Former
	if limitBy.Contact {
		key = d.Persons.Contact
	}
	keys := []person.Key{key(saleID, contact, false)}
	if verified {
		keys = append(keys, key(saleID, contact, true))
	}
	return keys
}

// store adds the keys to the orders of the account in running sales. A rebuild writes its epoch in
// the row of the sale before it reads orders: either it sees these, or the epoch has changed.
func (d Deletions) store(ctx context.Context, tx *ent.Tx, u *account.User, contact string,
	epochs map[id.Sale]int64) error {
	orders, err := tx.Order.Query().Where(entorder.UserID(u.ID), entorder.StatusNEQ(entorder.StatusREFUNDED)).All(ctx)
	if err != nil {
		return fmt.Errorf("read orders: %w", err)
	}
	running := map[id.Sale]*ent.Sale{} // nil = it is over
	for _, row := range orders {
		of, read := running[row.SaleID]
		if !read {
			if of, err = lockRunning(ctx, tx, row.SaleID, epochs[row.SaleID]); err != nil {
				return err
			}
			running[row.SaleID] = of
		}
		if of == nil {
			continue
		}
		var keys person.Keys
		if row.PersonKeys != nil {
			if keys, err = person.Parse(*row.PersonKeys); err != nil {
				return fmt.Errorf("order %s: %w", row.ID, err)
			}
		}
		keys = keys.With(d.former(of.ID, sale.ParseLimitBy(of.LimitBy), contact, u.Verified)...)
		if err := tx.Order.Update().Where(entorder.ID(row.ID)).SetPersonKeys(keys.String()).Exec(ctx); err != nil {
			return fmt.Errorf("store person keys: %w", err)
		}
	}
	return nil
}

// lockRunning locks the row of a sale and returns it; nil for a sale that is not running.
func lockRunning(ctx context.Context, tx *ent.Tx, saleID id.Sale, epoch int64) (*ent.Sale, error) {
	if err := tx.Sale.Update().Where(entsale.ID(saleID)).AddEpoch(0).Exec(ctx); err != nil {
		return nil, fmt.Errorf("lock sale %s: %w", saleID, err)
	}
	row, err := tx.Sale.Get(ctx, saleID)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read sale %s: %w", saleID, err)
	case !sale.Status(row.Status).Loaded():
		return nil, nil
	case row.Epoch != epoch:
		return nil, fault.New(fault.Unavailable, "A sale is being loaded. Please try again shortly.")
	}
	return row, nil
}
