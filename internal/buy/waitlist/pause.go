package waitlist

import (
	"context"
	"fmt"
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
