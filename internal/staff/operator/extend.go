package operator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"seckill/ent"
	"seckill/ent/intervention"
	"seckill/internal/buy/sale"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
)

// DefaultTwoPersonExtension is by how much sales can be extended within 24 h without
// confirmation by a second operator.
const DefaultTwoPersonExtension = 30 * time.Minute

// maxExtension bounds one extension: a sale that lasts longer is a new sale.
const maxExtension = 7 * 24 * time.Hour

// ExtendInput is the input of Extend.
type ExtendInput struct {
	By     sale.Actor
	Sale   id.Sale
	EndsAt time.Time // later than the present end
	Note   string
}

// Changed is the result of a change that may need a second person: the sale, and the request
// for confirmation. Of Extend it is also the extension that was made.
type Changed struct {
	*sale.Sale
	Intervention *Intervention
}

// Extend moves the end of a loaded sale to a later time. Once the extensions without
// confirmation within 24 h exceed TwoPersonExtension, it creates a request instead. Repeating
// a call changes nothing.
func (s *Service) Extend(ctx context.Context, in ExtendInput) (Changed, error) {
	if err := authorise(in.By, sale.ActExtend); err != nil {
		return Changed{}, err
	}
	if err := requireNote(&in.Note); err != nil {
		return Changed{}, err
	}
	v, err := s.cfg.Sales.ByID(ctx, in.Sale)
	switch {
	case err != nil:
		return Changed{}, err
	case v == nil:
		return Changed{}, unknown("saleId")
	case len(sale.Targets(sale.ActExtend, v.Status)) == 0:
		return Changed{Sale: v}, conflict("saleId")
	case v.EndsAt.Equal(in.EndsAt):
		return Changed{Sale: v}, nil
	}
	before, err := s.openExtension(ctx, in)
	if before != nil || err != nil {
		return Changed{Sale: v, Intervention: before}, err
	}
	return s.extend(ctx, in.By, &Intervention{
		ID: id.Act(s.cfg.NewID()), Kind: ExtendSale, Sale: in.Sale, EndsAt: &in.EndsAt, Note: in.Note, RequestedBy: in.By.ID,
	})
}

// openExtension returns the same request of the same operator, if it waits; nil = none.
func (s *Service) openExtension(ctx context.Context, in ExtendInput) (*Intervention, error) {
	row, err := s.cfg.DB.Ent.Intervention.Query().Where(
		intervention.SaleID(in.Sale), intervention.KindEQ(intervention.KindEXTEND_SALE),
		intervention.StateEQ(intervention.StateREQUESTED),
		intervention.RequestedBy(in.By.ID), intervention.EndsAt(in.EndsAt),
	).First(ctx)
	if ent.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find extensions of sale %s: %w", in.Sale, err)
	}
	return fromRow(row), nil
}

// extend makes an extension: a new one, or a confirmed request. Postgres has the new end
// before the gates: until they have it they close at the former one.
func (s *Service) extend(ctx context.Context, by sale.Actor, in *Intervention) (Changed, error) {
	done, changed := *in, changes{}
	v, err := s.withGate(ctx, act{
		by: by, sale: in.Sale, what: sale.ActExtend, note: in.Note, details: &changed,
		decide: func(v *sale.Sale) (sale.Status, error) {
			if err := checkEnd(v.EndsAt, *in.EndsAt); err != nil {
				return "", err
			}
			// rounded up: many small extensions add up
			done.Extension = int((in.EndsAt.Sub(v.EndsAt) + time.Second - 1) / time.Second)
			putTime(changed, "endsAt", v.EndsAt, *in.EndsAt)
			in.persons(changed)
			return v.Status, s.checkNotOver(v)
		},
		set: func(u *ent.SaleUpdate) { u.SetEndsAt(*in.EndsAt) },
		within: func(ctx context.Context, tx *ent.Tx, _ *sale.Sale) error {
			if err := s.checkAloneExtension(ctx, tx, &done); err != nil { // after locking the sale's row
				return err
			}
			return s.record(ctx, tx, &done, Done)
		},
	})
	switch {
	case errors.Is(err, errNeedsSecond):
		asked, err := s.request(ctx, &done)
		return Changed{Sale: v, Intervention: asked}, err
	case errors.Is(err, errConflict), postgres.IsUnique(err): // decided by another operator
		now, err := s.Intervention(ctx, in.ID)
		return Changed{Sale: v, Intervention: now}, err
	case err != nil:
		return Changed{Sale: v, Intervention: in}, err
	}
	done.State = Done
	return Changed{Sale: v, Intervention: &done}, nil
}

// checkAloneExtension returns errNeedsSecond for a new extension that exceeds the time
// allowed without confirmation.
func (s *Service) checkAloneExtension(ctx context.Context, tx *ent.Tx, in *Intervention) error {
	if in.State != "" {
		return nil // confirmed
	}
	before, err := tx.Intervention.Query().Where(
		intervention.SaleID(in.Sale), intervention.KindEQ(intervention.KindEXTEND_SALE), intervention.DecidedByIsNil(),
		intervention.StateEQ(intervention.StateDONE), intervention.CreatedAtGT(s.cfg.Clock.Now().Add(-aloneWindow)),
	).Select(intervention.FieldExtensionSeconds).Ints(ctx)
	if err != nil {
		return fmt.Errorf("sum extensions of sale %s: %w", in.Sale, err)
	}
	sum := in.Extension
	for _, seconds := range before {
		sum += seconds
	}
	if time.Duration(sum)*time.Second > s.cfg.TwoPersonExtension {
		return errNeedsSecond
	}
	return nil
}

// persons adds who requested and who confirmed an intervention, each with the reason.
func (act *Intervention) persons(details map[string]any) {
	if act.DecidedBy != nil {
		details["requestedBy"], details["requestNote"] = act.RequestedBy.Public(), act.Note
		details["confirmedBy"], details["confirmNote"] = act.DecidedBy.Public(), act.Decision
	}
}
