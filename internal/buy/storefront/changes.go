package storefront

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"seckill/internal/buy/sale"
	"seckill/internal/platform/id"
	"seckill/internal/platform/notifier"
	"seckill/internal/platform/periodic"
)

const (
	// phaseEvery is the interval of phase checks. Phases that change by the clock, such as
	// an opening, are checked at that time; clients show them on time by their own clock.
	phaseEvery = 200 * time.Millisecond
	// stockEvery bounds the stock events of a sale to two per second.
	stockEvery = 500 * time.Millisecond
	// departuresEvery bounds the events of a waitlist whose first buyers leave it.
	departuresEvery = time.Second
)

// Run checks the phases and the stock of all active sales and publishes changes to the hub,
// until ctx ends.
func (s *Storefront) Run(ctx context.Context) error {
	phases, stocks, departures := time.NewTimer(phaseEvery), time.NewTimer(stockEvery), time.NewTicker(departuresEvery)
	defer phases.Stop()
	defer stocks.Stop()
	defer departures.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-phases.C:
			s.publish(ctx, s.phasesChanged)
			phases.Reset(s.untilPhase(ctx))
		case <-stocks.C:
			s.publish(ctx, s.stockChanged)
			s.publish(ctx, s.levelsChanged)
			stocks.Reset(s.untilStock(ctx))
		case <-departures.C:
			s.publish(ctx, s.departuresChanged)
			s.forget(ctx)
		}
	}
}

// untilPhase returns the time until the next check of the phases: phaseEvery, or less if the
// clock changes one before. Without sales it is the time until the next tick.
func (s *Storefront) untilPhase(ctx context.Context) time.Duration {
	wait := phaseEvery
	snap, err := s.cfg.Catalog.Snapshot(ctx)
	if err != nil {
		return wait
	}
	if len(snap.Sales) == 0 {
		return periodic.UntilTick(periodic.Tick)
	}
	now := s.Now()
	for _, v := range snap.Sales {
		if at := v.NextTransition(now); v.Public() && at != nil {
			wait = min(wait, at.Sub(now))
		}
	}
	return wait
}

// untilStock returns the time until the next check of the stock.
func (s *Storefront) untilStock(ctx context.Context) time.Duration {
	if snap, err := s.cfg.Catalog.Snapshot(ctx); err == nil && len(snap.Sales) == 0 {
		return periodic.UntilTick(periodic.Tick)
	}
	return stockEvery
}

// publish publishes changes. An unreadable catalogue is reported by other code.
func (s *Storefront) publish(ctx context.Context, changed func(*sale.Sale) (notifier.Event, bool)) {
	snap, err := s.cfg.Catalog.Snapshot(ctx)
	if err != nil {
		return
	}
	for _, v := range snap.Sales {
		if !v.Public() {
			continue
		}
		if e, ok := changed(v); ok {
			s.cfg.Hub.Publish(e)
		}
	}
}

// forget drops the states of sales that have left the catalogue: they have ended.
func (s *Storefront) forget(ctx context.Context) {
	snap, err := s.cfg.Catalog.Snapshot(ctx)
	if err != nil {
		return
	}
	for _, states := range []*numbered{&s.seen.phases, &s.seen.stocks, &s.seen.levels, &s.seen.departures} {
		states.keep(func(saleID id.Sale) bool { return snap.Sale(saleID) != nil })
	}
}

func (s *Storefront) phaseMark(v *sale.Sale) string {
	phase := s.Phase(v, s.Now())
	mark := fmt.Sprintf("%s/%d/%t/%d", phase, v.Revision, phase == sale.PhaseSoldOut && s.gone(v),
		v.Access.Begun(v.StartsAt, s.Now())) // at the time of each rule its buyers may buy
	if v.Draw.On() {
		mark += s.drawMark(v)
	}
	for _, item := range v.Items {
		if item.Goods != nil {
			mark += fmt.Sprintf("/%d", item.Goods.Revision) // name and picture
		}
	}
	return mark
}

// drawMark changes with the draws of a sale, and with the first two digits of the number of their
// entries: each event goes to all who look at the sale.
func (s *Storefront) drawMark(v *sale.Sale) string {
	mark := fmt.Sprintf("/%t", s.Now().Before(v.EntriesCloseAt()))
	for _, item := range v.Items {
		if d := s.cfg.RestockOutlooks.Drawing(item.ID); d != nil {
			mark += fmt.Sprintf("/%s %.2g", d.State, float64(d.Entries))
		}
	}
	return mark
}

func (s *Storefront) phasesChanged(v *sale.Sale) (notifier.Event, bool) {
	revision, changed := s.seen.phases.note(v.ID, s.phaseMark(v))
	return notifier.Event{Key: saleKey(v.ID), Revision: revision, Terminal: s.over(v), Value: v}, changed
}

func (s *Storefront) stockMark(v *sale.Sale) string {
	mark := ""
	for _, item := range v.Items {
		st := s.Stock(item)
		mark += fmt.Sprintf("%d/%d ", st.Revision, st.Remaining)
	}
	return mark
}

func (s *Storefront) levelMark(v *sale.Sale) string {
	mark := ""
	for _, item := range v.Items {
		mark += string(s.Stock(item).Level) + " "
	}
	return mark
}

func (s *Storefront) stockChanged(v *sale.Sale) (notifier.Event, bool) {
	revision, changed := s.seen.stocks.note(v.ID, s.stockMark(v))
	return notifier.Event{Key: stockKey(v.ID), Revision: revision, Terminal: s.over(v), Value: v.Items}, changed
}

// levelsChanged is stockChanged for buyers of a sale that hides its stock: the number of
// events must not show how many units were sold.
func (s *Storefront) levelsChanged(v *sale.Sale) (notifier.Event, bool) {
	if !v.HideExactStock {
		return notifier.Event{}, false
	}
	revision, changed := s.seen.levels.note(v.ID, s.levelMark(v))
	return notifier.Event{Key: levelKey(v.ID), Revision: revision, Terminal: s.over(v), Value: v.Items}, changed
}

// departuresChanged reports whether buyers left the waitlists of a sale: those behind them
// moved up.
func (s *Storefront) departuresChanged(v *sale.Sale) (notifier.Event, bool) {
	mark := ""
	for _, item := range v.Items {
		if restock, known := s.cfg.RestockOutlooks.Of(item.ID); known {
			mark += fmt.Sprintf("%s/%d/%d ", item.ID, restock.Offered, restock.Ended)
		}
	}
	revision, changed := s.seen.departures.note(v.ID, mark)
	return notifier.Event{Key: departuresKey(v.ID), Revision: revision, Value: revision}, changed
}

// sightings number the states of each sale that this process observed, so that its
// subscribers never receive an older state after a newer one.
type sightings struct{ phases, stocks, levels, departures numbered }

// numbered are the states of one kind.
type numbered struct {
	mu    sync.Mutex
	known map[id.Sale]sighting // guarded by mu
	last  int64                // guarded by mu; revision of the newest state of any sale
}

type sighting struct {
	mark     string
	revision int64
}

// read returns the revision of the last state; 0 = none was noted.
func (n *numbered) read(v id.Sale) int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.known[v].revision
}

// begin stores the first state and returns its revision; 0 when another state was stored
// meanwhile.
func (n *numbered) begin(v id.Sale, mark string) int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.known[v].revision > 0 {
		return 0
	}
	return n.add(v, mark)
}

// add stores a state under the next revision. The caller holds mu. Revisions grow over all
// sales, so that a sale that is forgotten and seen again has a higher one.
func (n *numbered) add(v id.Sale, mark string) int64 {
	if n.known == nil {
		n.known = map[id.Sale]sighting{}
	}
	n.last++
	n.known[v] = sighting{mark: mark, revision: n.last}
	return n.last
}

// keep forgets the states of all other sales.
func (n *numbered) keep(kept func(id.Sale) bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	maps.DeleteFunc(n.known, func(v id.Sale, _ sighting) bool { return !kept(v) })
}

// note returns the revision of a state, and whether it differs from the last one.
func (n *numbered) note(v id.Sale, mark string) (int64, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	old := n.known[v]
	if old.mark == mark {
		return old.revision, false
	}
	return n.add(v, mark), true
}
