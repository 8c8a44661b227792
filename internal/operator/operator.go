// Package operator holds what operators do: write goods and sales, take a sale
// through its review, open, hold and end it, change its stock and its switches,
// void orders, look things up.
//
// Every act goes along the one table of package sale, as a compare-and-set on the
// sale's status and revision, and is logged in the same transaction with who, when
// and why. What Redis has to follow is done at once after the commit; when the
// process dies in between, the loops finish it: preload turns gates, Step of this
// package finishes changes of stock. See stock.go for how a change of stock comes
// through a crash, and interventions.go for the rule of two persons.
//
// The package owns the interventions. It does not build gates (package preload),
// take stock (package reservation), or move orders and money (package payment).
package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/google/uuid"

	"seckill/ent"
	"seckill/internal/clock"
	"seckill/internal/fault"
	"seckill/internal/id"
	"seckill/internal/order"
	"seckill/internal/payment"
	"seckill/internal/postgres"
	"seckill/internal/reservation"
	"seckill/internal/sale"
)

// DefaultTwoPersonUnits is how many units of an item are put on sale within 24 h
// without a second person.
const DefaultTwoPersonUnits = 100

// maxTries is how often an act is decided anew because somebody else changed the
// sale meanwhile. Past it the caller is told CONFLICT.
const maxTries = 8

// Config says what a Service needs.
type Config struct {
	DB       *postgres.DB
	Sales    *sale.Store
	Versions *sale.Versions // nil = other processes find changes by themselves
	Forget   func()         // tells the catalogue of this process to read anew
	Gate     *reservation.Gate
	Orders   *order.Store
	// Load builds the gates of a scheduled sale in somebody's name.
	Load func(ctx context.Context, sale uuid.UUID, by sale.Actor, note string) (bool, error)
	// SetState makes the gates of a sale stand as its status says.
	SetState func(ctx context.Context, sale uuid.UUID) error
	// RefreshStock reads the gates anew for this process, so that who changed stock sees
	// what came of it; nil = it is seen a moment later.
	RefreshStock func(ctx context.Context) error
	Payments     *payment.Service
	// Publish is told of every act after its commit, for the live log; may be nil.
	Publish func(ctx context.Context, line sale.LogLine)
	// Audit is called when an operator exports orders ("ORDERS_EXPORTED") or searches for
	// buyers ("BUYERS_SEARCHED"); may be nil.
	Audit func(ctx context.Context, by uuid.UUID, kind, detail string)
	// TwoPersonUnits is how many units of an item are put on sale within 24 h without a
	// second person; 0 = DefaultTwoPersonUnits.
	TwoPersonUnits int
	Clock          clock.Clock
	NewID          id.Generator // nil = id.New
	Log            *slog.Logger
}

// Service does what operators ask for. It is safe for concurrent use.
type Service struct{ cfg Config }

// New returns a service.
func New(cfg Config) *Service {
	if cfg.TwoPersonUnits == 0 {
		cfg.TwoPersonUnits = DefaultTwoPersonUnits
	}
	if cfg.NewID == nil {
		cfg.NewID = id.New
	}
	if cfg.RefreshStock == nil {
		cfg.RefreshStock = func(context.Context) error { return nil }
	}
	if cfg.Audit == nil {
		cfg.Audit = func(context.Context, uuid.UUID, string, string) {}
	}
	if cfg.Publish == nil {
		cfg.Publish = func(context.Context, sale.LogLine) {}
	}
	return &Service{cfg: cfg}
}

// act is an act on a sale, to be decided on the sale as it stands.
type act struct {
	by      sale.Actor
	sale    uuid.UUID
	what    sale.Act
	note    string
	details any // what changed beside the status; nil = nothing
	// decide chooses the target and may refuse; nil = the table's only target.
	decide func(v *sale.Sale) (sale.Status, fault.Refusal, error)
	// set adds to the update of the sale's row; within does more in the same
	// transaction. Both may be nil.
	set    func(u *ent.SaleUpdate)
	within func(ctx context.Context, tx *ent.Tx, v *sale.Sale) error
}

// do carries an act out and returns the sale as it stands then. Beside a refusal
// it returns the sale that the refusal was decided on.
func (s *Service) do(ctx context.Context, a act) (*sale.Sale, fault.Refusal, error) {
	if err := authorise(a.by, a.what); err != nil {
		return nil, nil, err
	}
	for range maxTries {
		v, err := s.cfg.Sales.ByID(ctx, a.sale)
		if err != nil {
			return nil, nil, err
		}
		if v == nil {
			return nil, unknown("saleId"), nil
		}
		to, refusal, err := a.target(v)
		if refusal != nil || err != nil {
			return v, refusal, err
		}
		line, err := s.try(ctx, a, v, to)
		if errors.Is(err, sale.ErrMoved) {
			continue
		}
		if err != nil {
			return nil, nil, unknownOutcome(err)
		}
		s.cfg.Forget()
		s.cfg.Publish(ctx, line)
		now, err := s.cfg.Sales.ByID(ctx, a.sale)
		return now, nil, err
	}
	v, err := s.cfg.Sales.ByID(ctx, a.sale)
	return v, conflict(), err
}

// target returns where the act leads from where the sale stands.
func (a act) target(v *sale.Sale) (sale.Status, fault.Refusal, error) {
	targets := sale.Targets(a.what, v.Status)
	if len(targets) == 0 {
		return "", conflict("saleId"), nil
	}
	if a.decide == nil {
		return targets[0], nil, nil
	}
	return a.decide(v)
}

// try makes the change of a sale as it was read.
func (s *Service) try(ctx context.Context, a act, v *sale.Sale, to sale.Status) (sale.LogLine, error) {
	details, err := detailsOf(a.details)
	if err != nil {
		return sale.LogLine{}, err
	}
	c := sale.Change{
		ID: s.cfg.NewID(), Sale: v.ID, From: v.Status, Revision: v.Revision, Act: a.what, To: to,
		By: a.by, Note: a.note, Details: details, At: s.cfg.Clock.Now(),
	}
	err = s.write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		if err := sale.Apply(ctx, tx, c, a.set); err != nil {
			return err
		}
		if a.within == nil {
			return nil
		}
		return a.within(ctx, tx, v)
	})
	return c.Line(), err
}

// write runs a transaction that changes the catalogue.
func (s *Service) write(ctx context.Context, fn func(ctx context.Context, tx *ent.Tx) error) error {
	return s.cfg.Versions.Write(ctx, func(ctx context.Context) error { return s.cfg.DB.WithTx(ctx, fn) })
}

// setState lets the gates follow a sale at once. The act stands whatever comes of it.
func (s *Service) setState(ctx context.Context, saleID uuid.UUID) {
	if err := s.cfg.SetState(ctx, saleID); err != nil {
		s.cfg.Log.WarnContext(ctx, "gates follow later", slog.String("sale", id.Format(id.Sale, saleID)), slog.Any("error", err))
	}
}

// authorise tells nobody, a role that is too low, and everybody else apart.
func authorise(by sale.Actor, what sale.Act) error {
	if by.Clock() {
		return fault.New(fault.Unauthenticated, "Sign in first.")
	}
	least, ok := sale.LeastRole(what)
	if !ok || !by.Role.AtLeast(least) {
		return fault.New(fault.Forbidden, "Your role does not allow this.")
	}
	return nil
}

func detailsOf(details any) (string, error) {
	if details == nil {
		return "", nil
	}
	text, err := json.Marshal(details)
	if err != nil {
		return "", fmt.Errorf("details of an act: %w", err)
	}
	if string(text) == "{}" {
		return "", nil
	}
	return string(text), nil
}

// unknownOutcome words an error after which nobody knows whether the act took effect.
func unknownOutcome(err error) error {
	if errors.Is(err, postgres.ErrCommitUnknown) {
		return fault.Wrap(fault.Timeout, "It is not known whether this took effect; look before you try again.", err)
	}
	return err
}

func conflict(path ...string) fault.Refusal { return refused(fault.Conflict, path) }

// SelfApproval refuses to let somebody decide on what they wrote or asked for
// themselves: it takes another person.
type SelfApproval struct{ fault.Refused }

func selfApproval(field string) fault.Refusal {
	return SelfApproval{fault.Refused{Why: fault.Conflict, At: []string{"input", field}}}
}

// TooFew refuses to take units off sale that somebody has.
type TooFew struct{ fault.Refused }

func tooFew() fault.Refusal {
	return TooFew{fault.Refused{Why: fault.Conflict, At: []string{"input", "units"}}}
}

func unknown(path ...string) fault.Refusal { return refused(fault.Unknown, path) }

func refused(why fault.Reason, path []string) fault.Refusal {
	if len(path) == 0 {
		return fault.Refused{Why: why}
	}
	return fault.Refused{Why: why, At: append([]string{"input"}, path...)}
}

func invalid(rule string, path ...string) fault.Refusal {
	return fault.BadField{At: append([]string{"input"}, path...), Rule: rule}
}

// maxTimeline is how many lines of a sale's log are shown.
const maxTimeline = 50

// Timeline returns the newest acts on a sale, newest first.
func (s *Service) Timeline(ctx context.Context, saleID uuid.UUID) ([]sale.LogLine, error) {
	return s.cfg.Sales.Log(ctx, saleID, maxTimeline)
}

// GoodsTimeline returns the newest changes of a goods, newest first.
func (s *Service) GoodsTimeline(ctx context.Context, goodsID uuid.UUID) ([]sale.GoodsLine, error) {
	return s.cfg.Sales.GoodsLog(ctx, goodsID, maxTimeline)
}
