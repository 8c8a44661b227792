package checkout

import (
	"context"
	"errors"

	"seckill/internal/buy/access"
	"seckill/internal/buy/admission/risk"
	"seckill/internal/buy/reservation"
	"seckill/internal/buy/sale"
	"seckill/internal/buy/waitlist"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

// JoinWaitlist adds a user to the waitlist of an item of a rush, on what IssuePath asks: a place may lead
// to an order as a path token does. Joining again returns the same entry. For the refusals see
// waitlist.Service.Join.
func (c *Checkout) JoinWaitlist(ctx context.Context, in IssueInput) (*waitlist.Entry, error) {
	return c.join(ctx, in, waitlist.JoinInput{Quantity: 1})
}

// join adds a user to the waitlist of an item, or enters the user in its draw.
func (c *Checkout) join(ctx context.Context, in IssueInput, join waitlist.JoinInput) (*waitlist.Entry, error) {
	item, parent, err := c.findFor(ctx, in.Item, in.User)
	if err != nil {
		return nil, err
	}
	if parent.PreparedBy(in.User) {
		return nil, sale.OwnSale()
	}
	if err := checkDraw(parent, item, join); err != nil {
		return nil, err
	}
	now := reservation.Outcome{At: c.cfg.Stock.ServerTime()}
	if phase := parent.Phase(now.At, false); phase == sale.PhaseUpcoming {
		return nil, notOpen(phase, parent, now)
	}
	allowed, err := c.eligible(ctx, parent, in.User, access.Access.Open)
	if err != nil {
		return nil, err
	}
	persons, err := c.admit(ctx, risk.JoinWaitlist, parent, in)
	if err != nil {
		return nil, err
	}
	join.Sale, join.Item, join.User, join.Persons, join.From = parent.ID, item.ID, in.User, persons.Under(allowed), in.From
	join.Captcha, join.Waived, join.Closes = in.Captcha, !parent.Switches.CaptchaRequired, parent.EntriesCloseAt()
	join.Card = parent.Draw.Authorize
	entry, err := c.cfg.Waitlist.Join(ctx, join)
	switch reason := fault.ReasonOf(err); {
	case reason == fault.SaleClosed:
		return nil, notOpen(sale.PhaseEnded, parent, now)
	case reason == fault.SalePaused:
		return nil, notOpen(closedPhase(parent, now.At), parent, now)
	}
	if limit, ok := errors.AsType[reservation.LimitReached](err); ok {
		return nil, personLimit(parent, item.ID, limit) // which the gate's script does not return
	}
	return entry, err
}

// offerOf parses the token of an offer: the public id of the waitlist entry. It is used
// in place of a path token.
func offerOf(token string) (id.Waitlist, bool) {
	place, err := id.ParseWaitlist(token)
	return place, err == nil
}

// redeemOffer turns an offer into an order task, without captcha, permit or StockCache: the
// unit is already reserved.
func (c *Checkout) redeemOffer(ctx context.Context, parent *sale.Sale, item *sale.Item, in Attempt) (Result, error) {
	place, _ := offerOf(in.PathToken)
	if _, err := c.admits(ctx, parent, in.User, access.Access.Open); err != nil {
		return Result{}, err
	}
	attempt, err := c.newAttempt(in, parent, item)
	if err != nil {
		return Result{}, err
	}
	o, err := c.cfg.Waitlist.Redeem(ctx, place, attempt)
	if err != nil {
		return Result{}, err
	}
	return c.answer(ctx, parent, in, attempt, o)
}
