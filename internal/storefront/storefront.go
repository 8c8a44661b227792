// Package storefront tells what a buyer sees: a sale's phase, an item's stock in
// numbers or words, and the one thing that the big button should do. It joins
// the catalogue (package sale), the gate as this process last saw it (package
// reservation) and the buyer's own orders (package order), and changes nothing.
package storefront

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"seckill/internal/fault"
	"seckill/internal/notifier"
	"seckill/internal/order"
	"seckill/internal/reservation"
	"seckill/internal/sale"
)

// Storefront answers reads about sales, and follows them.
type Storefront struct {
	catalog  *sale.Catalog
	board    *reservation.Board
	holdings *reservation.Holdings
	orders   *order.Store
	hub      *notifier.Hub
	seen     *sightings
}

// Config says what a storefront needs.
type Config struct {
	Catalog  *sale.Catalog
	Board    *reservation.Board
	Holdings *reservation.Holdings
	Orders   *order.Store
	Hub      *notifier.Hub
}

// New returns a storefront. Run makes it tell its followers of changes.
func New(cfg Config) *Storefront {
	return &Storefront{
		catalog: cfg.Catalog, board: cfg.Board, holdings: cfg.Holdings, orders: cfg.Orders,
		hub: cfg.Hub, seen: newSightings(),
	}
}

// Level is how much is left, in words.
type Level string

// Levels.
const (
	Plenty  Level = "PLENTY"  // more than half
	Limited Level = "LIMITED" // at most half
	Low     Level = "LOW"     // at most a tenth
	None    Level = "SOLD_OUT"
)

// Stock is what is left of an item.
type Stock struct {
	Level     Level
	Remaining int
	Total     int
	Revision  int64
	UpdatedAt time.Time
}

// Now returns the server's clock: the one that opens the gates.
func (s *Storefront) Now() time.Time { return s.board.ServerTime() }

// Catalog returns the catalogue, at most a second old.
func (s *Storefront) Catalog(ctx context.Context) (*sale.Snapshot, error) {
	snap, err := s.catalog.Snapshot(ctx)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, "the catalogue cannot be read", err)
	}
	return snap, nil
}

// Stock returns what is left of an item: live from the gate while the sale is
// loaded, from the catalogue otherwise.
func (s *Storefront) Stock(item *sale.Item) Stock {
	st := Stock{Remaining: item.Available, Total: item.Total, Revision: item.Revision, UpdatedAt: s.Now()}
	if v, ok := s.board.View(item.ID); ok {
		st = Stock{Remaining: v.Stock, Total: v.Total, Revision: v.Revision, UpdatedAt: v.ReadAt}
	}
	st.Level = level(st.Remaining, st.Total)
	return st
}

func level(remaining, total int) Level {
	switch {
	case remaining <= 0:
		return None
	case remaining*10 <= total:
		return Low
	case remaining*2 <= total:
		return Limited
	}
	return Plenty
}

// Phase returns what a buyer sees of a sale at now.
func (s *Storefront) Phase(v *sale.Sale, now time.Time) sale.Phase {
	soldOut, held := true, false
	for _, item := range v.Items {
		if view, ok := s.board.View(item.ID); ok {
			soldOut = soldOut && view.Stock == 0
			held = held || view.State == reservation.GatePaused || view.State == reservation.GateLoading
		} else {
			soldOut = soldOut && item.Available == 0
		}
	}
	phase := v.Phase(now, soldOut)
	if phase == sale.PhaseLive && held {
		return sale.PhasePaused
	}
	return phase
}

// Action is the one thing that the big button should do.
type Action string

// Actions.
const (
	ActionBuy        Action = "BUY"
	ActionNone       Action = "NONE"
	ActionPay        Action = "PAY"
	ActionViewOrder  Action = "VIEW_ORDER"
	ActionWait       Action = "WAIT"
	ActionWatchQueue Action = "WATCH_QUEUE"
)

// Viewer is a sale as one buyer stands to it.
type Viewer struct {
	Action         Action
	Phase          sale.Phase   // why the button does nothing, when it does nothing
	Order          *order.Order // the newest order here that still counts
	Task           *order.Task  // the newest attempt here, while it runs
	RemainingLimit int          // units that the buyer may still buy of one item
}

// Viewer tells how a buyer stands to a sale. It reads Redis once, and the
// database only when the buyer's order is in no cache.
func (s *Storefront) Viewer(ctx context.Context, v *sale.Sale, user uuid.UUID) (Viewer, error) {
	phase := s.Phase(v, s.Now())
	out := Viewer{Phase: phase, RemainingLimit: v.PurchaseLimit}
	held, err := s.holding(ctx, v, user)
	if err != nil {
		return out, err
	}
	switch {
	case held != nil:
		err = s.follow(ctx, held, &out)
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

// holding returns the newest hold of a user in a sale; nil when there is none.
func (s *Storefront) holding(ctx context.Context, v *sale.Sale, user uuid.UUID) (*reservation.Holder, error) {
	items := make([]uuid.UUID, len(v.Items))
	for i, item := range v.Items {
		items[i] = item.ID
	}
	held, err := s.holdings.Of(ctx, v.ID, items, user)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, "the sale cannot be read now", err)
	}
	var newest *reservation.Holder
	for _, h := range held {
		if newest == nil || h.At.After(newest.At) {
			newest = &h
		}
	}
	return newest, nil
}

func (s *Storefront) follow(ctx context.Context, held *reservation.Holder, out *Viewer) error {
	out.RemainingLimit = max(0, out.RemainingLimit-held.Quantity)
	task, err := s.orders.Task(ctx, held.Task)
	if err != nil || task == nil {
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
	switch phase {
	case sale.PhaseLive:
		return ActionBuy
	case sale.PhaseUpcoming:
		return ActionWait
	case sale.PhaseSoldOut, sale.PhasePaused, sale.PhaseEnded, sale.PhaseCancelled:
		return ActionNone
	}
	return ActionNone
}
