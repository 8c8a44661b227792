package storefront

import (
	"context"
	"sync/atomic"

	"seckill/internal/buy/sale"
	"seckill/internal/buy/waitlist"
	"seckill/internal/platform/id"
	"seckill/internal/platform/notifier"
)

// entryKey is the status bus key of a buyer's waitlist entries in a sale.
func entryKey(saleID id.Sale, user id.User) string {
	return "place:" + saleID.String() + ":" + user.String()
}

// EntryState is the state of a waitlist entry on the bus.
type EntryState struct {
	Open bool // the entry is not ended
}

// stateOf returns the state of a waitlist entry.
func stateOf(e *waitlist.Entry) EntryState { return EntryState{Open: e.Status.IsOpen()} }

// unknown is a number of buyers that was not read.
const unknown = -1

// entryWatch joins the states of a sale with those of one buyer's waitlist entries: it has
// a state after each change of either, until the sale ends.
type entryWatch struct {
	store      *Storefront
	ctx        context.Context // of the subscription
	sale       id.Sale
	user       id.User
	sales      *notifier.Follower[*sale.Sale]
	entries    *notifier.Follower[EntryState]
	departures *notifier.Follower[int64] // of buyers who left the waitlists; nil without an open entry
	from       int64                     // revision at the start
	open       atomic.Bool               // whether the buyer has an open waitlist entry
	asked      atomic.Bool               // Postgres was read since the sale has waitlist entries
	ahead      int                       // buyers ahead before the last state was sent; unknown = not read
}

// watchEntry follows a buyer's waitlist entries in a sale. It costs nothing for a buyer
// without one: Postgres is read only for buyers who are known to have an entry.
func (s *Storefront) watchEntry(ctx context.Context, v *sale.Sale, user id.User) (_ *entryWatch, err error) {
	w := &entryWatch{store: s, ctx: ctx, sale: v.ID, user: user, ahead: unknown}
	w.open.Store(s.hasEntries(v))
	w.entries, err = notifier.Follow(ctx, s.cfg.Hub, entryKey(v.ID, user), w.load)
	return w, err
}

func (w *entryWatch) load(ctx context.Context) (notifier.State[EntryState], error) {
	state := notifier.State[EntryState]{Revision: 1}
	if w.open.Load() || !w.asked.Load() && w.hasEntries(ctx) {
		entries, err := w.store.cfg.Waitlist.Entries(ctx, w.user, w.sale)
		if err != nil {
			return state, err
		}
		w.asked.Store(true)
		for n, entry := range entries {
			if n == 0 {
				state.Value = stateOf(entry)
			}
			state.Revision = max(state.Revision, entry.Moment()) // a change of any of them
		}
	}
	if w.from == 0 { // first event
		w.from = state.Revision
		w.open.Store(state.Value.Open)
	}
	return state, nil
}

// hasEntries reports whether the sale has or had waitlist entries, as far as this process
// knows: it learns of the first one up to a second late.
func (w *entryWatch) hasEntries(ctx context.Context) bool {
	v, err := w.store.find(ctx, w.sale)
	return err == nil && w.store.hasEntries(v)
}

// Next implements notifier.Source. A state after a change of the waitlist entry is that of
// this buyer alone and has no key.
func (w *entryWatch) Next() (notifier.State[*sale.Sale], bool) {
	for {
		w.followDepartures()
		which, ok := notifier.Either(w.sales, w.entries, w.departures)
		if !ok {
			w.Close()
			return notifier.State[*sale.Sale]{}, false
		}
		var changed bool
		switch which {
		case 0:
			return w.sales.Next()
		case 1:
			state, _ := w.entries.Next()
			w.open.Store(state.Value.Open)
			w.followDepartures() // before the state is sent: a buyer who leaves meanwhile is a change
			changed = state.Revision > w.from
		default:
			_, _ = w.departures.Next()
			changed = w.movedUp()
		}
		if v, err := w.store.find(w.ctx, w.sale); err == nil && changed {
			return notifier.State[*sale.Sale]{Value: v}, true
		}
	}
}

// followDepartures follows the buyers who leave the waitlists while the buyer has an open entry.
func (w *entryWatch) followDepartures() {
	switch open := w.open.Load(); {
	case !open && w.departures != nil:
		w.departures.Close()
		w.departures = nil
	case open && w.departures == nil:
		departures, err := notifier.Follow(w.ctx, w.store.cfg.Hub, departuresKey(w.sale),
			func(context.Context) (notifier.State[int64], error) {
				revision := w.store.seen.departures.read(w.sale)
				return notifier.State[int64]{Value: revision, Revision: revision}, nil
			})
		if err != nil {
			return // the hub is full: changes of the entry are still sent
		}
		_, _ = departures.Next() // the snapshot
		w.departures = departures
		w.movedUp()
	}
}

// movedUp reads how many buyers are ahead, and reports whether fewer are than before, or
// whether either number is unknown: the receiver of the state reads it again.
func (w *entryWatch) movedUp() bool {
	before := w.ahead
	w.ahead = unknown
	entry, err := w.store.cfg.Waitlist.In(w.ctx, w.user, w.sale)
	if err != nil {
		return true
	}
	if entry == nil || entry.Status != waitlist.Waiting {
		return false
	}
	ahead, err := w.store.cfg.Waitlist.Ahead(w.ctx, entry)
	if err != nil {
		return true
	}
	w.ahead = ahead
	return before == unknown || ahead < before
}

// Close implements notifier.Source.
func (w *entryWatch) Close() {
	w.sales.Close()
	w.entries.Close()
	if w.departures != nil {
		w.departures.Close()
	}
}
