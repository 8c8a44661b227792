package order

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"seckill/ent"
	entorder "seckill/ent/order"
	"seckill/ent/predicate"
	"seckill/ent/saleitem"
	"seckill/ent/stockmovement"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
)

// Status is the state of an order.
type Status string

// States of an order. An order is live while it holds or has sold its units;
// a user has at most one live order of an item.
const (
	PendingPayment Status = "PENDING_PAYMENT" // waiting for payment until its deadline
	Paid           Status = "PAID"            // some of its units may have been refunded
	Cancelled      Status = "CANCELLED"       // cancelled by the buyer or an operator; stock was returned
	Expired        Status = "EXPIRED"         // not paid in time; stock was returned
	Refunding      Status = "REFUNDING"       // a refund was requested or is in progress
	Refunded       Status = "REFUNDED"        // the money was returned
)

// Statuses lists every state.
func Statuses() []Status {
	return []Status{PendingPayment, Paid, Cancelled, Expired, Refunding, Refunded}
}

// Live lists the states in which an order holds or has sold its units.
func Live() []Status { return []Status{PendingPayment, Paid, Refunding} }

// IsLive reports whether an order in this state holds or has sold its units.
func (s Status) IsLive() bool { return slices.Contains(Live(), s) }

// Movement is a move of stock, one line in the ledger.
type Movement string

// Moves of stock caused by orders.
const (
	NoMovement Movement = ""        // the units do not move
	Hold       Movement = "HOLD"    // available → held
	Sell       Movement = "SELL"    // held → sold
	Release    Movement = "RELEASE" // held → available
	Reacquire  Movement = "RETAKE"  // available → sold
	Restock    Movement = "RESTOCK" // sold → available
	// Withdraw takes sold units off the sale: the money went back, and the units do not.
	// The total falls by them, in Postgres and in the gate.
	Withdraw Movement = "WITHDRAW"
)

// edge is an allowed transition and its move of stock.
type edge struct {
	from, to Status
	stock    Movement
	keep     Movement // instead of stock, where the caller does not return the units
}

// edges is the table of allowed transitions.
var edges = []edge{
	{PendingPayment, Paid, Sell, NoMovement},
	{PendingPayment, Cancelled, Release, NoMovement},
	{PendingPayment, Expired, Release, NoMovement},
	{Expired, Paid, Reacquire, NoMovement},    // paid late, and a unit was available
	{Paid, Refunding, NoMovement, NoMovement}, // requested by the buyer, or void by an operator
	{Refunding, Paid, NoMovement, NoMovement}, // refused
	{Refunding, Refunded, Restock, Withdraw},  // refunded; returning the units to stock is optional
}

// partEdge is the transition of an order of which some units were refunded, and others are
// left.
var partEdge = edge{Refunding, Paid, Restock, Withdraw}

func edgeOf(from, to Status) (edge, bool) {
	for _, e := range edges {
		if e.from == from && e.to == to {
			return e, true
		}
	}
	return edge{}, false
}

// Ended reports whether the state has no outgoing transition.
func (s Status) Ended() bool {
	return !slices.ContainsFunc(edges, func(e edge) bool { return e.from == s })
}

// Conflicts of a move. For each of them the transaction must be rolled back.
var (
	// ErrMoved reports that another process changed the order first; read it again.
	ErrMoved = errors.New("order was moved by another process")
	// ErrNoUnit reports that the stock has too few units for the move.
	ErrNoUnit = errors.New("no unit left")
	// ErrOtherLive reports that the user has another live order of the item.
	ErrOtherLive = errors.New("user has another live order")
)

// Move is a requested change of state.
type Move struct {
	Order     *Order // as it was read; its status and version are the guard
	To        Status
	At        time.Time
	KeepUnits bool // take the units off the sale instead of returning them, where the table allows it
	// ReturnAfter is how long units of a sold-out item that the move releases stay off sale,
	// unless buyers wait for them: so an accomplice of the buyer cannot predict when to buy
	// them. 0 = they return at once.
	ReturnAfter    time.Duration
	NewReservation *id.Task // for EXPIRED to PAID: the name of the new reservation in Redis
	// Part is the refunded units of a move from REFUNDING; nil = none, or all units of the
	// order.
	Part  *Part
	Entry Entry // for the order's log
	Facts Facts // receives the move; nil = pass nothing on
}

// Part is a refund of some units of an order.
type Part struct {
	Refund id.Refund // key of the line in the stock ledger
	Units  int
}

// edge returns the transition of a move and its number of units.
func (m Move) edge() (edge, int, error) {
	e, ok := edgeOf(m.Order.Status, m.To)
	if !ok {
		return edge{}, 0, fmt.Errorf("order %s: no move from %s to %s", m.Order.ID, m.Order.Status, m.To)
	}
	left := m.Order.Left()
	switch {
	case m.Part == nil && m.To == Refunded && left != m.Order.Quantity:
		return edge{}, 0, fmt.Errorf("order %s: whole refund after %d units were refunded", m.Order.ID,
			m.Order.RefundedQuantity)
	case m.Part == nil:
		return e, m.Order.Quantity, nil
	case m.Order.Status == Refunding && m.To == Paid && m.Part.Units > 0 && m.Part.Units < left:
		return partEdge, m.Part.Units, nil
	case m.To == Refunded && m.Part.Units > 0 && m.Part.Units == left:
		return e, m.Part.Units, nil
	}
	return edge{}, 0, fmt.Errorf("order %s: no refund of %d of %d units from %s to %s", m.Order.ID, m.Part.Units, left,
		m.Order.Status, m.To)
}

// Apply changes an order's state, moves its units and writes its log and its facts in the
// caller's transaction: a compare-and-set on status and version, a line in each log, and a
// guarded update of the item, which is locked last. When units return to stock, the row
// marks them as due in Redis. It returns the order after the move. A move that is not
// in the table is a programming error.
//
// Lock order everywhere: payment, order, item.
func Apply(ctx context.Context, tx *ent.Tx, m Move) (*Order, error) {
	e, units, err := m.edge()
	if err != nil {
		return nil, err
	}
	stock := e.stock
	if e.keep != NoMovement && m.KeepUnits {
		stock = e.keep
	}
	moved := m.Order.moved(m.To, instant(m.At))
	if m.NewReservation != nil {
		moved.ClaimID = m.NewReservation
	}
	line := ledgerLine{kind: stock, key: moved.ID.UUID(), units: units}
	if stock == Release && m.ReturnAfter > 0 {
		scarce, err := allTaken(ctx, tx, moved.Item)
		if err != nil {
			return nil, err
		}
		if scarce {
			line.returnAt = m.At.Add(m.ReturnAfter)
		}
	}
	if stock.refunds() {
		moved.RefundedQuantity = m.Order.RefundedQuantity + units
		if m.Part != nil {
			line.key = m.Part.Refund.UUID()
		}
	}
	if err := compareAndSet(ctx, tx, m.Order, moved, line); err != nil {
		return nil, err
	}
	if err := Log(ctx, tx, moved, m.At, m.Entry); err != nil {
		return nil, err
	}
	facts := orNone(m.Facts)
	if stock.refunds() {
		err = facts.Refunded(ctx, tx, moved, units)
	} else {
		err = facts.Moved(ctx, tx, m.Order.Status, moved)
	}
	if err != nil {
		return nil, err
	}
	if stock == NoMovement {
		return moved, nil
	}
	if err := line.write(ctx, tx, moved); err != nil {
		return nil, err
	}
	if stock != Reacquire {
		return moved, nil
	}
	return moved, facts.UnitsLost(ctx, tx, moved.Item, LostUnits{Available: moved.Quantity, At: moved.UpdatedAt})
}

// allTaken reports whether an item has no units but those that wait for their return: only
// then does an accomplice who knows the time of the return get them first.
func allTaken(ctx context.Context, tx *ent.Tx, item id.Item) (bool, error) {
	row, err := tx.SaleItem.Get(ctx, item)
	if err != nil {
		return false, fmt.Errorf("read stock of item %s: %w", item, err)
	}
	if row.Available == 0 {
		return true, nil
	}
	due, err := tx.Order.Query().Where(entorder.ReturnDue(true), entorder.ItemID(item)).Select(entorder.FieldQuantity).
		Ints(ctx)
	if err != nil {
		return false, fmt.Errorf("read units of item %s that return: %w", item, err)
	}
	for _, units := range due {
		row.Available -= units
	}
	return row.Available <= 0, nil
}

// Note writes to an order's log what its buyer must see although the state does not
// change, such as a declined payment, in the caller's transaction. The version grows as
// with a move, so that the change is published to followers. Money of an entry that was not drawn
// has no order: nil is noted nowhere.
func Note(ctx context.Context, tx *ent.Tx, o *Order, at time.Time, e Entry) (*Order, error) {
	if o == nil {
		return nil, nil
	}
	noted := o.moved(o.Status, instant(at))
	noted.Noted = true
	if err := compareAndSet(ctx, tx, o, noted, ledgerLine{}); err != nil {
		return nil, err
	}
	return noted, Log(ctx, tx, noted, at, e)
}

// Extend moves the payment deadline of an unpaid order, in the caller's transaction.
func Extend(ctx context.Context, tx *ent.Tx, o *Order, at, deadline time.Time) (*Order, error) {
	if o.Status != PendingPayment || o.UnderReview() {
		return nil, ErrMoved
	}
	extended, deadline := o.moved(o.Status, instant(at)), instant(deadline)
	extended.PaymentDeadline, extended.Noted = &deadline, true
	return extended, compareAndSet(ctx, tx, o, extended, ledgerLine{})
}

func (o *Order) moved(to Status, at time.Time) *Order {
	next := *o
	next.Status = to
	next.Version++
	next.UpdatedAt = at
	if to == Paid && o.PaidAt == nil {
		next.PaidAt = &at
	}
	if to != PendingPayment {
		next.PaymentDeadline = nil
	}
	return &next
}

// returns reports whether the reservation in Redis ends with the move.
func (m Movement) returns() bool { return m == Release || m.refunds() }

func (m Movement) refunds() bool { return m == Restock || m == Withdraw }

// ledgerLine is a line of the stock ledger; zero = none.
type ledgerLine struct {
	kind  Movement
	key   uuid.UUID // the order, or a partial refund of it
	units int
	// returnAt is the moment at which the units return to the gate; zero = at once.
	returnAt time.Time
}

func compareAndSet(ctx context.Context, tx *ent.Tx, was, is *Order, line ledgerLine) error {
	update := tx.Order.Update().
		Where(entorder.ID(was.ID), entorder.StatusEQ(entorder.Status(was.Status)), entorder.Version(was.Version)).
		SetStatus(entorder.Status(is.Status)).SetVersion(is.Version).SetUpdatedAt(is.UpdatedAt).
		SetNillablePaidAt(is.PaidAt).SetNillableClaimID(is.ClaimID)
	switch {
	case is.PaymentDeadline == nil:
		update.ClearPaymentDeadline()
	case was.PaymentDeadline == nil, !was.PaymentDeadline.Equal(*is.PaymentDeadline): // after a review, or extended
		update.SetPaymentDeadline(*is.PaymentDeadline)
	}
	if is.Review != was.Review {
		is.Review.store(update)
	}
	if line.kind.returns() {
		update.SetReturnDue(true)
		if line.returnAt.IsZero() {
			update.ClearReturnAt()
		} else {
			update.SetReturnAt(instant(line.returnAt))
		}
	}
	if line.kind.refunds() {
		// The row names one refund whose units are due: those of the one before must be back
		// at the gate.
		update.Where(entorder.ReturnDue(false)).SetRefundedQuantity(is.RefundedQuantity)
	}
	if line.kind.refunds() && line.key != is.ID.UUID() {
		update.SetReturnKey(id.Refund(line.key))
	}
	if line.kind == Reacquire {
		update.Where(entorder.ReturnDue(false)) // the previous reservation must have been returned
	}
	n, err := update.Save(ctx)
	switch {
	case postgres.IsUnique(err):
		return ErrOtherLive
	case err != nil:
		return fmt.Errorf("move order %s from %s to %s: %w", was.ID, was.Status, is.Status, err)
	case n == 0:
		return ErrMoved
	}
	return nil
}

// write writes the line, whose key makes the move happen at most once, and moves the units.
func (l ledgerLine) write(ctx context.Context, tx *ent.Tx, o *Order) error {
	err := tx.StockMovement.Create().SetID(id.New[uuid.UUID]()).SetOrderID(l.key).SetItemID(o.Item).
		SetKind(stockmovement.Kind(l.kind)).SetQuantity(l.units).SetCreatedAt(o.UpdatedAt).Exec(ctx)
	if err != nil {
		return fmt.Errorf("ledger %s of order %s: %w", l.kind, o.ID, err)
	}
	return changeStock(ctx, tx, l.kind, o.Item, l.units)
}

// changeStock moves n units of an item between its columns; the guard keeps each column
// at zero or above.
func changeStock(ctx context.Context, tx *ent.Tx, kind Movement, item id.Item, n int) error {
	guard, update := stockChange(tx.SaleItem.Update(), kind, n)
	changed, err := update.Where(saleitem.ID(item), guard).AddRevision(1).Save(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("%s %d units of item %s: %w", kind, n, item, err)
	case changed == 0:
		return ErrNoUnit
	}
	return nil
}

func stockChange(update *ent.SaleItemUpdate, kind Movement, n int) (predicate.SaleItem, *ent.SaleItemUpdate) {
	switch kind {
	case Hold:
		return saleitem.AvailableGTE(n), update.AddAvailable(-n).AddHeld(n)
	case Sell:
		return saleitem.HeldGTE(n), update.AddHeld(-n).AddSold(n)
	case Release:
		return saleitem.HeldGTE(n), update.AddHeld(-n).AddAvailable(n)
	case Reacquire:
		return saleitem.AvailableGTE(n), update.AddAvailable(-n).AddSold(n)
	case Restock:
		return saleitem.SoldGTE(n), update.AddSold(-n).AddAvailable(n)
	case Withdraw:
		return saleitem.SoldGTE(n), update.AddSold(-n).AddTotal(-n)
	case NoMovement:
	}
	panic(fmt.Sprintf("order: no change of stock for movement %q", kind)) // the table has no other movement
}
