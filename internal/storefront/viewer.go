package storefront

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"seckill/internal/fault"
	"seckill/internal/order"
	"seckill/internal/reservation"
	"seckill/internal/sale"
	"seckill/internal/waitlist"
)

// Action is the one thing that the big button should do.
type Action string

// Actions.
const (
	ActionBuy          Action = "BUY"
	ActionJoinWaitlist Action = "JOIN_WAITLIST"
	ActionNone         Action = "NONE"
	ActionPay          Action = "PAY"
	ActionViewOrder    Action = "VIEW_ORDER"
	ActionWait         Action = "WAIT"
	ActionWatchQueue   Action = "WATCH_QUEUE"
)

// Viewer is a sale as one buyer stands to it.
type Viewer struct {
	Action         Action
	Phase          sale.Phase      // why the button does nothing, when it does nothing
	Order          *order.Order    // the newest order here that still counts
	Task           *order.Task     // the newest attempt here, while it runs
	Place          *waitlist.Entry // the place in line; the newest when none is open
	Gone           bool            // nothing can come back of what is sold out
	RemainingLimit int             // units that the buyer may still buy of one item
}

// Viewer returns how a buyer stands to a sale. It reads Redis once, and the
// database only when the buyer's order is in no cache, or people wait in line.
func (s *Storefront) Viewer(ctx context.Context, v *sale.Sale, user uuid.UUID) (Viewer, error) {
	phase := s.Phase(v, s.Now())
	out := Viewer{Phase: phase, RemainingLimit: v.PurchaseLimit, Gone: s.gone(v)}
	held, lined, err := s.holding(ctx, v, user)
	if err != nil {
		return out, err
	}
	if lined || s.lined(v) {
		if out.Place, err = s.waitlist.In(ctx, user, v.ID); err != nil {
			return out, err
		}
	}
	switch {
	case held != nil && out.Place != nil && out.Place.ID == held.Task:
	case held != nil:
		err = s.follow(ctx, v, held, &out)
	case v.SettledAt != nil: // Redis has let go of it
		out.Order, err = s.newestOrder(ctx, v.ID, user)
	}
	if err != nil {
		return out, err
	}
	out.Action = action(phase, out, s.Now())
	return out, nil
}

// newestOrder returns the newest order of a user in a sale that still counts; nil
// when there is none.
func (s *Storefront) newestOrder(ctx context.Context, saleID, user uuid.UUID) (*order.Order, error) {
	page, err := s.orders.ListByUser(ctx, user, order.ListInput{Filter: order.Filter{Sale: saleID, Statuses: order.Live()}, Limit: 1})
	if err != nil || len(page.Orders) == 0 {
		return nil, err
	}
	return page.Orders[0], nil
}

// holding returns the newest hold of a user in a sale, nil when there is none, and
// whether people wait in line: who has joined sees the place at once, in whatever
// process.
func (s *Storefront) holding(ctx context.Context, v *sale.Sale, user uuid.UUID) (*reservation.Reservation, bool, error) {
	items := make([]uuid.UUID, len(v.Items))
	var soldOut []uuid.UUID
	for i, item := range v.Items {
		items[i] = item.ID
		if view, ok := s.stock.View(item.ID); !ok || view.ForSale(s.Now()) == 0 {
			soldOut = append(soldOut, item.ID)
		}
	}
	held, lined, err := s.gate.ReservationsAndWaitlist(ctx, v.ID, items, user, soldOut)
	if err != nil {
		return nil, false, fault.Wrap(fault.Unavailable, "the sale cannot be read now", err)
	}
	var newest *reservation.Reservation
	for _, h := range held {
		if newest == nil || h.At.After(newest.At) {
			newest = &h
		}
	}
	return newest, lined, nil
}

// follow finds what a buyer holds units for: an attempt, an order, or an offer of
// the waitlist.
func (s *Storefront) follow(ctx context.Context, v *sale.Sale, held *reservation.Reservation, out *Viewer) error {
	task, err := s.orders.Task(ctx, held.Task)
	if err != nil {
		return err
	}
	if task == nil {
		if out.Place, err = s.waitlist.Entry(ctx, held.Task); err != nil || out.Place != nil {
			return err
		}
	}
	out.RemainingLimit = max(0, out.RemainingLimit-held.Quantity)
	if task == nil { // an order that took its units again holds them under another name
		out.Order, err = s.newestOrder(ctx, v.ID, held.User)
		return err
	}
	switch task.Status {
	case order.Submitted:
		out.Task = task
	case order.Succeeded:
		out.Order, err = s.orders.Order(ctx, task.OrderID)
	case order.Failed: // its unit is on the way back
	}
	return err
}

func action(phase sale.Phase, v Viewer, now time.Time) Action {
	switch {
	case v.Task != nil:
		return ActionWatchQueue
	case v.Order != nil && slices.Contains(v.Order.Actions(now), order.ActionPay):
		return ActionPay
	case v.Order != nil:
		return ActionViewOrder
	}
	offered := v.Place != nil && v.Place.Status == waitlist.Offered
	switch phase {
	case sale.PhaseLive:
		return ActionBuy
	case sale.PhaseUpcoming:
		return ActionWait
	case sale.PhaseSoldOut:
		switch {
		case offered:
			return ActionBuy
		case !v.Gone:
			return ActionJoinWaitlist
		}
	case sale.PhasePaused, sale.PhaseEnded, sale.PhaseCancelled:
		return ActionNone
	}
	return ActionNone
}
