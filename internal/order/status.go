package order

import "slices"

// Status is how an order stands.
type Status string

// States of an order. An order is live while it holds or has sold its units;
// a user has at most one live order of an item.
const (
	PendingPayment Status = "PENDING_PAYMENT" // waits for payment until its deadline
	Paid           Status = "PAID"
	Cancelled      Status = "CANCELLED" // called off by the buyer or an operator; stock went back
	Expired        Status = "EXPIRED"   // not paid in time; stock went back
	Refunding      Status = "REFUNDING" // the buyer asked for the money back, or it is on its way
	Refunded       Status = "REFUNDED"  // money went back
)

// Statuses lists every state.
func Statuses() []Status {
	return []Status{PendingPayment, Paid, Cancelled, Expired, Refunding, Refunded}
}

// Live lists the states in which an order has its units.
func Live() []Status { return []Status{PendingPayment, Paid, Refunding} }

// IsLive reports whether an order in this state has its units.
func (s Status) IsLive() bool { return slices.Contains(Live(), s) }

// Valid reports whether s is a state at all.
func (s Status) Valid() bool { return slices.Contains(Statuses(), s) }

// Movement is a move of stock, a line of the ledger.
type Movement string

// Moves of stock that orders cause.
const (
	NoMovement Movement = ""        // the units stay where they are
	Hold       Movement = "HOLD"    // available → held
	Sell       Movement = "SELL"    // held → sold
	Release    Movement = "RELEASE" // held → available
	Reacquire  Movement = "RETAKE"  // available → sold
	Restock    Movement = "RESTOCK" // sold → available
)

// edge is an allowed move and the move of stock that belongs to it.
type edge struct {
	from, to Status
	stock    Movement
	optional bool // the caller may leave the stock where it is
}

// edges is the one table of allowed moves.
var edges = []edge{
	{PendingPayment, Paid, Sell, false},
	{PendingPayment, Cancelled, Release, false},
	{PendingPayment, Expired, Release, false},
	{Expired, Paid, Reacquire, false},    // paid late, and there was a unit
	{Paid, Refunding, NoMovement, false}, // asked for by the buyer, or void by an operator
	{Refunding, Paid, NoMovement, false}, // refused
	{Refunding, Refunded, Restock, true}, // money back; the unit comes back by choice
}

// Allowed reports whether an order may move between two states, and which move of
// stock belongs to it.
func Allowed(from, to Status) (Movement, bool) {
	e, ok := edgeOf(from, to)
	return e.stock, ok
}

func edgeOf(from, to Status) (edge, bool) {
	for _, e := range edges {
		if e.from == from && e.to == to {
			return e, true
		}
	}
	return edge{}, false
}

// Ended reports whether no move leads out of a state.
func (s Status) Ended() bool {
	return !slices.ContainsFunc(edges, func(e edge) bool { return e.from == s })
}
