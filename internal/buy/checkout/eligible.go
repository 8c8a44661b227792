package checkout

import (
	"context"
	"time"

	"seckill/internal/buy/access"
	"seckill/internal/buy/member"
	"seckill/internal/buy/sale"
	"seckill/internal/identity/account"
	"seckill/internal/identity/person"
	"seckill/internal/identity/recipient"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

// eligible refuses a buyer who lacks what the sale requires: access now, an address, a verified
// contact, an older account. Place does not ask again: it needs a path token or an offer,
// which only admitted buyers have. The writer of orders refuses a buyer who removed the
// address since. It returns the keys under which the access of the buyer is counted.
func (c *Checkout) eligible(ctx context.Context, parent *sale.Sale, user id.User,
	may func(access.Access, time.Time) bool) (person.Keys, error) {
	keys, err := c.admits(ctx, parent, user, may)
	if err != nil {
		return person.Keys{}, err
	}
	if parent.Requires != (sale.Requirements{}) {
		buyer, err := c.buyer(ctx, user)
		switch {
		case err != nil:
			return person.Keys{}, err
		case parent.TooNew(buyer.CreatedAt):
			return person.Keys{}, fault.Refused{Why: fault.AccountTooNew, At: []string{"itemId"}}
		case parent.Requires.VerifiedContact && !buyer.Verified:
			return person.Keys{}, fault.Refused{Why: fault.ContactUnverified, At: []string{"itemId"}}
		}
	}
	needs, err := c.NeedsAddress(ctx, parent, user)
	if err == nil && needs {
		err = recipient.Required()
	}
	return keys, err
}

// admits refuses a buyer whose access to a sale with rules does not allow something now. Rules are
// fixed when a sale is approved, and an account only gains access with time: a path token was issued
// under the rules of its sale, and Place asks again for offers alone, which may be days old. It
// returns the keys under which the access of the buyer is counted.
func (c *Checkout) admits(ctx context.Context, parent *sale.Sale, user id.User,
	may func(access.Access, time.Time) bool) (person.Keys, error) {
	a, restricted, err := c.cfg.Members.Access(ctx, parent, user)
	if err != nil || !restricted {
		return person.Keys{}, err
	}
	if now := c.cfg.Stock.ServerTime(); !may(a, now) {
		return person.Keys{}, sale.NoAccess{Sale: parent, Access: a, ServerTime: now}
	}
	return member.Keys(parent, a), nil
}

// NeedsAddress reports whether a buyer has to add an address before buying in a sale.
func (c *Checkout) NeedsAddress(ctx context.Context, parent *sale.Sale, user id.User) (bool, error) {
	if !parent.RequiresAddress {
		return false, nil
	}
	has, err := c.cfg.Book.HasDefault(ctx, user)
	return !has, err
}

// NeedsContact reports whether a buyer has to verify the contact before buying in a sale.
func (c *Checkout) NeedsContact(ctx context.Context, parent *sale.Sale, user id.User) (bool, error) {
	if !parent.Requires.VerifiedContact {
		return false, nil
	}
	buyer, err := c.buyer(ctx, user)
	return err == nil && !buyer.Verified, err
}

// TooNew reports whether the account of a buyer is younger than a sale requires.
func (c *Checkout) TooNew(ctx context.Context, parent *sale.Sale, user id.User) (bool, error) {
	if parent.Requires.AccountAge == 0 {
		return false, nil
	}
	buyer, err := c.buyer(ctx, user)
	return err == nil && parent.TooNew(buyer.CreatedAt), err
}

// buyer returns the account of a user as the directory has it, at most seconds old.
func (c *Checkout) buyer(ctx context.Context, user id.User) (*account.User, error) {
	u, err := c.cfg.Users.User(ctx, user)
	if err == nil && u == nil {
		err = fault.New(fault.Unauthenticated, "the account is gone; sign in")
	}
	return u, err
}

// personsOf returns the keys by which the limits of a sale count a buyer beside the account, deleted
// accounts of the contact always. An account without a contact, of another system that names none,
// is counted alone.
func (c *Checkout) personsOf(ctx context.Context, parent *sale.Sale, user id.User) (person.Keys, error) {
	var keys person.Keys
	buyer, err := c.buyer(ctx, user)
	if err != nil {
		return keys, err
	}
	if contact, ok := buyer.Contact(); ok && parent.LimitBy.Contact {
		keys.Contact = c.cfg.Persons.Contact(parent.ID, contact, buyer.Verified)
	} else if ok {
		keys.Former[0] = c.cfg.Persons.Former(parent.ID, contact, buyer.Verified)
	}
	if parent.LimitBy.Address {
		to, err := c.cfg.Book.Default(ctx, user)
		if err != nil {
			return keys, err
		}
		if to != nil {
			keys.Address = c.cfg.Persons.Address(parent.ID, to.Place())
		}
	}
	return keys, nil
}
