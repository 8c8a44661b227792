package waitlist

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"seckill/ent"
	entorder "seckill/ent/order"
	"seckill/ent/saleitem"
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

// Newest returns the newest place of a person for an item, open or not, or nil.
func (s *Service) Newest(ctx context.Context, user, item uuid.UUID) (*Entry, error) {
	return one(s.db.Ent.WaitlistEntry.Query().
		Where(waitlistentry.UserID(user), waitlistentry.ItemID(item)).Order(ent.Desc(waitlistentry.FieldID)).First(ctx))
}

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
// with the record, or builds it anew, counts them among the holders.
func Holds(ctx context.Context, places *ent.WaitlistEntryClient, item uuid.UUID) ([]*Entry, error) {
	rows, err := places.Query().Where(waitlistentry.ItemID(item), waitlistentry.Or(
		waitlistentry.StatusEQ(waitlistentry.StatusOFFERED), waitlistentry.ReturnDue(true),
	)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read offers of item %s: %w", item, err)
	}
	entries := make([]*Entry, 0, len(rows))
	for _, row := range rows {
		entries = append(entries, fromRow(row))
	}
	return entries, nil
}

// Outlook is what may still be hoped for of an item.
type Outlook struct {
	Available   int        // units nobody has, by the record; some may be held for offers
	Unpaid      int        // units in unpaid orders: they may come back
	NextRelease *time.Time // the earliest moment at which one of them lapses; nil = none can
	Waiting     int        // people in line
}

// Gone tells whether the item is sold out for good, as far as anybody knows.
func (o Outlook) Gone() bool { return o.Available == 0 && o.Unpaid == 0 }

// Outlook returns what may still be hoped for of an item.
func (s *Service) Outlook(ctx context.Context, item uuid.UUID) (Outlook, error) {
	row, err := s.db.Ent.SaleItem.Query().Where(saleitem.ID(item)).Only(ctx)
	if err != nil {
		return Outlook{}, fmt.Errorf("read item %s: %w", item, err)
	}
	o := Outlook{Available: row.Available, Unpaid: row.Held}
	if o.Unpaid > 0 {
		next, err := s.db.Ent.Order.Query().
			Where(entorder.ItemID(item), entorder.StatusEQ(entorder.StatusPENDING_PAYMENT), entorder.PaymentDeadlineNotNil()).
			Order(ent.Asc(entorder.FieldPaymentDeadline)).First(ctx)
		if err != nil && !ent.IsNotFound(err) {
			return Outlook{}, fmt.Errorf("read deadlines of item %s: %w", item, err)
		}
		if next != nil {
			o.NextRelease = next.PaymentDeadline
		}
	}
	o.Waiting, err = s.db.Ent.WaitlistEntry.Query().
		Where(waitlistentry.ItemID(item), waitlistentry.StatusEQ(waitlistentry.StatusWAITING)).Count(ctx)
	if err != nil {
		return Outlook{}, fmt.Errorf("count waitlist of item %s: %w", item, err)
	}
	return o, nil
}
