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

// placeWatch joins the states of a sale with those of one buyer's waitlist entries.
type placeWatch struct {
	store *Storefront
	sale  uuid.UUID
	user  uuid.UUID
	marks <-chan notifier.State[PlaceMark]
	from  int64       // revision at the start
	open  atomic.Bool // whether the buyer has an open waitlist entry
}

// watchPlace follows a buyer's waitlist entries in a sale. It costs nothing for a buyer
// without one: Postgres is read only for buyers who are known to have an entry.
func (s *Storefront) watchPlace(ctx context.Context, v *sale.Sale, user uuid.UUID) (_ *placeWatch, err error) {
	w := &placeWatch{store: s, sale: v.ID, user: user}
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

// join returns a state of the sale for the buyer after each change of the sale or of
// the waitlist entry, until the sale ends. It calls stop at its end.
func (w *placeWatch) join(ctx context.Context, stop func(), sales <-chan notifier.State[*sale.Sale]) <-chan notifier.State[*sale.Sale] {
	out := make(chan notifier.State[*sale.Sale])
	go func() {
		defer close(out)
		defer stop()
		var next notifier.State[*sale.Sale]
		var sink chan<- notifier.State[*sale.Sale] // out while there is a state to send
		put := func(state notifier.State[*sale.Sale]) {
			state.Snapshot = state.Snapshot || (sink != nil && next.Snapshot)
			next, sink = state, out
		}
		for sales != nil || sink != nil {
			select {
			case state, ok := <-sales:
				if !ok {
					sales = nil
					continue
				}
				put(state)
			case mark, ok := <-w.marks:
				if !ok {
					w.marks = nil
					continue
				}
				w.open.Store(mark.Value.Open)
				if v, err := w.store.find(ctx, w.sale); err == nil && mark.Revision > w.from {
					put(notifier.State[*sale.Sale]{Value: v, Terminal: next.Terminal})
				}
			case sink <- next:
				sink = nil
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}
