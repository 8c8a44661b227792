package account

import (
	"context"

	"seckill/ent"
	"seckill/internal/identity/recipient"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

// lives gives a user an address, which an order has too.
func (f *fixture) lives(user id.User, order id.Order) {
	f.t.Helper()
	home := recipient.Address{Recipient: recipient.Recipient{Name: "Lin", Phone: "13800001111", Country: "CN", City: "Hangzhou", Street: "90 Wensan Road"}}
	if _, err := recipient.NewBook(f.db, f.clock, testenv.Wait).Save(f.t.Context(), user, home, true); err != nil {
		f.t.Fatal(err)
	}
	err := f.db.WithTx(f.t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		_, err := recipient.Copy(ctx, tx, []recipient.Order{{ID: order, User: user}})
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
}

// addresses returns the number of stored addresses.
func (f *fixture) addresses() int {
	f.t.Helper()
	books, err := f.db.Ent.Address.Query().Count(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	orders, err := f.db.Ent.OrderRecipient.Query().Count(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	return books + orders
}
