package checkout

import (
	"context"
	"time"

	"seckill/internal/buy/sale"
	"seckill/internal/buy/waitlist"
	"seckill/internal/platform/captcha"
	"seckill/internal/platform/fault"
)

// EnterDraw enters a user in the draw of an item, on what JoinWaitlist asks and with its refusals;
// EntriesClosed after its time, CONFLICT in a sale that is no draw. Entering again returns the
// same entry, whose quantity and nonce stay.
func (c *Checkout) EnterDraw(ctx context.Context, in IssueInput, quantity int) (*waitlist.Entry, error) {
	return c.join(ctx, in, waitlist.JoinInput{Quantity: quantity, Nonce: in.Nonce})
}

// checkDraw refuses what does not suit the mode of a sale, and a quantity above its limits.
func checkDraw(parent *sale.Sale, item *sale.Item, in waitlist.JoinInput) error {
	switch {
	case in.Nonce == "" && parent.Draw.On():
		return drawSale()
	case in.Nonce == "":
		return nil
	case !parent.Draw.On():
		return fault.Refused{Why: fault.Conflict, At: []string{"itemId"}}
	}
	most := item.PurchaseLimit
	if parent.PurchaseLimit > 0 {
		most = min(most, parent.PurchaseLimit)
	}
	switch {
	case in.Quantity < 1:
		return fault.BadField{At: []string{"quantity"}, Rule: fault.Min(1)}
	case in.Quantity > most:
		return fault.BadField{At: []string{"quantity"}, Rule: fault.Max(most)}
	}
	return nil
}

// drawSale refuses what gives units to the first buyers.
func drawSale() error { return fault.Refused{Why: fault.DrawSale, At: []string{"itemId"}} }

// drawCaptcha returns the refusal of a captcha for a draw; nil while it takes entries.
func drawCaptcha(purpose captcha.Purpose, parent *sale.Sale, now time.Time) error {
	switch {
	case purpose != captcha.Waitlist:
		return fault.Refused{Why: fault.DrawSale}
	case !now.Before(parent.EntriesCloseAt()):
		return fault.Refused{Why: fault.EntriesClosed}
	}
	return nil
}
