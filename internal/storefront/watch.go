package storefront

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"seckill/internal/fault"
	"seckill/internal/notifier"
	"seckill/internal/order"
	"seckill/internal/sale"
)

const (
	// phaseEvery is how often phases are looked at: how late a client learns of an
	// opening by push. Its own clock tells it on the second.
	phaseEvery = 200 * time.Millisecond
	// stockEvery bounds the stock events of a sale to two per second.
	stockEvery = 500 * time.Millisecond
)

// TaskKey names an order task on the status bus.
func TaskKey(task uuid.UUID) string { return "task:" + task.String() }

// OrderKey names an order on the status bus.
func OrderKey(o uuid.UUID) string { return "order:" + o.String() }

func saleKey(v uuid.UUID) string  { return "sale:" + v.String() }
func stockKey(v uuid.UUID) string { return "stock:" + v.String() }

// errGone ends a stream whose subject is not there any more.
func errGone(what string) error { return fault.New(fault.NotFound, "There is no such "+what+".") }

// WatchTask follows an order task to its end.
func (s *Storefront) WatchTask(ctx context.Context, taskID uuid.UUID) (<-chan notifier.State[*order.Task], error) {
	return notifier.Follow(ctx, s.hub, TaskKey(taskID), func(ctx context.Context) (notifier.State[*order.Task], error) {
		t, err := s.orders.Task(ctx, taskID)
		if err == nil && t == nil {
			err = errGone("attempt")
		}
		if err != nil {
			return notifier.State[*order.Task]{}, err
		}
		return notifier.State[*order.Task]{Value: t, Revision: t.Revision, Terminal: t.Ended()}, nil
	})
}

// WatchOrder follows an order to its end.
func (s *Storefront) WatchOrder(ctx context.Context, orderID uuid.UUID) (<-chan notifier.State[*order.Order], error) {
	return notifier.Follow(ctx, s.hub, OrderKey(orderID), func(ctx context.Context) (notifier.State[*order.Order], error) {
		o, err := s.orders.Order(ctx, orderID)
		if err == nil && o == nil {
			err = errGone("order")
		}
		if err != nil {
			return notifier.State[*order.Order]{}, err
		}
		return notifier.State[*order.Order]{Value: o, Revision: o.Version, Terminal: o.Status.Ended()}, nil
	})
}

// WatchStatus follows what a buyer sees of a sale, to its end: what everybody sees,
// and the buyer's own place in line. Nobody's is uuid.Nil.
func (s *Storefront) WatchStatus(ctx context.Context, saleID, user uuid.UUID) (<-chan notifier.State[*sale.Sale], error) {
	if user == uuid.Nil {
		return s.watchPhase(ctx, saleID)
	}
	v, err := s.find(ctx, saleID)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	place, err := s.watchPlace(ctx, v, user)
	if err != nil {
		stop()
		return nil, err
	}
	sales, err := s.watchPhase(ctx, saleID)
	if err != nil {
		stop()
		return nil, err
	}
	return place.join(ctx, stop, sales), nil
}

// watchPhase follows what everybody sees of a sale.
func (s *Storefront) watchPhase(ctx context.Context, saleID uuid.UUID) (<-chan notifier.State[*sale.Sale], error) {
	return notifier.Follow(ctx, s.hub, saleKey(saleID), func(ctx context.Context) (notifier.State[*sale.Sale], error) {
		revision := s.seen.phase(saleID)
		v, err := s.find(ctx, saleID)
		if err != nil {
			return notifier.State[*sale.Sale]{}, err
		}
		return notifier.State[*sale.Sale]{Value: v, Revision: revision, Terminal: s.over(v)}, nil
	})
}

// WatchStock follows the stock of a sale's items, to the end of the sale.
func (s *Storefront) WatchStock(ctx context.Context, saleID uuid.UUID) (<-chan notifier.State[[]*sale.Item], error) {
	return notifier.Follow(ctx, s.hub, stockKey(saleID), func(ctx context.Context) (notifier.State[[]*sale.Item], error) {
		revision := s.seen.stock(saleID)
		v, err := s.find(ctx, saleID)
		if err != nil {
			return notifier.State[[]*sale.Item]{}, err
		}
		return notifier.State[[]*sale.Item]{Value: v.Items, Revision: revision, Terminal: s.over(v)}, nil
	})
}

func (s *Storefront) find(ctx context.Context, saleID uuid.UUID) (*sale.Sale, error) {
	snap, err := s.Catalog(ctx)
	if err != nil {
		return nil, err
	}
	v := snap.Sale(saleID)
	if v == nil {
		return nil, errGone("sale")
	}
	return v, nil
}

// over reports whether nothing more will happen to a sale for buyers.
func (s *Storefront) over(v *sale.Sale) bool {
	switch s.Phase(v, s.Now()) {
	case sale.PhaseEnded, sale.PhaseCancelled:
		return true
	case sale.PhaseUpcoming, sale.PhaseLive, sale.PhaseSoldOut, sale.PhasePaused:
		return false
	}
	return false
}

// Run looks at the phases and the stock of all sales and tells the hub what
// changed, until ctx ends.
func (s *Storefront) Run(ctx context.Context) error {
	phases, stocks := time.NewTicker(phaseEvery), time.NewTicker(stockEvery)
	defer phases.Stop()
	defer stocks.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-phases.C:
			s.tell(ctx, s.phasesChanged)
		case <-stocks.C:
			s.tell(ctx, s.stockChanged)
		}
	}
}

// tell publishes what changed; a catalogue that cannot be read is told elsewhere.
func (s *Storefront) tell(ctx context.Context, changed func(*sale.Sale) (notifier.Event, bool)) {
	snap, err := s.catalog.Snapshot(ctx)
	if err != nil {
		return
	}
	for _, v := range snap.Sales {
		if !v.Status.Public() {
			continue
		}
		if e, ok := changed(v); ok {
			s.hub.Publish(e)
		}
	}
}

func (s *Storefront) phasesChanged(v *sale.Sale) (notifier.Event, bool) {
	phase := s.Phase(v, s.Now())
	mark := fmt.Sprintf("%s/%d/%t", phase, v.Revision, phase == sale.PhaseSoldOut && s.gone(v))
	revision, changed := s.seen.notePhase(v.ID, mark)
	return notifier.Event{Key: saleKey(v.ID), Revision: revision}, changed
}

func (s *Storefront) stockChanged(v *sale.Sale) (notifier.Event, bool) {
	mark := ""
	for _, item := range v.Items {
		st := s.Stock(item)
		mark += fmt.Sprintf("%d/%d ", st.Revision, st.Remaining)
	}
	revision, changed := s.seen.noteStock(v.ID, mark)
	return notifier.Event{Key: stockKey(v.ID), Revision: revision}, changed
}

// sightings number what this process saw of each sale, so that its subscribers
// never see an older state after a newer one.
type sightings struct {
	mu     sync.Mutex
	phases map[uuid.UUID]sighting // guarded by mu
	stocks map[uuid.UUID]sighting // guarded by mu
}

type sighting struct {
	mark     string
	revision int64
}

func newSightings() *sightings {
	return &sightings{phases: map[uuid.UUID]sighting{}, stocks: map[uuid.UUID]sighting{}}
}

func (s *sightings) phase(v uuid.UUID) int64 { return s.read(s.phases, v) }
func (s *sightings) stock(v uuid.UUID) int64 { return s.read(s.stocks, v) }

func (s *sightings) read(m map[uuid.UUID]sighting, v uuid.UUID) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return m[v].revision
}

func (s *sightings) notePhase(v uuid.UUID, mark string) (int64, bool) {
	return s.note(s.phases, v, mark)
}

func (s *sightings) noteStock(v uuid.UUID, mark string) (int64, bool) {
	return s.note(s.stocks, v, mark)
}

func (s *sightings) note(m map[uuid.UUID]sighting, v uuid.UUID, mark string) (int64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := m[v]
	if old.mark == mark {
		return old.revision, false
	}
	m[v] = sighting{mark: mark, revision: old.revision + 1}
	return old.revision + 1, true
}
