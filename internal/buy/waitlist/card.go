package waitlist

import (
	"context"
	"fmt"
	"time"

	"seckill/ent"
	"seckill/ent/itemdraw"
	"seckill/ent/waitlistentry"
	"seckill/internal/buy/draw"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

// Card is the state of the card that a draw asks for at entry. Package payment authorizes,
// charges and releases it; here it decides what counts.
//
//	DUE ──► AUTHORIZED ──► DONE
//	 ▲ └────────│───────────▲
//	 └──────────┘             expired or withdrawn before the entries close
//
// An entry with a DUE card is not counted, and ends when the entries are closed.
type Card string

// States of a card.
const (
	NoCard         Card = "NONE"
	CardDue        Card = "DUE"
	CardAuthorized Card = "AUTHORIZED"
	CardDone       Card = "DONE" // what is left to do belongs to its payment
)

// counts reports whether the draw of the entry counts it.
func (e *Entry) counts() bool { return e.Status == Entered && e.Card != CardDue }

// AuthorizedInput is a card that was authorized for an entry.
type AuthorizedInput struct {
	Entry id.Waitlist
	Key   string // of the means of payment, where a limit counts it
	Used  bool   // it has used up a limit: the entry ends
	At    time.Time
}

// Authorized records the card of an entry, which counts from then on, in the transaction of its
// payment. The entry ends when its draw is closed, or the card has used up a limit. An entry that
// is over stays as it is.
func Authorized(ctx context.Context, tx *ent.Tx, in AuthorizedInput) error {
	row, err := tx.WaitlistEntry.Get(ctx, in.Entry)
	if ent.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read waitlist entry %s: %w", in.Entry, err)
	}
	if row.Status != waitlistentry.StatusENTERED || row.Card != waitlistentry.CardDUE {
		return nil
	}
	unchanged := waitlistentry.And(waitlistentry.ID(row.ID), waitlistentry.Version(row.Version))
	var ends draw.Reason
	if in.Used {
		ends = draw.ReasonLimit
	} else if err := countEntries(ctx, tx, row.SaleID, row.ItemID, 1); fault.ReasonOf(err) == fault.EntriesClosed {
		ends = draw.ReasonCard
	} else if err != nil {
		return err
	}
	update := tx.WaitlistEntry.Update().Where(unchanged).AddVersion(1).SetUpdatedAt(in.At)
	if ends != "" {
		update = transition(tx, Left, in.At, unchanged).SetSkipped(string(ends))
	}
	if in.Key != "" && !in.Used {
		update.SetPaymentKey(in.Key)
	}
	return exactly(update.SetCard(waitlistentry.CardAUTHORIZED).Save(ctx))
}

// Unauthorized records that the card of an entry is no longer authorized, in the transaction of
// its payment: the buyer may authorize one again until the entries are closed. Later the entry keeps
// its place, and an offer has to be taken by its buyer.
func Unauthorized(ctx context.Context, tx *ent.Tx, entry id.Waitlist, at time.Time) error {
	row, err := tx.WaitlistEntry.Get(ctx, entry)
	if ent.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read waitlist entry %s: %w", entry, err)
	}
	if row.Card != waitlistentry.CardAUTHORIZED || !Status(row.Status).IsOpen() {
		return nil
	}
	card := waitlistentry.CardDONE
	if row.Status == waitlistentry.StatusENTERED {
		n, err := tx.ItemDraw.Update().Where(itemdraw.ID(row.ItemID), itemdraw.StateEQ(itemdraw.StateENTRIES)).
			AddEntries(-1).Save(ctx)
		if err != nil {
			return fmt.Errorf("uncount entry %s: %w", entry, err)
		}
		if n > 0 {
			card = waitlistentry.CardDUE
		}
	}
	return exactly(tx.WaitlistEntry.Update().Where(waitlistentry.ID(row.ID), waitlistentry.Version(row.Version)).
		SetCard(card).ClearPaymentKey().AddVersion(1).SetUpdatedAt(at).Save(ctx))
}

// ErrChanged reports that another process changed an entry meanwhile.
var ErrChanged = fault.New(fault.Unavailable, "The waitlist is being changed. Please try again.")

func exactly(rows int, err error) error {
	if err == nil && rows == 0 {
		return ErrChanged
	}
	return err
}

// Show publishes an entry that was changed in a transaction of another package.
func (s *Service) Show(ctx context.Context, entry id.Waitlist) {
	if e, err := s.Entry(ctx, entry); err == nil && e != nil {
		s.publish(ctx, e)
	}
}
