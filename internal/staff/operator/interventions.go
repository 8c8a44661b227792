package operator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"seckill/ent"
	"seckill/ent/intervention"
	"seckill/ent/predicate"
	"seckill/internal/buy/sale"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/id"
	"seckill/internal/platform/money"
)

// Kind is the type of an intervention.
type Kind string

// Kinds of interventions.
const (
	AdjustStock Kind = "ADJUST_STOCK"
	VoidOrder   Kind = "VOID_ORDER"
	ExtendSale  Kind = "EXTEND_SALE"
	ChangeSale  Kind = "CHANGE_SALE"  // see alone.go
	ChangeGoods Kind = "CHANGE_GOODS" // of a product that an approved sale offers
	DrawValue   Kind = "DRAW_VALUE"   // see drawvalue.go
	// Acts that return money: see money.go.
	Refund        Kind = "REFUND"         // approves the request of a buyer
	SettleRefund  Kind = "SETTLE_REFUND"  // given back outside the provider
	ReturnPayment Kind = "RETURN_PAYMENT" // money that matches no order
	SettlePayment Kind = "SETTLE_PAYMENT" // such money, settled outside the shop
)

// State is the progress of an intervention.
//
// A change of a sale or a product goes from REQUESTED to DONE, DECLINED or, when the sale was
// changed meanwhile, REFUSED.
//
//	a change of stock                          the void of an order
//
//	REQUESTED ──► DECLINED                     REQUESTED (paid) ──► DECLINED
//	    │ confirmed by a second operator           │ confirmed by a second operator
//	    │                                          ▼
//	    ├─ units added:                        REFUNDING ──► DONE
//	    │    Postgres, then FINISHING, then gate
//	    │    ──► DONE                          FINISHING (unpaid) ──► DONE
//	    │                                          │
//	    └─ units taken off:                        └─ paid meanwhile ──► REFUSED
//	         TAKING: gate, then Postgres ──► DONE
//	           │ ├─ fewer are left ──► REFUSED
//	           └─ Postgres has fewer: RETURNING to the gate ──► REFUSED
//
// An intervention that needs no confirmation begins at once. Step finishes those that a
// crashed process left.
type State string

// States of an intervention.
const (
	Requested State = "REQUESTED" // waits for confirmation
	Declined  State = "DECLINED"
	Taking    State = "TAKING"    // units are to be taken from the gate, then from Postgres
	Returning State = "RETURNING" // Postgres could not release them: they go back to the gate
	Refunding State = "REFUNDING" // the money of a paid order is to be refunded
	Finishing State = "FINISHING" // units were added to Postgres, the gate is to follow; or an unpaid order is to end
	Done      State = "DONE"
	Refused   State = "REFUSED" // fewer units were left than requested, or the sale ended first
)

// Intervention is an operation of an operator that may need a second one.
type Intervention struct {
	ID          id.Act
	Kind        Kind
	State       State
	Sale        id.Sale
	Item        id.Item      // of AdjustStock, VoidOrder and DrawValue
	Goods       id.Goods     // of ChangeGoods
	Change      string       // JSON of a storedChange, of ChangeSale, ChangeGoods and DrawValue
	Subject     uuid.UUID    // the refund or the held payment, of acts that return money
	Amount      money.Amount // that goes back
	KeepUnits   bool         // of Refund: the units do not return to stock
	Order       *id.Order    // of VoidOrder
	Units       int          // signed for AdjustStock; 0 for acts on no units
	EndsAt      *time.Time   // new end of the sale, for ExtendSale
	Extension   int          // of ExtendSale: by how many seconds
	Note        string
	RequestedBy id.User
	DecidedBy   *id.User // the second operator
	Decision    string   // remark of the second operator
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

func fromRow(r *ent.Intervention) *Intervention {
	in := &Intervention{
		ID: r.ID, Kind: Kind(r.Kind), State: State(r.State), Sale: r.SaleID, Item: r.ItemID, Order: r.OrderID,
		Units: r.Quantity, EndsAt: r.EndsAt, Extension: r.ExtensionSeconds, Note: r.Note, RequestedBy: r.RequestedBy,
		DecidedBy: r.DecidedBy, Decision: r.Decision,
		CreatedAt: r.CreatedAt.UTC(), UpdatedAt: r.UpdatedAt.UTC(), Change: r.Change,
	}
	switch {
	case r.SubjectID == nil:
	case in.Kind == ChangeGoods:
		in.Goods = id.Goods(*r.SubjectID)
	default:
		in.Subject, in.Amount, in.KeepUnits = *r.SubjectID, money.Amount{Minor: r.AmountMinor, Currency: r.Currency},
			r.Change == keepUnits
		in.Change = ""
	}
	return in
}

// subject returns what an intervention is about beside its sale; nil = the sale, an item or an order.
func (act *Intervention) subject() *uuid.UUID {
	if act.Kind == ChangeGoods {
		u := act.Goods.UUID()
		return &u
	}
	if act.Kind.ofMoney() {
		return &act.Subject
	}
	return nil
}

// keepUnits is the stored change of a refund whose units do not return to stock.
const keepUnits = `{"version":1,"keepUnits":true}`

// change returns what is stored as the change of an intervention.
func (act *Intervention) change() string {
	if act.KeepUnits {
		return keepUnits
	}
	return act.Change
}

// Entries of the live feed about requests for confirmation. They do not change the sale.
const (
	ActRequestAdjust sale.Act = "REQUEST_ADJUST_STOCK"
	ActRequestVoid   sale.Act = "REQUEST_VOID_ORDER"
	ActRequestExtend sale.Act = "REQUEST_EXTEND_SALE"
	ActRequestChange sale.Act = "REQUEST_CHANGE_SALE"
	ActRequestGoods  sale.Act = "REQUEST_CHANGE_GOODS"
	ActRequestValue  sale.Act = "REQUEST_DRAW_VALUE"
)

// publishRequest publishes an entry about a request to the live feed.
func (s *Service) publishRequest(ctx context.Context, v *sale.Sale, act *Intervention, what sale.Act) {
	details, err := act.details()
	if err != nil {
		s.cfg.Log.ErrorContext(ctx, "request not published", slog.Any("error", err))
		return
	}
	s.publish(ctx, sale.LogLine{
		ID: act.ID.UUID(), Sale: v.ID, Actor: &act.RequestedBy, Act: what, From: v.Status, To: v.Status, Revision: v.Revision,
		Note: act.Note, Details: details, At: act.CreatedAt.UTC(),
	})
}

// details returns the log details: what moves, who requested and who confirmed it, each
// with the reason.
func (act *Intervention) details() (string, error) {
	d := map[string]any{}
	switch {
	case act.Change != "":
		c, err := act.stored()
		return string(c.Changed), err
	case act.Kind == ExtendSale:
		d["endsAt"] = act.EndsAt.UTC()
	case act.Order != nil:
		d["units"], d["order"] = act.Units, act.Order.Public()
	default:
		d["units"], d["item"] = act.Units, act.Item.Public()
	}
	act.persons(d)
	return detailsOf(d)
}

// insert writes a new intervention in the caller's transaction.
func (s *Service) insert(ctx context.Context, tx *ent.Tx, in *Intervention) error {
	now := s.cfg.Clock.Now()
	in.CreatedAt, in.UpdatedAt = now, now
	return tx.Intervention.Create().SetID(in.ID).SetKind(intervention.Kind(in.Kind)).
		SetState(intervention.State(in.State)).
		SetSaleID(in.Sale).SetItemID(in.Item).SetNillableOrderID(in.Order).SetQuantity(in.Units).SetNillableEndsAt(in.EndsAt).
		SetExtensionSeconds(in.Extension).SetNote(in.Note).
		SetNillableSubjectID(in.subject()).SetChange(in.change()).SetAmountMinor(in.Amount.Minor).
		SetCurrency(in.Amount.Currency).
		SetRequestedBy(in.RequestedBy).SetCreatedAt(now).SetUpdatedAt(now).Exec(ctx)
}

// errConflict reports that another process advanced the intervention first.
var errConflict = errors.New("intervention was changed by another operator")

// advance moves an intervention by compare-and-set in the caller's transaction.
func (s *Service) advance(ctx context.Context, tx *ent.Tx, in *Intervention, to State) error {
	update := tx.Intervention.Update().Where(intervention.ID(in.ID), intervention.StateEQ(intervention.State(in.State))).
		SetState(intervention.State(to)).SetUpdatedAt(s.cfg.Clock.Now()).SetNillableDecidedBy(in.DecidedBy).
		SetDecision(in.Decision)
	n, err := update.Save(ctx)
	if err != nil {
		return fmt.Errorf("move intervention %s to %s: %w", in.ID, to, err)
	}
	if n == 0 {
		return errConflict
	}
	return nil
}

// move is advance in its own transaction. After a conflict it returns the intervention as
// read again.
func (s *Service) move(ctx context.Context, in *Intervention, to State) (*Intervention, error) {
	err := s.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error { return s.advance(ctx, tx, in, to) })
	if err != nil && !errors.Is(err, errConflict) {
		return nil, err
	}
	return s.Intervention(ctx, in.ID)
}

// Intervention returns an intervention; nil if there is none.
func (s *Service) Intervention(ctx context.Context, interventionID id.Act) (*Intervention, error) {
	row, err := s.cfg.DB.Ent.Intervention.Get(ctx, interventionID)
	if ent.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read intervention %s: %w", interventionID, err)
	}
	return fromRow(row), nil
}

// DecideInput is the decision of the second operator on a request.
type DecideInput struct {
	By           sale.Actor
	Intervention id.Act
	Confirm      bool
	Note         string
}

// Decide confirms or declines a request. The requester, and users who are not independent
// of the requester, cannot confirm it, nor can the buyer of an order confirm its void; a
// requester who declines cancels the request.
func (s *Service) Decide(ctx context.Context, in DecideInput) (*Intervention, error) {
	if err := requireStaff(in.By); err != nil {
		return nil, err
	}
	if err := optional(&in.Note, maxNote, "note"); err != nil {
		return nil, err
	}
	request, err := s.Intervention(ctx, in.Intervention)
	switch {
	case err != nil:
		return nil, err
	case request == nil:
		return nil, unknown("interventionId")
	case request.State != Requested:
		return request, conflict("interventionId")
	}
	if in.Confirm {
		if err := s.secondPerson(ctx, "interventionId", in.By.ID, request.RequestedBy); err != nil {
			return request, err
		}
	}
	if in.Confirm && request.Order != nil {
		o, err := s.cfg.Orders.Reload(ctx, *request.Order)
		if err != nil {
			return nil, err
		}
		if o != nil && o.User == in.By.ID {
			return request, selfApproval("interventionId")
		}
	}
	request.DecidedBy, request.Decision = &in.By.ID, in.Note
	if !in.Confirm {
		now, err := s.move(ctx, request, Declined)
		s.reportChange(ctx)
		if err == nil && now.State != Declined {
			return now, conflict("interventionId")
		}
		return now, err
	}
	switch request.Kind {
	case VoidOrder:
		return s.voidConfirmed(ctx, request)
	case ExtendSale:
		extended, err := s.extend(ctx, in.By, request)
		s.reportChange(ctx)
		return extended.Intervention, err
	case ChangeSale, ChangeGoods, DrawValue:
		changed, err := s.changeConfirmed(ctx, in.By, request)
		s.reportChange(ctx)
		return changed, err
	case Refund, SettleRefund, ReturnPayment, SettlePayment:
		returned, err := s.returnConfirmed(ctx, request)
		s.reportChange(ctx)
		return returned, err
	case AdjustStock:
	}
	return s.adjust(ctx, in.By, request)
}

// MaxInterventions is the largest limit of a list.
const MaxInterventions = 200

// InterventionList says which interventions are listed.
type InterventionList struct {
	Kind   Kind     // "" = of every kind
	Sale   *id.Sale // nil = of every sale
	States []State  // empty = in every state
	After  id.Act   // the intervention before the first; zero = from the newest
	Limit  int      // at most MaxInterventions; 0 = MaxInterventions
}

func (f InterventionList) match() (match []predicate.Intervention) {
	if f.Kind != "" {
		match = append(match, intervention.KindEQ(intervention.Kind(f.Kind)))
	}
	if f.Sale != nil {
		match = append(match, intervention.SaleID(*f.Sale))
	}
	if len(f.States) > 0 {
		in := collect.Map(f.States, func(st State) intervention.State { return intervention.State(st) })
		match = append(match, intervention.StateIn(in...))
	}
	return match
}

// Interventions returns interventions, newest first.
func (s *Service) Interventions(ctx context.Context, f InterventionList) ([]*Intervention, error) {
	limit := MaxInterventions
	if f.Limit > 0 {
		limit = min(f.Limit, MaxInterventions)
	}
	query := s.cfg.DB.Ent.Intervention.Query().Where(f.match()...).Order(ent.Desc(intervention.FieldID)).Limit(limit)
	if !f.After.IsZero() {
		query.Where(intervention.IDLT(f.After))
	}
	rows, err := query.All(ctx)
	if err != nil {
		return nil, fmt.Errorf("list interventions: %w", err)
	}
	return collect.Map(rows, fromRow), nil
}

// CountInterventions returns the number of interventions, whatever After and Limit are.
func (s *Service) CountInterventions(ctx context.Context, f InterventionList) (int, error) {
	n, err := s.cfg.DB.Ent.Intervention.Query().Where(f.match()...).Count(ctx)
	if err != nil {
		return 0, fmt.Errorf("count interventions: %w", err)
	}
	return n, nil
}
