package checkout

import (
	"context"

	"seckill/internal/buy/access"
	"seckill/internal/buy/sale"
	"seckill/internal/identity/person"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

// RedeemCode gives a user the access of a code of the sale with a slug. A code is checked in memory: a guess
// costs no read. Repeating the call changes nothing. Refusals: CODE_INVALID, also where there is no such
// sale, CODE_OTHER_SALE, CODE_REVOKED, CODE_EXPIRED, CODE_USED, SALE_CLOSED.
func (c *Checkout) RedeemCode(ctx context.Context, user id.User, slug, typed string) (*sale.Sale, error) {
	catalog, err := c.cfg.Catalog.Snapshot(ctx)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, "The sales cannot be read now. Please try again shortly.", err)
	}
	now := c.cfg.Stock.ServerTime()
	check := func(v *sale.Sale) (access.Code, error) { return c.cfg.Codes.Check(v.ID, v.Codes, typed, now) }
	invalid := fault.Refused{Why: fault.CodeInvalid, At: []string{"code"}}
	of := catalog.BySlug(slug)
	if of == nil || !of.Public() {
		return nil, invalid
	}
	code, err := check(of)
	if fault.ReasonOf(err) == fault.CodeInvalid {
		for _, other := range catalog.Sales {
			if _, err := check(other); fault.ReasonOf(err) != fault.CodeInvalid {
				return nil, fault.Refused{Why: fault.CodeOtherSale, At: []string{"code"}}
			}
		}
	}
	if err != nil {
		return nil, err
	}
	if of.Phase(now, false) == sale.PhaseEnded || of.Status == sale.Cancelled {
		return nil, sale.NewNotOpen(sale.PhaseEnded, of.StartsAt, now)
	}
	if a, _, err := c.cfg.Members.Access(ctx, of, user); err != nil || a.Code == code {
		return of, err // also where the user has used it up
	}
	key := person.CodeOf(code.Index(), of.Codes.Find(code.Batch).Uses)
	left, err := c.cfg.Gate.CodeLeft(ctx, of.ID, key)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, "The sale cannot be reached now. Please try again shortly.", err)
	}
	if left == 0 {
		return nil, fault.Refused{Why: fault.CodeUsed, At: []string{"code"}}
	}
	return of, c.cfg.Members.Redeem(ctx, of.ID, user, code)
}
