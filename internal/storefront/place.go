package storefront

import (
	"context"
	"sync/atomic"

	"github.com/google/uuid"

	"seckill/internal/notifier"
	"seckill/internal/sale"
	"seckill/internal/waitlist"
)

// PlaceKey is the status bus key of a buyer's waitlist entries in a sale.
func PlaceKey(saleID, user uuid.UUID) string { return "place:" + saleID.String() + ":" + user.String() }

// PlaceMark is the state of a waitlist entry on the bus.
type PlaceMark struct {
	Open bool // the entry is not ended
}

// MarkOf returns the mark of a waitlist entry.
func MarkOf(e *waitlist.Entry) PlaceMark { return PlaceMark{Open: e.Status.IsOpen()} }

// placeWatch joins the states of a sale with those of one buyer's waitlist entries: it has
// a state after each change of either, until the sale ends.
type placeWatch struct {
	store *Storefront
	ctx   context.Context // of the subscription
	sale  uuid.UUID
	user  uuid.UUID
	sales *notifier.Follower[*sale.Sale]
	marks *notifier.Follower[PlaceMark]
	from  int64       // revision at the start
	open  atomic.Bool // whether the buyer has an open waitlist entry
}

// watchPlace follows a buyer's waitlist entries in a sale. It costs nothing for a buyer
// without one: Postgres is read only for buyers who are known to have an entry.
func (s *Storefront) watchPlace(ctx context.Context, v *sale.Sale, user uuid.UUID) (_ *placeWatch, err error) {
	w := &placeWatch{store: s, ctx: ctx, sale: v.ID, user: user}
	w.open.Store(s.lined(v))
	w.marks, err = notifier.Follow(ctx, s.hub, PlaceKey(v.ID, user), w.load)
	return w, err
}

func (w *placeWatch) load(ctx context.Context) (notifier.State[PlaceMark], error) {
	state := notifier.State[PlaceMark]{Revision: 1}
	if w.open.Load() {
		place, err := w.store.waitlist.In(ctx, w.user, w.sale)
		if err != nil {
			return state, err
		}
		if place != nil {
			state.Value, state.Revision = MarkOf(place), place.Moment()
		}
	}
	if w.from == 0 { // first event
		w.from = state.Revision
		w.open.Store(state.Value.Open)
	}
	return state, nil
}

// Next implements notifier.Source. A state after a change of the waitlist entry is that of
// this buyer alone and has no key.
func (w *placeWatch) Next() (notifier.State[*sale.Sale], bool) {
	for {
		ofSale, ok := notifier.Either(w.sales, w.marks)
		if !ok {
			w.Close()
			return notifier.State[*sale.Sale]{}, false
		}
		if ofSale {
			return w.sales.Next()
		}
		mark, _ := w.marks.Next()
		w.open.Store(mark.Value.Open)
		if v, err := w.store.find(w.ctx, w.sale); err == nil && mark.Revision > w.from {
			return notifier.State[*sale.Sale]{Value: v}, true
		}
	}
}

// Close implements notifier.Source.
func (w *placeWatch) Close() {
	w.sales.Close()
	w.marks.Close()
}
