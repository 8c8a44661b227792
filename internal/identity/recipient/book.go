package recipient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"seckill/ent"
	"seckill/ent/address"
	"seckill/ent/orderrecipient"
	"seckill/internal/platform/batch"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
)

// MaxAddresses bounds the address book of a user.
const MaxAddresses = 5

// maxTries bounds the attempts at a change of one address book while other requests of the
// same user change it too.
const maxTries = 3

// Bounds of the check of many buyers at once: a query of 500 ids takes about a millisecond.
const (
	checkBatch   = 500
	checkFlight  = 2
	checkWaiting = 20_000

	// CheckTimeout is the timeout of one check.
	CheckTimeout = 2 * time.Second
)

// Address is an entry of a user's address book.
type Address struct {
	Recipient
	ID      id.Address
	Default bool // the one that new orders get; exactly one of a book that is not empty
}

// Book stores address books. It is safe for concurrent use.
type Book struct {
	db    *postgres.DB
	clock clock.Clock
	check *batch.Batcher[id.User, *Recipient]
}

// NewBook returns a Book. A nil clock is clock.System, a zero timeout of checks
// CheckTimeout.
func NewBook(db *postgres.DB, c clock.Clock, timeout time.Duration) *Book {
	if c == nil {
		c = clock.System{}
	}
	b := &Book{db: db, clock: c}
	b.check = batch.New(batch.Config[id.User, *Recipient]{
		Process: b.defaults, MaxBatch: checkBatch, MaxInFlight: checkFlight, MaxWaiting: checkWaiting,
		Timeout: cmp.Or(timeout, CheckTimeout),
	})
	return b
}

// List returns the addresses of a user, oldest first.
func (b *Book) List(ctx context.Context, user id.User) ([]Address, error) {
	rows, err := b.db.Ent.Address.Query().Where(address.UserID(user)).Order(ent.Asc(address.FieldID)).Limit(MaxAddresses).
		All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read addresses: %w", err)
	}
	list := collect.Map(rows, func(row *ent.Address) Address {
		return Address{fromAddress(row), row.ID, row.IsDefault}
	})
	return list, nil
}

// Save adds an address, or changes the one with an id (Nil = adds). The first address of
// a user is the default; makeDefault makes another one the default. Orders that exist keep
// the address that they have.
// Refusals: INVALID_INPUT; NOT_FOUND for an id that the user does not have; CONFLICT when
// the book is full.
func (b *Book) Save(ctx context.Context, user id.User, a Address, makeDefault bool) (Address, error) {
	var err error
	if a.Recipient, err = a.Ready(); err != nil {
		return Address{}, err
	}
	err = b.change(ctx, func(ctx context.Context, tx *ent.Tx) error {
		rows, err := tx.Address.Query().Where(address.UserID(user)).All(ctx)
		if err != nil {
			return err
		}
		known := slices.IndexFunc(rows, func(row *ent.Address) bool { return row.ID == a.ID })
		if !a.ID.IsZero() && known < 0 {
			return fault.Refused{Why: fault.Unknown, At: []string{"addressId"}}
		}
		a.Default = len(rows) == 0 || makeDefault || (known >= 0 && rows[known].IsDefault)
		if a.Default {
			if err := clearDefault(ctx, tx, user); err != nil {
				return err
			}
		}
		if known >= 0 {
			return tx.Address.UpdateOneID(a.ID).SetIsDefault(a.Default).SetName(a.Name).SetPhone(a.Phone).SetCountry(a.Country).
				SetRegion(a.Region).SetCity(a.City).SetStreet(a.Street).SetPostalCode(a.PostalCode).Exec(ctx)
		}
		slot := freeSlot(rows)
		if slot == MaxAddresses {
			return fault.Refused{Why: fault.Conflict, At: []string{}}
		}
		row, err := tx.Address.Create().SetID(id.New[id.Address]()).SetUserID(user).SetSlot(slot).SetIsDefault(a.Default).
			SetCreatedAt(b.clock.Now().UTC()).
			SetName(a.Name).SetPhone(a.Phone).SetCountry(a.Country).SetRegion(a.Region).SetCity(a.City).SetStreet(a.Street).
			SetPostalCode(a.PostalCode).Save(ctx)
		if err == nil {
			a.ID = row.ID
		}
		return err
	})
	if err != nil {
		return Address{}, err
	}
	return a, nil
}

// Remove removes an address. When it was the default, the oldest of the others becomes
// it. Removing one that is not there succeeds.
func (b *Book) Remove(ctx context.Context, user id.User, addressID id.Address) error {
	return b.change(ctx, func(ctx context.Context, tx *ent.Tx) error {
		if _, err := tx.Address.Delete().Where(address.UserID(user), address.ID(addressID)).Exec(ctx); err != nil {
			return err
		}
		rows, err := tx.Address.Query().Where(address.UserID(user)).Order(ent.Asc(address.FieldID)).All(ctx)
		if err != nil || len(rows) == 0 || slices.ContainsFunc(rows, func(row *ent.Address) bool { return row.IsDefault }) {
			return err
		}
		return tx.Address.UpdateOneID(rows[0].ID).SetIsDefault(true).Exec(ctx)
	})
}

// HasDefault reports whether a user has an address for new orders.
func (b *Book) HasDefault(ctx context.Context, user id.User) (bool, error) {
	r, err := b.Default(ctx, user)
	return r != nil, err
}

// Default returns the address of a user for new orders; nil = none. Requests that come at
// the same time share a query, so that a crowd costs few.
func (b *Book) Default(ctx context.Context, user id.User) (*Recipient, error) {
	r, err := b.check.Do(ctx, user)
	if errors.Is(err, batch.ErrFull) {
		return nil, fault.Wrap(fault.Overloaded, "Too many buyers at once. Please try again shortly.", err)
	}
	return r, err
}

func (b *Book) defaults(ctx context.Context, users []id.User) []batch.Result[*Recipient] {
	rows, err := b.db.Ent.Address.Query().Where(address.UserIDIn(users...), address.IsDefault(true)).All(ctx)
	if err != nil {
		return batch.Fail[*Recipient](len(users), fmt.Errorf("look for addresses: %w", err))
	}
	of := make(map[id.User]*Recipient, len(rows))
	for _, row := range rows {
		r := fromAddress(row)
		of[row.UserID] = &r
	}
	results := make([]batch.Result[*Recipient], len(users))
	for i, user := range users {
		results[i].Value = of[user]
	}
	return results
}

// change changes an address book. A concurrent change of the same book violates a unique
// index; then it starts again.
func (b *Book) change(ctx context.Context, do func(ctx context.Context, tx *ent.Tx) error) (err error) {
	for range maxTries {
		if err = b.db.WithTx(ctx, do); !postgres.IsUnique(err) {
			break
		}
	}
	if _, refused := fault.AsRefusal(err); err == nil || refused {
		return err
	}
	return fmt.Errorf("change addresses: %w", err)
}

func clearDefault(ctx context.Context, tx *ent.Tx, user id.User) error {
	return tx.Address.Update().Where(address.UserID(user), address.IsDefault(true)).SetIsDefault(false).Exec(ctx)
}

// freeSlot returns the lowest unused slot.
func freeSlot(rows []*ent.Address) int {
	for slot := range MaxAddresses {
		if !slices.ContainsFunc(rows, func(row *ent.Address) bool { return row.Slot == slot }) {
			return slot
		}
	}
	return MaxAddresses
}

// Forget removes the addresses of a user, and those of the user's orders, in the caller's
// transaction.
func Forget(ctx context.Context, tx *ent.Tx, user id.User) error {
	if _, err := tx.Address.Delete().Where(address.UserID(user)).Exec(ctx); err != nil {
		return fmt.Errorf("remove addresses: %w", err)
	}
	if _, err := tx.OrderRecipient.Delete().Where(orderrecipient.UserID(user)).Exec(ctx); err != nil {
		return fmt.Errorf("remove recipients of orders: %w", err)
	}
	return nil
}
