package payment

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"entgo.io/ent/dialect/sql"

	"seckill/ent"
	"seckill/ent/orderfailure"
	entpayment "seckill/ent/payment"
	"seckill/ent/waitlistentry"
	"seckill/internal/buy/order"
	"seckill/internal/buy/reservation"
	"seckill/internal/buy/sale"
	"seckill/internal/buy/waitlist"
	"seckill/internal/identity/person"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/locale"
	"seckill/internal/platform/periodic"
	"seckill/internal/platform/postgres"
)

// The money of an entry of a draw. It is authorized when the buyer enters, by a payment without an
// order. Once the entry is drawn, FollowEntries gives that payment the id of an order, redeems the
// offer as that order, and the loop that checks payments captures the money: the order is paid as
// any other. In every other case the same loop closes the payment at its provider, until the
// provider confirms it. An order whose money cannot be captured waits unpaid until the offer would
// have ended.

const (
	// entryTime is how long a buyer has to authorize.
	entryTime = 30 * time.Minute
	// untilDrawn is how long after the closing of the entries money is still needed: the drawing and
	// the first offers take minutes.
	untilDrawn = 6 * time.Hour
	// followEvery is the pause between two steps of FollowEntries: about the time until the
	// money of a withdrawn entry begins to be released.
	followEvery = time.Second
	// followAtOnce bounds the entries of one transaction of FollowEntries.
	followAtOnce = 500
)

// authorizer returns the provider that authorizes cards for entries; nil = none is configured.
func (s *Service) authorizer() Authorizer {
	for _, p := range s.cfg.Providers {
		if a, ok := p.(Authorizer); ok {
			return a
		}
	}
	return nil
}

// AuthorizeInput is the input of Authorize.
type AuthorizeInput struct {
	Entry          id.Waitlist
	User           id.User // the principal
	IdempotencyKey string
	Address        string // the buyer's IP address; may be empty
	Language       locale.Language
	ReturnURL      string // page that the provider leads back to; "" = that of the sale
}

// Authorize begins the authorization of a card for an entry whose card is due. Like Pay it returns
// the open payment if there is one that leads back to the same page, and else closes it first.
func (s *Service) Authorize(ctx context.Context, in AuthorizeInput) (*Payment, error) {
	if in.ReturnURL != "" && !s.cfg.Returns.Has(in.ReturnURL) {
		return nil, fault.BadField{At: []string{"returnUrl"}, Rule: fault.AllowedOrigin}
	}
	for range maxRaces {
		p, err := s.tryAuthorize(ctx, in)
		if err == nil || !(errors.Is(err, errNotPayable) || postgres.IsUnique(err)) {
			return p, err
		}
	}
	return nil, waitlist.ErrChanged
}

func (s *Service) tryAuthorize(ctx context.Context, in AuthorizeInput) (*Payment, error) {
	at := []string{"waitlistEntryId"}
	e, err := s.entry(ctx, in.Entry)
	switch {
	case err != nil:
		return nil, err
	case e == nil || e.UserID != in.User:
		return nil, fault.Refused{Why: fault.Unknown, At: at}
	}
	if in.ReturnURL == "" {
		parent, err := s.cfg.DB.Ent.Sale.Get(ctx, e.SaleID)
		if err != nil {
			return nil, fmt.Errorf("read sale %s: %w", e.SaleID, err)
		}
		in.ReturnURL = s.cfg.EntryPage(parent.Slug)
	}
	p, err := s.byKey(ctx, id.Order(e.ID), in.IdempotencyKey)
	switch {
	case err != nil:
		return nil, err
	case p != nil && p.ReturnURL != in.ReturnURL:
		return nil, fault.Refused{Why: fault.IdempotencyMismatch, At: []string{"idempotencyKey"}}
	case p != nil:
		return s.create(ctx, p, in.Address)
	case e.Status != waitlistentry.StatusENTERED || e.Card != waitlistentry.CardDUE:
		return nil, fault.Refused{Why: fault.Conflict, At: at}
	}
	provider := s.authorizer()
	if provider == nil {
		return nil, fault.New(fault.Unavailable, "Cards cannot be authorized now. Please try again later.")
	}
	if s.breakers.away(provider.Name(), s.now()) {
		return nil, errAway()
	}
	if p, err = s.openOf(ctx, id.Order(e.ID)); err != nil {
		return nil, err
	}
	switch {
	case p == nil:
		if p, err = s.beginEntry(ctx, e, in, provider); err != nil {
			return nil, err
		}
	case p.ReturnURL != in.ReturnURL || p.Provider != provider.Name():
		if s.closeOne(ctx, p) == closedNot {
			return nil, fault.New(fault.Unavailable, "The open payment cannot be closed yet. Please try again.")
		}
		return nil, errNotPayable
	case s.over(ctx, p):
		return nil, errNotPayable
	}
	return s.create(ctx, p, in.Address)
}

// entry returns the row of an entry; nil when there is none.
func (s *Service) entry(ctx context.Context, entry id.Waitlist) (*ent.WaitlistEntry, error) {
	row, err := s.cfg.DB.Ent.WaitlistEntry.Get(ctx, entry)
	if ent.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read waitlist entry %s: %w", entry, err)
	}
	return row, nil
}

// beginEntry writes the payment before the provider is called, as begin does: a concurrent change
// of the entry makes one of the two fail.
func (s *Service) beginEntry(ctx context.Context, e *ent.WaitlistEntry, in AuthorizeInput,
	provider Authorizer) (p *Payment, err error) {
	now := s.now()
	err = s.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		n, err := tx.WaitlistEntry.Update().Where(waitlistentry.ID(e.ID), waitlistentry.Version(e.Version)).
			SetUpdatedAt(e.UpdatedAt).Save(ctx)
		if err != nil {
			return err
		}
		if n == 0 {
			return errNotPayable
		}
		parent, err := tx.Sale.Get(ctx, e.SaleID)
		if err != nil {
			return err
		}
		item, err := tx.SaleItem.Get(ctx, e.ItemID)
		if err != nil {
			return err
		}
		goods, err := tx.Goods.Get(ctx, item.GoodsID)
		if err != nil {
			return err
		}
		closes := parent.StartsAt.Add(time.Duration(parent.EntrySeconds) * time.Second)
		if !now.Before(closes.Add(-lastMoment)) {
			return fault.Refused{Why: fault.EntriesClosed, At: []string{"waitlistEntryId"}}
		}
		expires := now.Add(entryTime)
		if closes.Before(expires) {
			expires = closes
		}
		hold := HoldMoney
		if closes.Add(untilDrawn).Sub(now) > provider.Holds() {
			hold = HoldCard
		}
		row, err := tx.Payment.Create().SetID(id.New[id.Payment]()).SetOrderID(id.Order(e.ID)).SetEntryID(e.ID).
			SetHold(entpayment.Hold(hold)).SetUserID(e.UserID).SetProvider(provider.Name()).SetProduct(goods.Name).
			SetLanguage(string(in.Language)).SetReturnURL(in.ReturnURL).SetIdempotencyKey(in.IdempotencyKey).
			SetAmountMinor(item.PriceMinor * int64(e.Quantity)).SetCurrency(item.Currency).SetExpiresAt(expires).
			SetCheckAt(now.Add(firstCheck)).SetCreatedAt(now).SetUpdatedAt(now).Save(ctx)
		if err != nil {
			return err
		}
		p = fromRow(row)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("begin authorization for entry %s: %w", e.ID, err)
	}
	s.metrics.result(p.Provider, resultCreated)
	return p, nil
}

// PaymentOfEntry returns the newest payment of an entry, or nil.
func (s *Service) PaymentOfEntry(ctx context.Context, entry id.Waitlist) (*Payment, error) {
	row, err := s.cfg.DB.Ent.Payment.Query().
		Where(entpayment.EntryID(entry)).Order(ent.Desc(entpayment.FieldID)).First(ctx)
	return one(row, err)
}

// settleAuthorized records that money or a card is held for an entry. The entry counts from then
// on, unless it comes too late, or a limit counts the card: then FollowEntries releases it.
func (s *Service) settleAuthorized(ctx context.Context, e *ent.PaymentEvent, p *Payment) (done, error) {
	if p.Status != Creating && p.Status != Pending || p.Entry.IsZero() {
		return s.finish(ctx, e, outcomeRepeated, nil)
	}
	provider, ok := s.providers[p.Provider].(Authorizer)
	if !ok {
		return done{}, putOffError{why: "the provider is not set up"}
	}
	lapses := s.now().Add(provider.Holds())
	if p.Hold == HoldCard {
		lapses = s.now().Add(sale.MaxEntrySeconds * time.Second)
	}
	result, err := s.finish(ctx, e, outcomeAuthorized, func(ctx context.Context, tx *ent.Tx) (*order.Order, error) {
		if err := s.mark(ctx, tx, p, entpayment.StatusAUTHORIZED, nil); err != nil {
			return nil, err
		}
		// The checks of an authorized payment begin when its entry ends, or when it lapses.
		err := tx.Payment.Update().Where(entpayment.ID(p.ID)).SetProviderRef(e.ProviderRef).SetExpiresAt(lapses).
			SetCheckAt(lapses).Exec(ctx)
		if err != nil {
			return nil, err
		}
		key, used, err := s.countEntryPayer(ctx, tx, e, p.Entry)
		if err != nil {
			return nil, err
		}
		return nil, waitlist.Authorized(ctx, tx, waitlist.AuthorizedInput{
			Entry: p.Entry, Key: string(key), Used: used, At: s.now(),
		})
	})
	if errors.Is(err, waitlist.ErrChanged) {
		return done{}, order.ErrMoved
	}
	if err == nil {
		s.showEntry(ctx, p)
	}
	return result, err
}

func (s *Service) showEntry(ctx context.Context, p *Payment) {
	if s.cfg.Draws != nil && !p.Entry.IsZero() {
		s.cfg.Draws.Show(ctx, p.Entry)
	}
}

// countEntryPayer returns the key of the card of an entry, and whether the units that the card paid
// in the sale, or is authorized for, leave too little of the limit for the entry.
func (s *Service) countEntryPayer(ctx context.Context, tx *ent.Tx, e *ent.PaymentEvent,
	entry id.Waitlist) (person.Key, bool, error) {
	row, err := tx.WaitlistEntry.Get(ctx, entry)
	if ent.IsNotFound(err) || e.Payer == nil {
		return "", false, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("read waitlist entry %s: %w", entry, err)
	}
	parent, err := tx.Sale.Get(ctx, row.SaleID)
	if err != nil {
		return "", false, fmt.Errorf("read sale %s: %w", row.SaleID, err)
	}
	key := s.payerKey(parent, e)
	if key == "" {
		return "", false, nil
	}
	limit, paid, err := s.paidWith(ctx, tx, parent, paying{item: row.ItemID, key: key})
	if err != nil {
		return "", false, err
	}
	others := tx.WaitlistEntry.Query().Where(waitlistentry.SaleID(row.SaleID), waitlistentry.PaymentKey(string(key)),
		waitlistentry.IDNEQ(row.ID), waitlistentry.StatusIn(waitlistentry.StatusENTERED, waitlistentry.StatusWAITING,
			waitlistentry.StatusOFFERED))
	if sale.LimitOf(parent) == 0 {
		others.Where(waitlistentry.ItemID(row.ItemID))
	}
	rows, err := others.All(ctx)
	if err != nil {
		return "", false, fmt.Errorf("read entries of a means of payment: %w", err)
	}
	units := paid + row.Quantity
	for _, other := range rows {
		units += other.Quantity
	}
	return key, units > limit, nil
}

// endEntryHold records at the entry of a payment that was closed that its card is not authorized
// any more.
func (s *Service) endEntryHold(ctx context.Context, tx *ent.Tx, p *Payment) error {
	if p.Entry.IsZero() {
		return nil
	}
	err := waitlist.Unauthorized(ctx, tx, p.Entry, s.now())
	if errors.Is(err, waitlist.ErrChanged) {
		return order.ErrMoved
	}
	return err
}

// entriesLoop returns the loop of FollowEntries.
func (s *Service) entriesLoop() periodic.Loop {
	return periodic.Loop{Name: "payments of entries", Every: followEvery, Idle: idle, Timeout: expireTimeout,
		HasWork: s.cfg.DB.AnyRows(func() *sql.Selector {
			return postgres.First(postgres.Rows(waitlistentry.Table, endedEntries), waitlistentry.FieldID)
		}, func() *sql.Selector {
			return postgres.First(postgres.Rows(waitlistentry.Table, drawnEntries), waitlistentry.FieldOfferExpiresAt)
		}),
		Step: s.FollowEntries, Log: s.cfg.Log}
}

// FollowEntries turns the offers of authorized entries into orders, and passes payments of entries
// that have ended on to the checks of payments, which capture or release them.
func (s *Service) FollowEntries(ctx context.Context) (map[string]int, error) {
	counts := map[string]int{}
	if s.cfg.Draws == nil {
		return counts, nil
	}
	return counts, errors.Join(s.passOn(ctx, counts), s.redeemDrawn(ctx, counts))
}

// Entries that have ended and whose payments are not passed on, and entries to redeem.
var (
	endedEntries = waitlistentry.And(waitlistentry.CardIn(waitlistentry.CardDUE, waitlistentry.CardAUTHORIZED),
		waitlistentry.StatusIn(waitlistentry.StatusREDEEMED, waitlistentry.StatusEXPIRED, waitlistentry.StatusLEFT),
		waitlistentry.StatusNotIn(waitlistentry.StatusENTERED, waitlistentry.StatusWAITING))
	drawnEntries = waitlistentry.And(waitlistentry.CardEQ(waitlistentry.CardAUTHORIZED),
		waitlistentry.StatusEQ(waitlistentry.StatusOFFERED))
)

// passOn makes the payments of entries that have ended due to be checked.
func (s *Service) passOn(ctx context.Context, counts map[string]int) error {
	for n := followAtOnce; n == followAtOnce && ctx.Err() == nil; {
		err := s.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
			ids, err := tx.WaitlistEntry.Query().Where(endedEntries).Order(ent.Asc(waitlistentry.FieldID)).
				Limit(followAtOnce).IDs(ctx)
			if n = len(ids); err != nil || n == 0 {
				return err
			}
			now := s.now()
			payments := entpayment.EntryIDIn(ids...)
			err = tx.Payment.Update().Where(payments, entpayment.StatusIn(openStatuses...)).SetCheckAt(now).SetChecks(0).
				Exec(ctx)
			if err != nil {
				return err
			}
			// Repeated creations send the same times; those of authorized payments show what is overdue.
			err = tx.Payment.Update().Where(payments, entpayment.StatusEQ(entpayment.StatusAUTHORIZED)).SetExpiresAt(now).
				Exec(ctx)
			if err != nil {
				return err
			}
			return tx.WaitlistEntry.Update().Where(waitlistentry.IDIn(ids...), endedEntries).SetCard(waitlistentry.CardDONE).
				ClearPaymentKey().Exec(ctx)
		})
		if err != nil {
			return fmt.Errorf("pass on the payments of ended entries: %w", err)
		}
		counts["ended"] += n
	}
	return nil
}

// redeemDrawn redeems the offers of authorized entries, those that end first first.
func (s *Service) redeemDrawn(ctx context.Context, counts map[string]int) error {
	rows, err := s.cfg.DB.Ent.WaitlistEntry.Query().Where(drawnEntries).Order(ent.Asc(waitlistentry.FieldOfferExpiresAt)).
		Limit(followAtOnce).All(ctx)
	if err != nil {
		return fmt.Errorf("find drawn entries: %w", err)
	}
	redeemed, err := atOnce(ctx, rows, func(row *ent.WaitlistEntry) (string, error) {
		if err := s.redeem(ctx, row); err != nil {
			return "", fmt.Errorf("redeem entry %s: %w", row.ID, err)
		}
		return "redeemed", nil
	})
	counts["redeemed"] += redeemed["redeemed"]
	return err
}

// redeem makes the order of a drawn entry. Its id is stored before it is used, so that a repeated
// call makes the same order.
func (s *Service) redeem(ctx context.Context, e *ent.WaitlistEntry) error {
	p, err := one(s.cfg.DB.Ent.Payment.Query().
		Where(entpayment.EntryID(e.ID), entpayment.StatusEQ(entpayment.StatusAUTHORIZED)).Only(ctx))
	if err != nil || p == nil {
		return err // it lapsed meanwhile
	}
	if p.Order == id.Order(e.ID) {
		task := id.Order(id.NewTaskOf(e.SaleID, e.ItemID, e.UserID))
		named := 0
		err := s.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
			named, err = tx.Payment.Update().Where(entpayment.ID(p.ID), entpayment.Version(p.Version)).SetOrderID(task).
				AddVersion(1).SetUpdatedAt(s.now()).Save(ctx)
			return err
		})
		if err != nil || named == 0 {
			return err // another process was faster
		}
		p.Order = task
	}
	parent, err := s.cfg.DB.Ent.Sale.Get(ctx, e.SaleID)
	if err != nil {
		return err
	}
	item, err := s.cfg.DB.Ent.SaleItem.Get(ctx, e.ItemID)
	if err != nil {
		return err
	}
	request := order.Request{
		V: 1, Task: id.Task(p.Order), User: e.UserID, Sale: e.SaleID, Item: e.ItemID, Quantity: e.Quantity,
		UnitPriceMinor: item.PriceMinor, Currency: item.Currency, IdempotencyKey: p.ID.String(),
		PaymentWindowSeconds: parent.PaymentWindowSeconds,
	}
	terms, err := request.ItemTerms()
	if err != nil {
		return err
	}
	_, err = s.cfg.Draws.Redeem(ctx, e.ID, reservation.Attempt{
		Task: request.Task, Sale: e.SaleID, Item: e.ItemID, User: e.UserID, Quantity: e.Quantity,
		IdempotencyKey: request.IdempotencyKey, Terms: terms,
	})
	if _, refused := fault.AsRefusal(err); refused {
		return nil // the entry has ended meanwhile
	}
	return err
}

// checkHold brings the payment of an entry as far as its entry is.
func (s *Service) checkHold(ctx context.Context, p *Payment) (string, error) {
	e, err := s.entry(ctx, p.Entry)
	switch {
	case err != nil:
		return "", err
	case e == nil || !waitlist.Status(e.Status).IsOpen():
		return s.captureOrRelease(ctx, p, e)
	case p.Status == Authorized:
		state, err := s.query(ctx, p)
		if err != nil || state.Phase == PhaseAuthorized {
			return "", err
		}
		return "found", s.note(ctx, p, state)
	}
	return s.checkOpen(ctx, p)
}

// release closes a payment of an entry at its provider.
func (s *Service) release(ctx context.Context, p *Payment) (string, error) {
	if s.closeOne(ctx, p) == closedNot {
		s.cfg.Log.ErrorContext(ctx, "the authorization of an entry cannot be released yet", slog.String("payment",
			p.ID.String()),
			slog.String("provider", p.Provider))
		return "", fmt.Errorf("payment %s of an entry cannot be released", p.ID)
	}
	return "released", nil
}

// captureOrRelease takes the money of an entry that has ended for its order. Without an order that
// waits for it, the money is released.
func (s *Service) captureOrRelease(ctx context.Context, p *Payment, e *ent.WaitlistEntry) (string, error) {
	if !p.hasOrder() {
		return s.release(ctx, p)
	}
	o, err := s.cfg.Orders.Reload(ctx, p.Order)
	if err != nil {
		return "", err
	}
	if o == nil && e != nil && e.OrderID != nil && *e.OrderID == id.Task(p.Order) {
		failed, err := s.cfg.DB.Ent.OrderFailure.Query().Where(orderfailure.ID(id.Task(p.Order))).Exist(ctx)
		if err != nil || !failed {
			return "", err // a worker writes the order
		}
	}
	if o == nil || o.Status != order.PendingPayment || o.TotalMinor() != p.AmountMinor || o.Currency != p.Currency {
		return s.release(ctx, p)
	}
	provider, ok := s.providers[p.Provider].(Authorizer)
	if !ok {
		return "", fmt.Errorf("payment provider %q does not capture", p.Provider)
	}
	if o, err = s.giveOfferTime(ctx, o, e); err != nil {
		if errors.Is(err, order.ErrMoved) {
			return "", nil // the next check decides
		}
		return "", err
	}
	if _, err = s.review(ctx, o); err != nil {
		if _, refused := fault.AsRefusal(err); refused {
			return "", nil // held for review, or moved: the next check decides
		}
		return "", err
	}
	known, err := s.knownTo(ctx, p)
	if err != nil {
		return "", err
	}
	var state State
	err = s.ask(ctx, p.Provider, "capture", func(ctx context.Context) (err error) {
		state, err = provider.Capture(ctx, known)
		return err
	})
	if err != nil {
		return "", err
	}
	return "captured", s.note(ctx, p, state)
}

// giveOfferTime moves the payment deadline of an order to the end of the offer that it was made of:
// the provider may be away, or the money may not be captured, and then the buyer pays.
func (s *Service) giveOfferTime(ctx context.Context, o *order.Order, e *ent.WaitlistEntry) (*order.Order, error) {
	if e == nil || e.OfferExpiresAt == nil || o.PaymentDeadline == nil || !o.PaymentDeadline.Before(*e.OfferExpiresAt) {
		return o, nil
	}
	extended := o
	err := s.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) (err error) {
		extended, err = order.Extend(ctx, tx, o, s.now(), *e.OfferExpiresAt)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("extend the payment deadline of order %s: %w", o.ID, err)
	}
	s.cfg.AfterCommit.Publish(ctx, extended)
	return extended, nil
}

// drawnFirst captures the authorized money of an order before it would expire, as after a time in
// which no process ran. It reports whether the order need not expire.
func (s *Service) drawnFirst(ctx context.Context, o *order.Order, p *Payment) bool {
	if p.Status != Authorized {
		return false
	}
	_, _ = s.check(ctx, p) // with an error the order expires if it still has to
	now, err := s.cfg.Orders.Reload(ctx, o.ID)
	return err == nil && now != nil && now.Version != o.Version
}

// noteNotCaptured notes a decline in the log of the order of a drawn entry, whose buyer is told, and
// reminded to pay.
func (s *Service) noteNotCaptured(ctx context.Context, tx *ent.Tx, p *Payment) (*order.Order, error) {
	noted, err := s.noteOrder(ctx, tx, p, order.Entry{Code: order.CodePaymentDeclined})
	if err != nil || p.Entry.IsZero() || s.cfg.Facts == nil || noted.PaymentDeadline == nil {
		return noted, err
	}
	return noted, s.cfg.Facts.NotCharged(ctx, tx, noted)
}
