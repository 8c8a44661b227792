package storefront

import (
	"context"
	"sync/atomic"

	"seckill/internal/id"
	"seckill/internal/notifier"
	"seckill/internal/sale"
	"seckill/internal/waitlist"
)

// PlaceKey is the status bus key of a buyer's waitlist entries in a sale.
func PlaceKey(saleID id.Sale, user id.User) string {
	return "place:" + saleID.String() + ":" + user.String()
}

// PlaceMark is the state of a waitlist entry on the bus.
type PlaceMark struct {
	Open bool // the entry is not ended
}

// MarkOf returns the mark of a waitlist entry.
func MarkOf(e *waitlist.Entry) PlaceMark { return PlaceMark{Open: e.Status.IsOpen()} }

// unknown is a number of buyers that was not read.
const unknown = -1

// placeWatch joins the states of a sale with those of one buyer's waitlist entries: it has
// a state after each change of either, until the sale ends.
type placeWatch struct {
	store *Storefront
	ctx   context.Context // of the subscription
	sale  id.Sale
	user  id.User
	sales *notifier.Follower[*sale.Sale]
	marks *notifier.Follower[PlaceMark]
	lines *notifier.Follower[int64] // of those who left the waitlists; nil without an open entry
	from  int64                     // revision at the start
	open  atomic.Bool               // whether the buyer has an open waitlist entry
	asked atomic.Bool               // Postgres was read since the sale has waitlist entries
	ahead int                       // buyers ahead before the last state was sent; unknown = not read
}

// watchPlace follows a buyer's waitlist entries in a sale. It costs nothing for a buyer
// without one: Postgres is read only for buyers who are known to have an entry.
func (s *Storefront) watchPlace(ctx context.Context, v *sale.Sale, user id.User) (_ *placeWatch, err error) {
	w := &placeWatch{store: s, ctx: ctx, sale: v.ID, user: user, ahead: unknown}
	w.open.Store(s.lined(v))
	w.marks, err = notifier.Follow(ctx, s.hub, PlaceKey(v.ID, user), w.load)
	return w, err
}

func (w *placeWatch) load(ctx context.Context) (notifier.State[PlaceMark], error) {
	state := notifier.State[PlaceMark]{Revision: 1}
	if w.open.Load() || !w.asked.Load() && w.lined(ctx) {
		place, err := w.store.waitlist.In(ctx, w.user, w.sale)
		if err != nil {
			return state, err
		}
		w.asked.Store(true)
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

// lined reports whether the sale has or had waitlist entries, as far as this process knows:
// it hears of the first one up to a second late.
func (w *placeWatch) lined(ctx context.Context) bool {
	v, err := w.store.find(ctx, w.sale)
	return err == nil && w.store.lined(v)
}

// Next implements notifier.Source. A state after a change of the waitlist entry is that of
// this buyer alone and has no key.
func (w *placeWatch) Next() (notifier.State[*sale.Sale], bool) {
	for {
		w.followLine()
		which, ok := notifier.Either(w.sales, w.marks, w.lines)
		if !ok {
			w.Close()
			return notifier.State[*sale.Sale]{}, false
		}
		var changed bool
		switch which {
		case 0:
			return w.sales.Next()
		case 1:
			mark, _ := w.marks.Next()
			w.open.Store(mark.Value.Open)
			w.followLine() // before the state is sent: a buyer who leaves meanwhile is a change
			changed = mark.Revision > w.from
		default:
			_, _ = w.lines.Next()
			changed = w.movedUp()
		}
		if v, err := w.store.find(w.ctx, w.sale); err == nil && changed {
			return notifier.State[*sale.Sale]{Value: v}, true
		}
	}
}

// followLine follows those who leave the waitlists while the buyer has an open entry.
func (w *placeWatch) followLine() {
	switch open := w.open.Load(); {
	case !open && w.lines != nil:
		w.lines.Close()
		w.lines = nil
	case open && w.lines == nil:
		lines, err := notifier.Follow(w.ctx, w.store.hub, lineKey(w.sale), func(context.Context) (notifier.State[int64], error) {
			revision := w.store.seen.lines.read(w.sale)
			return notifier.State[int64]{Value: revision, Revision: revision}, nil
		})
		if err != nil {
			return // the hub is full: changes of the entry are still sent
		}
		_, _ = lines.Next() // the snapshot
		w.lines = lines
		w.movedUp()
	}
}

// movedUp reads how many buyers are ahead, and reports whether fewer are than before, or
// whether either number is unknown: the receiver of the state reads it again.
func (w *placeWatch) movedUp() bool {
	before := w.ahead
	w.ahead = unknown
	entry, err := w.store.waitlist.In(w.ctx, w.user, w.sale)
	if err != nil {
		return true
	}
	if entry == nil || entry.Status != waitlist.Waiting {
		return false
	}
	ahead, err := w.store.waitlist.Ahead(w.ctx, entry)
	if err != nil {
		return true
	}
	w.ahead = ahead
	return before == unknown || ahead < before
}

// Close implements notifier.Source.
func (w *placeWatch) Close() {
	w.sales.Close()
	w.marks.Close()
	if w.lines != nil {
		w.lines.Close()
	}
}
