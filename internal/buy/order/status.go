package order

import "slices"

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
