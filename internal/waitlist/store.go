package waitlist

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"seckill/ent"
	"seckill/ent/predicate"
	"seckill/ent/waitlistentry"
)

// Entry returns a place, or nil when there is none.
func (s *Service) Entry(ctx context.Context, entry uuid.UUID) (*Entry, error) {
	return one(s.db.Ent.WaitlistEntry.Get(ctx, entry))
}

// Open returns the place of a person that something may still come of, or nil.
func (s *Service) Open(ctx context.Context, user, item uuid.UUID) (*Entry, error) {
	return one(s.db.Ent.WaitlistEntry.Query().
		Where(waitlistentry.UserID(user), waitlistentry.ItemID(item), waitlistentry.StatusIn(openStatuses...)).Only(ctx))
}

// In returns the place of a person in a sale that matters most: one that something
// may still come of, else the newest; nil when there is none.
func (s *Service) In(ctx context.Context, user, sale uuid.UUID) (*Entry, error) {
	rows, err := s.db.Ent.WaitlistEntry.Query().
		Where(waitlistentry.UserID(user), waitlistentry.SaleID(sale)).Order(ent.Desc(waitlistentry.FieldID)).Limit(maxOwn).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read places in line: %w", err)
	}
	var best *Entry
	for _, row := range rows {
		switch e := fromRow(row); {
		case e.Status == Offered:
			return e, nil
		case best == nil, e.Status == Waiting && best.Status != Waiting:
			best = e
		}
	}
	return best, nil
}

// maxOwn bounds the places of one person in a sale that In looks at. Older ones
// have ended.
const maxOwn = 50

var openStatuses = []waitlistentry.Status{waitlistentry.StatusWAITING, waitlistentry.StatusOFFERED}

func one(row *ent.WaitlistEntry, err error) (*Entry, error) {
	if ent.IsNotFound(err) {
		return nil, nil //nolint:nilnil // none is an answer
	}
	if err != nil {
		return nil, fmt.Errorf("read place in line: %w", err)
	}
	return fromRow(row), nil
}

// Ahead returns how many wait in front of a place.
func (s *Service) Ahead(ctx context.Context, e *Entry) (int, error) {
	n, err := s.db.Ent.WaitlistEntry.Query().
		Where(waitlistentry.ItemID(e.Item), waitlistentry.StatusEQ(waitlistentry.StatusWAITING), waitlistentry.IDLT(e.ID)).Count(ctx)
	if err != nil {
		return 0, fmt.Errorf("count places ahead: %w", err)
	}
	return n, nil
}

// Holds returns the places of an item that units are held for in the gate, or may
// be: offers, and places whose units are not back yet. Whoever compares the gate
// with the record, or builds it anew, counts them among the holders. Beside them it
// returns the places of the given names, however they stand: whoever found a name
// in the gate knows then whether it is a place's.
func Holds(ctx context.Context, places *ent.WaitlistEntryClient, item uuid.UUID, names ...uuid.UUID) ([]*Entry, error) {
	var entries []*Entry
	read := func(where predicate.WaitlistEntry) error {
		rows, err := places.Query().Where(waitlistentry.ItemID(item), where).All(ctx)
		for _, row := range rows {
			entries = append(entries, fromRow(row))
		}
		return err
	}
	err := read(waitlistentry.Or(waitlistentry.StatusEQ(waitlistentry.StatusOFFERED), waitlistentry.ReturnDue(true)))
	for chunk := range slices.Chunk(names, namesAtOnce) {
		if err == nil {
			err = read(waitlistentry.IDIn(chunk...))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read offers of item %s: %w", item, err)
	}
	return entries, nil
}

// namesAtOnce bounds the names in one query.
const namesAtOnce = 1000
