package storefront

import (
	"context"
	"slices"
	"time"

	"seckill/internal/buy/access"
	"seckill/internal/buy/admission/queue"
	"seckill/internal/buy/member"
	"seckill/internal/buy/order"
	"seckill/internal/buy/reservation"
	"seckill/internal/buy/sale"
	"seckill/internal/buy/waitlist"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

// Action is the next action for a buyer, shown as the main button.
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

	ActionEnterDraw     Action = "ENTER_DRAW"
	ActionInDraw        Action = "IN_DRAW"
	ActionOnWaitlist    Action = "ON_WAITLIST"
	ActionInWaitingRoom Action = "IN_WAITING_ROOM"
)

// maxItems is the most items of a sale.
const maxItems = 20

// Viewer is the state of a sale for one buyer.
type Viewer struct {
	Action         Action
	Phase          sale.Phase      // reason when no action is possible
	Order          *order.Order    // the newest order in the sale that is still live
	Task           *order.Task     // the newest task in the sale, while it is unfinished
	Entry          *waitlist.Entry // the open waitlist entry, otherwise the newest
	Ticket         *queue.Ticket   // the position in a waiting room, while it waits
	Gone           bool            // sold out, and no unit can return
	Prepared       bool            // see sale.PreparedBy: the user cannot buy in it
	Restricted     bool            // the sale has access rules
	Access         access.Access   // under them
	RemainingLimit int             // most units that the limits allow the next order, of whichever item
	Items          []ItemViewer    // by position
}

// ItemViewer is the state of an item for one buyer.
type ItemViewer struct {
	Item           *sale.Item
	Held           *reservation.Reservation // of the buyer; nil = none
	Entry          *waitlist.Entry          // open waitlist entry of the buyer; nil = none
	RemainingLimit int                      // most units of the item that the limits allow the next order
}

// Viewer returns the state of a sale for a buyer. It reads Redis once, and Postgres
// only when no cache has the buyer's order or the sale has a waitlist.
func (s *Storefront) Viewer(ctx context.Context, v *sale.Sale, user id.User) (Viewer, error) {
	out := Viewer{Gone: s.gone(v), Prepared: v.PreparedBy(user)}
	var err error
	if out.Access, out.Restricted, err = s.cfg.Members.Access(ctx, v, user); err != nil {
		return out, err
	}
	phase := s.phaseFor(v, member.Share(out.Access), s.Now())
	out.Phase = phase
	all, hasEntries, err := s.holding(ctx, v, user)
	if err != nil {
		return out, err
	}
	held := newest(all)
	var entries []*waitlist.Entry
	if hasEntries || s.hasEntries(v) {
		if entries, err = s.cfg.Waitlist.Entries(ctx, user, v.ID); err != nil {
			return out, err
		}
	}
	if len(entries) > 0 {
		out.Entry = entries[0]
	}
	out.Items, out.RemainingLimit = remaining(v, all, entries)
	switch {
	case held != nil && out.Entry != nil && out.Entry.ID == id.Waitlist(held.Task):
	case held != nil:
		err = s.follow(ctx, v, held, &out)
	case v.SettledAt != nil: // Redis has removed its keys
		out.Order, err = s.newestOrder(ctx, v.ID, user)
	case phase == sale.PhaseLive || phase == sale.PhaseUpcoming || phase == sale.PhaseSoldOut || phase == sale.PhasePaused:
		out.Ticket, err = s.cfg.Queue.Of(ctx, v.ID, itemsOf(v), user)
	}
	if err != nil {
		return out, err
	}
	out.Action = action(phase, out, s.Now())
	if v.Draw.On() && out.Action == ActionBuy {
		out.Action = drawAction(v, out.Entry, s.Now())
	}
	return out, nil
}

// remaining returns the items of a sale for a buyer, and the most units that the next
// order may have. An offer of the waitlist may be redeemed; beside any other reservation
// there is no second order of the item.
func remaining(v *sale.Sale, held map[id.Item]reservation.Reservation, entries []*waitlist.Entry) (items []ItemViewer,
	most int) {
	units := 0
	for _, r := range held {
		units += r.Quantity
	}
	for _, item := range v.Items {
		one := ItemViewer{Item: item, RemainingLimit: item.PurchaseLimit}
		if v.PurchaseLimit > 0 {
			one.RemainingLimit = max(0, min(item.PurchaseLimit, v.PurchaseLimit-units))
		}
		for _, entry := range entries {
			if entry.Item == item.ID && entry.Status.IsOpen() {
				one.Entry = entry
			}
		}
		if r, ok := held[item.ID]; ok {
			one.Held, one.RemainingLimit = &r, 0
			if one.Entry != nil && one.Entry.ID == id.Waitlist(r.Task) {
				one.RemainingLimit = r.Quantity
			}
		}
		items, most = append(items, one), max(most, one.RemainingLimit)
	}
	return items, most
}

// newestOrder returns the newest order of a user in a sale that is still live, or nil.
func (s *Storefront) newestOrder(ctx context.Context, saleID id.Sale, user id.User) (*order.Order, error) {
	page, err := s.cfg.Orders.ListByUser(ctx, user, order.ListInput{
		Filter: order.Filter{Sale: saleID, Statuses: order.Live()}, Limit: 1,
	})
	if err != nil || len(page.Orders) == 0 {
		return nil, err
	}
	return page.Orders[0], nil
}

// holding returns the reservations of a user in a sale, by item, and whether the
// sale has a waitlist, so that a new waitlist entry is visible at once in every
// process.
func (s *Storefront) holding(ctx context.Context, v *sale.Sale, user id.User) (map[id.Item]reservation.Reservation,
	bool, error) {
	var soldOut []id.Item
	for _, item := range v.Items {
		if view, ok := s.cfg.Stock.View(item.ID); !ok || view.ForSale(s.Now()) == 0 {
			soldOut = append(soldOut, item.ID)
		}
	}
	held, hasEntries, err := s.cfg.Gate.ReservationsAndWaitlist(ctx, v.ID, itemsOf(v), user, soldOut)
	if err != nil {
		return nil, false, fault.Wrap(fault.Unavailable, "The sale cannot be read now. Please try again shortly.", err)
	}
	return held, hasEntries, nil
}

// newest returns the newest of a buyer's reservations, or nil.
func newest(held map[id.Item]reservation.Reservation) (last *reservation.Reservation) {
	for _, h := range held {
		if last == nil || h.At.After(last.At) {
			last = &h
		}
	}
	return last
}

// ItemTask returns the unfinished task of a buyer's reservation of an item, or nil.
func (s *Storefront) ItemTask(ctx context.Context, v ItemViewer) (*order.Task, error) {
	if v.Held == nil {
		return nil, nil
	}
	task, err := s.cfg.Orders.Task(ctx, v.Held.Task, v.Held.User)
	if err != nil || task == nil || task.Status != order.Submitted {
		return nil, err
	}
	return task, nil
}

// ItemOrder returns the live order of a buyer's reservation of an item, or nil. A
// reacquired reservation has another name than its order.
func (s *Storefront) ItemOrder(ctx context.Context, v ItemViewer) (*order.Order, error) {
	if v.Held == nil {
		return nil, nil
	}
	o, err := s.cfg.Orders.OrderFor(ctx, id.Order(v.Held.Task), v.Held.User, false)
	if err != nil || o != nil {
		return o, err
	}
	page, err := s.cfg.Orders.ListByUser(ctx, v.Held.User, order.ListInput{
		Filter: order.Filter{Sale: v.Item.SaleID, Statuses: order.Live()}, Limit: maxItems,
	})
	for _, o := range page.Orders {
		if o.Item == v.Item.ID {
			return o, err
		}
	}
	return nil, err
}

func itemsOf(v *sale.Sale) []id.Item {
	return collect.Map(v.Items, func(item *sale.Item) id.Item { return item.ID })
}

// follow returns the owner of a buyer's reservation: a task, an order, or an offer of
// the waitlist.
func (s *Storefront) follow(ctx context.Context, v *sale.Sale, held *reservation.Reservation, out *Viewer) error {
	task, err := s.cfg.Orders.Task(ctx, held.Task, held.User)
	if err != nil {
		return err
	}
	if task == nil {
		if out.Entry, err = s.cfg.Waitlist.Entry(ctx, id.Waitlist(held.Task)); err != nil || out.Entry != nil {
			return err
		}
	}
	if task == nil { // a reacquired reservation has another name than its order
		out.Order, err = s.newestOrder(ctx, v.ID, held.User)
		return err
	}
	switch task.Status {
	case order.Submitted:
		out.Task = task
	case order.Succeeded:
		out.Order, err = s.cfg.Orders.Order(ctx, task.OrderID)
	case order.Failed: // its unit is being returned
	}
	return err
}

// drawAction returns the action of a buyer who could buy in a rush.
func drawAction(v *sale.Sale, e *waitlist.Entry, now time.Time) Action {
	switch {
	case e != nil && e.Status == waitlist.Offered:
		return ActionBuy
	case e != nil && e.Status == waitlist.Entered:
		return ActionInDraw
	case e != nil && e.Status == waitlist.Waiting:
		return ActionOnWaitlist
	case now.Before(v.EntriesCloseAt()):
		return ActionEnterDraw
	}
	return ActionNone
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
	if v.Prepared {
		return ActionNone
	}
	offered := v.Entry != nil && v.Entry.Status == waitlist.Offered
	if v.Ticket != nil && phase != sale.PhasePaused && !offered {
		return ActionInWaitingRoom
	}
	if v.Restricted && !offered && !v.Access.Waits(now) {
		switch phase {
		case sale.PhaseUpcoming, sale.PhaseLive, sale.PhaseSoldOut:
			if v.Access.Rule != nil {
				return ActionWait
			}
			return ActionNone
		case sale.PhasePaused, sale.PhaseEnded, sale.PhaseCancelled:
		}
	}
	switch phase {
	case sale.PhaseLive:
		return ActionBuy
	case sale.PhaseUpcoming:
		return ActionWait
	case sale.PhaseSoldOut:
		switch {
		case offered:
			return ActionBuy
		case v.Entry != nil && v.Entry.Status == waitlist.Waiting:
			return ActionOnWaitlist
		case !v.Gone:
			return ActionJoinWaitlist
		}
	case sale.PhasePaused, sale.PhaseEnded, sale.PhaseCancelled:
		return ActionNone
	}
	return ActionNone
}
