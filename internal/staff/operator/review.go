package operator

import (
	"context"
	"fmt"
	"time"

	"seckill/ent"
	entgoods "seckill/ent/goods"
	"seckill/ent/stockmovement"
	"seckill/internal/buy/sale"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

// ActInput is the input of an operation on a sale that only needs a reason.
type ActInput struct {
	By   sale.Actor
	Sale id.Sale
	Note string
}

// Submit submits a draft for approval, unless its start has passed, no payment provider takes
// an order of it, or the server cannot check its captchas.
func (s *Service) Submit(ctx context.Context, in ActInput) (*sale.Sale, error) {
	if err := optional(&in.Note, maxNote, "note"); err != nil {
		return nil, err
	}
	return s.do(ctx, act{
		by: in.By, sale: in.Sale, what: sale.ActSubmit, note: in.Note,
		decide: func(v *sale.Sale) (sale.Status, error) {
			if !v.StartsAt.After(s.cfg.Clock.Now()) {
				return "", invalid(fault.StartInTheFuture, "saleId")
			}
			return sale.PendingApproval, fault.All(s.checkKinds(v.Switches.CaptchaKinds, "saleId"), s.cfg.Payments.CheckSale(v))
		},
	})
}

// Approve approves a sale, unless its start has passed. Users who created or edited it,
// and users who are not independent of them, cannot approve it. Its stock enters the ledger.
func (s *Service) Approve(ctx context.Context, in ActInput) (*sale.Sale, error) {
	if err := optional(&in.Note, maxNote, "note"); err != nil {
		return nil, err
	}
	approved := changes{}
	var terms string
	return s.do(ctx, act{
		by: in.By, sale: in.Sale, what: sale.ActApprove, note: in.Note, details: &approved,
		decide: func(v *sale.Sale) (sale.Status, error) {
			authors, err := s.cfg.Sales.Authors(ctx, v)
			if err != nil {
				return "", err
			}
			if err := s.secondPerson(ctx, "saleId", in.By.ID, authors...); err != nil {
				return "", err
			}
			if !v.StartsAt.After(s.cfg.Clock.Now()) {
				return "", invalid(fault.StartInTheFuture, "saleId")
			}
			if terms, approved["terms"], err = sale.TermsOf(v).JSON(); err != nil {
				return "", err
			}
			return sale.Approved, fault.All(s.checkKinds(v.Switches.CaptchaKinds, "saleId"), s.cfg.Payments.CheckSale(v))
		},
		within: func(ctx context.Context, tx *ent.Tx, v *sale.Sale) error {
			if err := lockProducts(ctx, tx, v); err != nil {
				return err
			}
			if err := sale.WriteApproval(ctx, tx, v.ID, in.By.ID, terms, s.cfg.Clock.Now()); err != nil {
				return fmt.Errorf("store what was approved of sale %s: %w", v.ID, err)
			}
			return s.openLedger(ctx, tx, v)
		},
	})
}

// lockProducts keeps the products of a sale as they were read until the transaction ends. A
// change of a product locks it before it reads whether an approved sale offers it.
func lockProducts(ctx context.Context, tx *ent.Tx, v *sale.Sale) error {
	for _, item := range v.Items {
		g := item.Goods
		n, err := tx.Goods.Update().Where(entgoods.ID(g.ID), entgoods.Revision(g.Revision)).SetRevision(g.Revision).Save(ctx)
		switch {
		case err != nil:
			return fmt.Errorf("lock product %s: %w", g.ID, err)
		case n == 0:
			return sale.ErrMoved
		}
	}
	return nil
}

// Approved is what was approved of a sale, beside what buyers see of it now.
type Approved struct {
	*sale.Approval
	Terms []sale.Term
	Goods map[id.Goods]*sale.Goods // the products of Terms
}

// Approval returns what was approved of a sale; nil = it was not, or by a former release.
func (s *Service) Approval(ctx context.Context, saleID id.Sale) (*Approved, error) {
	a, err := s.cfg.Sales.Approval(ctx, saleID)
	if a == nil || err != nil {
		return nil, err
	}
	v, err := s.cfg.Sales.ByID(ctx, saleID)
	if v == nil || err != nil {
		return nil, err
	}
	out := &Approved{Approval: a, Goods: map[id.Goods]*sale.Goods{}}
	for _, item := range v.Items { // those of an approved sale stay
		out.Goods[item.Goods.ID] = item.Goods
	}
	out.Terms, err = a.Compare(v)
	return out, err
}

func (s *Service) openLedger(ctx context.Context, tx *ent.Tx, v *sale.Sale) error {
	for _, item := range v.Items {
		err := tx.StockMovement.Create().SetID(s.cfg.NewID()).SetOrderID(item.ID.UUID()).SetItemID(item.ID).
			SetKind(stockmovement.KindOPEN).SetQuantity(item.Total).SetCreatedAt(s.cfg.Clock.Now()).Exec(ctx)
		if err != nil {
			return fmt.Errorf("open the ledger of item %s: %w", item.ID, err)
		}
	}
	return nil
}

// Reject sends a sale back to its author with a reason.
func (s *Service) Reject(ctx context.Context, in ActInput) (*sale.Sale, error) {
	if err := requireNote(&in.Note); err != nil {
		return nil, err
	}
	return s.do(ctx, act{by: in.By, sale: in.Sale, what: sale.ActReject, note: in.Note})
}

// ScheduleInput sets the times of an approved sale; nil leaves a time unchanged.
type ScheduleInput struct {
	By        sale.Actor
	Sale      id.Sale
	StartsAt  *time.Time
	EndsAt    *time.Time
	PreheatAt *time.Time // nil = ten minutes before the start
	Note      string
}

// times are the times of a sale.
type times struct{ starts, ends, preheat time.Time }

// changes returns the times that changed, for the log.
func (t times) changes(v *sale.Sale) changes {
	c := changes{}
	putTime(c, "startsAt", v.StartsAt, t.starts)
	putTime(c, "endsAt", v.EndsAt, t.ends)
	putTime(c, "preheatAt", v.PreheatAt, t.preheat)
	return c
}

func (in ScheduleInput) of(v *sale.Sale) times {
	t := times{starts: v.StartsAt, ends: v.EndsAt}
	set(&t.starts, in.StartsAt)
	set(&t.ends, in.EndsAt)
	t.preheat = t.starts.Add(-preheatBefore)
	set(&t.preheat, in.PreheatAt)
	return t
}

// MaxPreheat is the longest time from its preload to the opening of a sale: the load slots
// that the scheduler certainly covers. A sale with an earlier one would stay SCHEDULED after
// that time.
const MaxPreheat = 8 * time.Hour

func (t times) check(now time.Time) error {
	var preheat error
	switch {
	case t.preheat.After(t.starts):
		preheat = invalid(fault.BeforeStart, "preheatAt")
	case t.preheat.Before(t.starts.Add(-MaxPreheat)):
		preheat = invalid(fault.NearStart, "preheatAt")
	}
	return fault.All(checkTimes(t.starts, t.ends, now), preheat)
}

// rescheduleMargin is the time before its opening in which a loaded sale keeps its times.
// The gates have new times at once, or after the next step of the scheduler, every
// preload.Every.
const rescheduleMargin = 30 * time.Second

// Schedule sets the times of an approved sale, and of a scheduled or loaded one before its
// opening: not within rescheduleMargin of the opening of a loaded sale.
// Other times than those that were approved need a second person.
func (s *Service) Schedule(ctx context.Context, in ScheduleInput) (Changed, error) {
	if err := optional(&in.Note, maxNote, "note"); err != nil {
		return Changed{}, err
	}
	return s.schedule(ctx, in, nil)
}

func (s *Service) schedule(ctx context.Context, in ScheduleInput, request *Intervention) (Changed, error) {
	var t times
	var changed changes
	asks := storedChange{Times: &timeChange{StartsAt: in.StartsAt, EndsAt: in.EndsAt, PreheatAt: in.PreheatAt}}
	return s.changeApproved(ctx, s.withGate, approvedChange{changed: &changed, asks: asks, request: request, act: act{
		by: in.By, sale: in.Sale, what: sale.ActSchedule, note: in.Note,
		decide: func(v *sale.Sale) (sale.Status, error) {
			now := s.cfg.Clock.Now()
			to := sale.Scheduled
			if v.Status.Loaded() {
				to = v.Status
				if !v.StartsAt.After(now.Add(rescheduleMargin)) {
					return "", conflict("saleId")
				}
			}
			t = in.of(v)
			changed = t.changes(v)
			var offers error
			if v.Draw.On() {
				offers = checkOffersEnd(v.Draw, t.ends.Sub(t.starts), "endsAt")
			}
			return to, fault.All(t.check(now), offers, s.cfg.Payments.CheckSale(v))
		},
		set: func(u *ent.SaleUpdate) { u.SetStartsAt(t.starts).SetEndsAt(t.ends).SetPreheatAt(t.preheat) },
	}})
}
