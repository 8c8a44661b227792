package graph

import (
	"context"
	"time"

	"seckill/graph/model"
	"seckill/internal/buy/draw"
	"seckill/internal/buy/reservation"
	"seckill/internal/buy/sale"
	"seckill/internal/buy/waitlist"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/id"
	"seckill/internal/platform/ratelimit"
)

// ownWaitlistEntry returns a waitlist entry of the caller, or nil.
func (r *Resolver) ownWaitlistEntry(ctx context.Context, entry id.Waitlist) (*waitlist.Entry, error) {
	e, err := ratelimit.Find(ctx, r.Absences,
		func(ctx context.Context) (*waitlist.Entry, error) { return r.Waitlist.Entry(ctx, entry) })
	if err != nil || e == nil || e.User != auth.PrincipalFrom(ctx).UserID {
		return nil, err
	}
	return e, nil
}

func toWaitlistEntry(e *waitlist.Entry) *model.WaitlistEntry {
	if e == nil {
		return nil
	}
	out := &model.WaitlistEntry{ID: e.ID, Status: e.Status, Quantity: e.Quantity, Nonce: unlessZero(e.Nonce), Source: e}
	if card, ok := entryCard(e); ok {
		out.Card = &card
	}
	if e.Line > 0 {
		rank := int(e.Line)
		out.Rank = &rank
	}
	if e.Status == waitlist.Offered {
		out.OfferExpiresAt = e.OfferExpiresAt
	}
	return out
}

// entryCard returns the state of the card of an entry; false where the draw asks for none.
func entryCard(e *waitlist.Entry) (model.EntryCard, bool) {
	switch {
	case e.Card == waitlist.NoCard:
		return "", false
	case e.Skipped == draw.ReasonLimit:
		return model.EntryCardLimitReached, true
	case e.Skipped == draw.ReasonCard:
		return model.EntryCardTooLate, true
	case e.Card == waitlist.CardDue && e.Status.IsOpen():
		return model.EntryCardDue, true
	case e.Card == waitlist.CardAuthorized && e.Status.IsOpen():
		return model.EntryCardAuthorized, true
	}
	return model.EntryCardDone, true
}

// numbersHidden reports whether a message must not contain units of an item.
func (r *Resolver) numbersHidden(ctx context.Context, item *sale.Item) bool {
	hidden, err := r.stockHidden(ctx, item)
	return hidden || err != nil
}

// soldOut converts a sold-out refusal. Its message says whether units may return to
// stock, and when.
func (r *Resolver) soldOut(ctx context.Context, v reservation.NoneLeft) model.SoldOutError {
	item := r.item(ctx, v.Item)
	out := model.SoldOutError{Code: v.Reason(), Message: message(ctx, v.Reason()), Path: inputPath(v), Source: item}
	if item == nil {
		return out
	}
	restock := r.Shop.RestockOutlook(item)
	out.WaitlistOpen = restock.Open
	hidden := r.numbersHidden(ctx, item)
	if !hidden {
		out.NextReleaseAt = restock.Next
	}
	if !hidden && restock.Unpaid > 0 {
		out.UnpaidUnits = &restock.Unpaid
	}
	switch {
	case v.Left > 0:
		if !hidden {
			out.UnitsLeft = &v.Left
		}
	case restock.Gone:
		out.Message = goneForGood.in(ctx)
	case restock.Unpaid > 0 && restock.Next != nil && !hidden:
		out.Message = soldOutUntil.with(ctx, restock.Unpaid, restock.Next.UTC().Format(time.RFC3339))
	case restock.Open:
		out.Message = soldOutForNow.in(ctx)
	}
	return out
}
