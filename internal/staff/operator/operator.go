// Package operator implements the operations of operators: write products and sales,
// review, start, pause and end sales, change stock and switches, void orders, search.
//
// Each operation on a sale follows the transition table of package sale, as a
// compare-and-set on the sale's status and revision, and is logged in the same
// transaction with actor, time and reason. Redis is updated right after the commit. If
// the process crashes in between, the loops finish the work: preload updates gates, Step
// of this package finishes changes of stock. See stock.go for crash safety of stock
// changes, and interventions.go for the two-person rule.
//
// The package owns the interventions. It does not build gates (package preload), take
// stock (package reservation), or move orders and money (package payment).
package operator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"

	"seckill/ent"
	"seckill/internal/buy/access"
	"seckill/internal/buy/order"
	"seckill/internal/buy/reservation"
	"seckill/internal/buy/sale"
	"seckill/internal/buy/waitlist"
	"seckill/internal/identity/account"
	"seckill/internal/identity/servicetoken"
	"seckill/internal/outbox/webhook"
	"seckill/internal/pay/payment"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
)

// DefaultTwoPersonUnits is how many units of an item can be added within 24 h without
// confirmation by a second operator.
const DefaultTwoPersonUnits = 100

// DefaultPaymentWindow is how long a buyer has to pay in a sale without its own window.
const DefaultPaymentWindow = 15 * time.Minute

// maxTries is how often an operation is retried because the sale was changed
// concurrently. After that the error is CONFLICT.
const maxTries = 8

// Config configures a Service.
type Config struct {
	DB       *postgres.DB
	Sales    *sale.Store
	Versions *sale.Versions // nil = other processes detect changes by polling
	Catalog  *sale.Catalog  // the catalogue of this process, which reads again after each change
	Gate     *reservation.Gate
	Orders   *order.Store
	Gates    Gates
	// Stock is the copy of the gates in this process, refreshed after a change of stock so
	// that the operator sees it at once; nil = it is visible a moment later.
	Stock    *reservation.StockCache
	Codes    access.Codes // makes the codes that give access
	Payments *payment.Service
	Waitlist *waitlist.Service
	Facts    order.Facts          // of stock
	Outbox   *webhook.Outbox      // nil = events for other systems are not written
	Feed     Feed                 // nil = log entries are not published
	Inbox    Inbox                // nil = changes are not reported
	Security *account.SecurityLog // records what operators view; nil = not recorded
	// Persons decides who is a second person; nil = every other user is.
	Persons *account.Persons
	// ExternalCaptcha means that a service checks captchas of the kind EXTERNAL. Without it a
	// sale that lists the kind would fall back to proofs of work, and is refused.
	ExternalCaptcha bool
	// what service accounts wrote counts as written by their creators; nil = there are none
	Tokens *servicetoken.Service
	// TwoPersonUnits is how many units of an item can be added within 24 h without
	// confirmation by a second operator; 0 = DefaultTwoPersonUnits.
	TwoPersonUnits int
	// TwoPersonExtension is by how much a sale can be extended within 24 h without
	// confirmation by a second operator; 0 = DefaultTwoPersonExtension.
	TwoPersonExtension time.Duration
	// TwoPersonMoney is how much one operator returns within 24 h without confirmation by a
	// second operator, in minor units of each currency; 0 = DefaultTwoPersonMoney.
	TwoPersonMoney int64
	Names          account.Names // of accounts, for searches
	// PaymentWindow is that of sales that are created without one; 0 = DefaultPaymentWindow.
	PaymentWindow time.Duration
	Clock         clock.Clock
	NewID         id.Generator // nil = id.New
	Log           *slog.Logger
}

// Gates loads the gates of sales and sets their states; preload.Preloader implements it.
type Gates interface {
	// LoadBy builds the gates of a scheduled sale on behalf of an actor.
	LoadBy(ctx context.Context, sale id.Sale, by sale.Actor, note string) (bool, error)
	// SetState sets the state of a sale's gates to match its status.
	SetState(ctx context.Context, sale id.Sale) error
}

// Feed publishes log entries after their commit; salestats.Feed implements it.
type Feed interface {
	Act(ctx context.Context, line sale.LogLine)
}

// Inbox learns after the commit that what waits for another operator has changed;
// inbox.Reporter implements it.
type Inbox interface {
	Changed(ctx context.Context)
}

// Service implements the operations. It is safe for concurrent use.
type Service struct{ cfg Config }

// New returns a Service.
func New(cfg Config) *Service {
	if cfg.TwoPersonUnits == 0 {
		cfg.TwoPersonUnits = DefaultTwoPersonUnits
	}
	if cfg.TwoPersonExtension == 0 {
		cfg.TwoPersonExtension = DefaultTwoPersonExtension
	}
	if cfg.TwoPersonMoney == 0 {
		cfg.TwoPersonMoney = DefaultTwoPersonMoney
	}
	if cfg.PaymentWindow == 0 {
		cfg.PaymentWindow = DefaultPaymentWindow
	}
	if cfg.NewID == nil {
		cfg.NewID = id.New[uuid.UUID]
	}
	return &Service{cfg: cfg}
}

// act is an operation on a sale, decided on the sale's present state.
type act struct {
	by      sale.Actor
	sale    id.Sale
	what    sale.Act
	note    string
	details any // what changed apart from the status; nil = nothing
	// decide selects the target status and may refuse; nil = the only target in the
	// table.
	decide func(v *sale.Sale) (sale.Status, error)
	// set adds to the update of the sale's row; within runs in the same transaction. Both
	// may be nil.
	set    func(u *ent.SaleUpdate)
	within func(ctx context.Context, tx *ent.Tx, v *sale.Sale) error
}

// do executes an operation and returns the sale afterwards. Beside a refusal it returns the
// sale that the refusal is based on.
func (s *Service) do(ctx context.Context, a act) (*sale.Sale, error) {
	if err := authorise(a.by, a.what); err != nil {
		return nil, err
	}
	for range maxTries {
		v, err := s.cfg.Sales.ByID(ctx, a.sale)
		if err != nil {
			return nil, err
		}
		if v == nil {
			return nil, unknown("saleId")
		}
		to, err := a.target(v)
		if err != nil {
			return v, err
		}
		line, err := s.try(ctx, a, v, to)
		if errors.Is(err, sale.ErrMoved) {
			continue
		}
		if err != nil {
			return nil, unknownOutcome(err)
		}
		s.forgetCatalog()
		s.publish(ctx, line)
		return s.cfg.Sales.ByID(ctx, a.sale)
	}
	v, err := s.cfg.Sales.ByID(ctx, a.sale)
	return v, cmp.Or(err, conflict())
}

// target returns the status that the operation leads to.
func (a act) target(v *sale.Sale) (sale.Status, error) {
	targets := sale.Targets(a.what, v.Status)
	if len(targets) == 0 {
		return "", conflict("saleId")
	}
	if a.decide == nil {
		return targets[0], nil
	}
	return a.decide(v)
}

// try writes the change of a sale as it was read.
func (s *Service) try(ctx context.Context, a act, v *sale.Sale, to sale.Status) (sale.LogLine, error) {
	details, err := detailsOf(a.details)
	if err != nil {
		return sale.LogLine{}, err
	}
	c := sale.Change{
		ID: s.cfg.NewID(), Sale: v.ID, From: v.Status, Revision: v.Revision, Act: a.what, To: to,
		By: a.by, Note: a.note, Details: details, At: s.cfg.Clock.Now(), Outbox: s.cfg.Outbox,
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

func (s *Service) forgetCatalog() {
	if s.cfg.Catalog != nil {
		s.cfg.Catalog.Forget()
	}
}

func (s *Service) publish(ctx context.Context, line sale.LogLine) {
	if s.cfg.Feed != nil {
		s.cfg.Feed.Act(ctx, line)
	}
	s.reportChange(ctx)
}

// reportChange reports to the inbox that what waits for another operator has changed.
func (s *Service) reportChange(ctx context.Context) {
	if s.cfg.Inbox != nil {
		s.cfg.Inbox.Changed(ctx)
	}
}

func (s *Service) audit(ctx context.Context, by id.User, kind account.EventKind, detail string) {
	if s.cfg.Security != nil {
		s.cfg.Security.Write(ctx, account.Event{Kind: kind, Actor: by, Detail: detail})
	}
}

// authorise returns Unauthenticated without a principal and Forbidden below the required
// role.
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

// unknownOutcome describes an error after which it is unknown whether the operation took
// effect.
func unknownOutcome(err error) error {
	if errors.Is(err, postgres.ErrCommitUnknown) {
		return fault.Wrap(fault.Timeout, "It is unknown whether this took effect. Check before you try again.", err)
	}
	return err
}

func conflict(path ...string) error { return refused(fault.Conflict, path) }

// SelfApproval refuses a decision by the user who wrote or requested the change.
type SelfApproval struct{ fault.Refused }

func selfApproval(field string) error {
	return SelfApproval{fault.Refused{Why: fault.Conflict, At: []string{field}}}
}

// SamePerson refuses a decision by an account that may belong to the person who wrote or
// requested the change.
type SamePerson struct {
	fault.Refused
	Because account.Dependence
}

// secondPerson refuses a user who is not independent of those who wrote or requested a
// change.
func (s *Service) secondPerson(ctx context.Context, field string, user id.User, first ...id.User) error {
	own, err := s.Agents(ctx, user)
	if err != nil {
		return err
	}
	own = append(own, user)
	if slices.ContainsFunc(first, func(other id.User) bool { return slices.Contains(own, other) }) {
		return selfApproval(field)
	}
	if s.cfg.Persons == nil {
		return nil
	}
	because, err := s.cfg.Persons.Dependence(ctx, user, first...)
	if err != nil || because == "" {
		return err
	}
	return SamePerson{fault.Refused{Why: fault.Conflict, At: []string{field}}, because}
}

// TooFew refuses to remove units that are not available.
type TooFew struct{ fault.Refused }

func tooFew() error {
	return TooFew{fault.Refused{Why: fault.Conflict, At: []string{"units"}}}
}

func unknown(path ...string) error { return refused(fault.Unknown, path) }

func refused(why fault.Reason, path []string) error {
	if len(path) == 0 {
		return fault.Refused{Why: why}
	}
	return fault.Refused{Why: why, At: path}
}

func invalid(rule fault.Rule, path ...string) error {
	return fault.BadField{At: append([]string{}, path...), Rule: rule}
}

// maxTimeline limits the displayed entries of a sale's log.
const maxTimeline = 50

// Timeline returns the newest log entries of a sale, newest first.
func (s *Service) Timeline(ctx context.Context, saleID id.Sale) ([]sale.LogLine, error) {
	return s.cfg.Sales.Log(ctx, saleID, maxTimeline)
}

// GoodsTimeline returns the newest log entries of a product, newest first.
func (s *Service) GoodsTimeline(ctx context.Context, goodsID id.Goods) ([]sale.GoodsLine, error) {
	return s.cfg.Sales.GoodsLog(ctx, goodsID, maxTimeline)
}
