package waitlist

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"seckill/ent"
	entsale "seckill/ent/sale"
	"seckill/ent/salelog"
	"seckill/ent/waitlistentry"
	"seckill/internal/buy/sale"
	"seckill/internal/platform/id"
)

// saleState is the state of a sale for its waitlist.
type saleState struct {
	over    bool
	held    bool      // the sale is paused: offers cannot be redeemed and do not expire
	resumed time.Time // when it was last resumed, if that was recently
	// offerFor is the lifetime of an offer.
	offerFor time.Duration
	draw     bool
}

// saleStates returns the states of the sales with a waitlist.
func (s *Service) saleStates(ctx context.Context, sales []id.Sale) (map[id.Sale]saleState, error) {
	all, longest := make(map[id.Sale]saleState, len(sales)), s.cfg.OfferFor
	for _, unknown := range sales {
		all[unknown] = saleState{offerFor: s.cfg.OfferFor}
	}
	rows, err := s.cfg.DB.Ent.Sale.Query().Where(entsale.IDIn(sales...)).
		Select(entsale.FieldID, entsale.FieldStatus, entsale.FieldEntrySeconds, entsale.FieldOfferSeconds).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read sales with a waitlist: %w", err)
	}
	for _, row := range rows {
		rules := sale.DrawRules{EntrySeconds: row.EntrySeconds, OfferSeconds: row.OfferSeconds}
		offerFor := s.cfg.OfferFor
		if rules.On() {
			offerFor = rules.OfferFor()
			longest = max(longest, offerFor)
		}
		all[row.ID] = saleState{offerFor: offerFor, draw: rules.On(),
			over: row.Status == entsale.StatusENDED || row.Status == entsale.StatusCANCELLED,
			held: row.Status == entsale.StatusPAUSED,
		}
	}
	lines, err := s.cfg.DB.Ent.SaleLog.Query().Where(
		salelog.SaleIDIn(sales...), salelog.Act(string(sale.ActResume)), salelog.CreatedAtGT(s.now().Add(-longest)),
	).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read when sales went on: %w", err)
	}
	for _, line := range lines {
		is := all[line.SaleID]
		if line.CreatedAt.After(is.resumed) && line.CreatedAt.After(s.now().Add(-is.offerFor)) {
			is.resumed = line.CreatedAt
			all[line.SaleID] = is
		}
	}
	return all, nil
}

// renew extends offers that were open while their sale was paused: they get their whole
// time again, from the moment of resumption.
func (s *Service) renew(ctx context.Context, it item, counts map[string]int) error {
	if it.held || it.over || it.resumed.IsZero() {
		return nil
	}
	until := it.resumed.UTC().Add(it.offerFor)
	rows, err := s.cfg.DB.Ent.WaitlistEntry.Query().Where(
		waitlistentry.ItemID(it.id), waitlistentry.StatusEQ(waitlistentry.StatusOFFERED),
		waitlistentry.UpdatedAtLT(it.resumed), waitlistentry.OfferExpiresAtLT(until),
	).Order(ent.Asc(waitlistentry.FieldID)).Limit(maxOffers).All(ctx)
	if err != nil {
		return err
	}
	for _, row := range rows {
		moved, err := s.change(ctx, fromRow(row), Offered, func(u *ent.WaitlistEntryUpdate) { u.SetOfferExpiresAt(until) })
		if err != nil {
			return err
		}
		if moved != nil {
			counts["renewed"]++
		}
	}
	return nil
}

// gates records which gates served at the last step of this process: offers of the
// others cannot be redeemed.
type gates struct {
	mu   sync.Mutex
	seen map[id.Item]service // guarded by mu; by item
}

// service is the last state of a gate.
type service struct {
	serves bool      // reached and loaded
	back   time.Time // when it served again after it did not; zero = it always served
	check  time.Time // when the offers of its draw are checked again
}

// note records whether a gate serves at a time.
func (g *gates) note(item id.Item, serves bool, at time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	was, known := g.seen[item]
	if known && serves && !was.serves {
		was.back = at
	}
	was.serves = serves
	g.seen[item] = was
}

// recheckEvery is the interval at which the units of the offers of a draw are checked: they last for
// hours and may be many.
const recheckEvery = 30 * time.Second

// recheck reports whether the offers of a draw are to be checked now.
func (g *gates) recheck(item id.Item, now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	was := g.seen[item]
	if now.Before(was.check) {
		return false
	}
	was.check = now.Add(recheckEvery)
	g.seen[item] = was
	return true
}

// serves reports whether a gate served at the last step; false before the first one.
func (g *gates) serves(item id.Item) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.seen[item].serves
}

// backSince returns when a gate served again after it did not.
func (g *gates) backSince(item id.Item) time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.seen[item].back
}

// keep removes the gates of all other items.
func (g *gates) keep(items []item) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for known := range g.seen {
		if !slices.ContainsFunc(items, func(it item) bool { return it.id == known }) {
			delete(g.seen, known)
		}
	}
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
