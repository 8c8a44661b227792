package sale

import (
	"slices"

	"seckill/internal/platform/auth"
)

// Act is a kind of change of a sale. Each one is logged with actor, time and reason.
type Act string

// Acts.
const (
	ActCreate   Act = "CREATE"
	ActUpdate   Act = "UPDATE"
	ActSubmit   Act = "SUBMIT"
	ActApprove  Act = "APPROVE"
	ActReject   Act = "REJECT"
	ActWithdraw Act = "WITHDRAW" // a submission is taken back
	ActSchedule Act = "SCHEDULE"
	ActPreheat  Act = "PREHEAT"
	ActOpen     Act = "OPEN"
	ActPause    Act = "PAUSE"
	ActResume   Act = "RESUME"
	ActEnd      Act = "END"
	ActCancel   Act = "CANCEL"
	ActDiscard  Act = "DISCARD" // of an own draft
	ActSettle   Act = "SETTLE"  // the last order has ended; the gate is removed from Redis
	// The following acts do not change the status.
	ActRebuild  Act = "REBUILD" // a gate that Redis lost is rebuilt
	ActAdjust   Act = "ADJUST_STOCK"
	ActVoid     Act = "VOID_ORDER"
	ActExpire   Act = "EXPIRE_ORDER"  // an unpaid order, before the clock does
	ActHold     Act = "HOLD_ORDERS"   // unpaid orders of a cluster, for review
	ActRelease  Act = "RELEASE_ORDER" // from review
	ActSwitch   Act = "SET_SWITCHES"
	ActExtend   Act = "EXTEND_SALE"  // a later end of a loaded sale
	ActDescribe Act = "DESCRIBE"     // title and rules of a sale that was approved
	ActGoods    Act = "CHANGE_GOODS" // a product that the sale offers was changed
	ActCodes    Act = "CHANGE_CODES" // codes that give access were created or revoked
	ActValue    Act = "ENTER_DRAW_VALUE"
)

// who is the set of actors that may perform an act.
type who struct {
	role  auth.Role // lowest role of a user; "" = no user
	clock bool      // whether the scheduler may perform it
}

var (
	operators      = who{role: auth.Operator}
	admins         = who{role: auth.Admin}
	theClock       = who{clock: true}
	operatorsClock = who{role: auth.Operator, clock: true}
	adminsClock    = who{role: auth.Admin, clock: true}
)

// move is one line of the state table.
type move struct {
	act      Act
	from, to Status
	who      who
}

// moves is the state table: every allowed act, its target and its actors. The diagram
// is in the package documentation. In addition, the author of a sale must not approve
// it, and stock changes and voids follow the two-person rule (package operator).
var moves = []move{
	{ActUpdate, Draft, Draft, operators},
	{ActUpdate, Rejected, Draft, operators},
	{ActSubmit, Draft, PendingApproval, operators},
	{ActApprove, PendingApproval, Approved, admins},
	{ActReject, PendingApproval, Rejected, admins},
	{ActWithdraw, PendingApproval, Draft, operators},
	{ActSchedule, Approved, Scheduled, operators},
	{ActSchedule, Scheduled, Scheduled, operators},
	{ActSchedule, Preheated, Preheated, operators}, // before the opening
	{ActSchedule, Paused, Paused, operators},       // before the opening
	{ActPreheat, Scheduled, Preheated, operatorsClock},
	{ActOpen, Preheated, Live, theClock},
	{ActPause, Preheated, Paused, operators},
	{ActPause, Live, Paused, operators},
	{ActResume, Paused, Preheated, operators}, // before the opening
	{ActResume, Paused, Live, operators},

	{ActEnd, Scheduled, Ended, theClock}, // its closing time passed before it was loaded
	{ActEnd, Preheated, Ended, adminsClock},
	{ActEnd, Live, Ended, adminsClock},
	{ActEnd, Paused, Ended, adminsClock},
	{ActCancel, Draft, Cancelled, admins},
	{ActCancel, PendingApproval, Cancelled, admins},
	{ActCancel, Rejected, Cancelled, admins},
	{ActCancel, Approved, Cancelled, admins},
	{ActCancel, Scheduled, Cancelled, admins},
	{ActCancel, Preheated, Cancelled, admins}, // before the opening
	{ActCancel, Paused, Cancelled, admins},    // before the opening
	{ActDiscard, Draft, Cancelled, operators},
	{ActDiscard, Rejected, Cancelled, operators},
	{ActDiscard, Ended, Cancelled, theClock}, // a sale for tests, made by the command line
	{ActDiscard, Cancelled, Cancelled, theClock},
	{ActSettle, Ended, Ended, theClock},
	{ActSettle, Cancelled, Cancelled, theClock},

	{ActRebuild, Preheated, Preheated, theClock},
	{ActRebuild, Live, Live, theClock},
	{ActRebuild, Paused, Paused, theClock},
	{ActAdjust, Approved, Approved, operators},
	{ActAdjust, Scheduled, Scheduled, operators},
	{ActAdjust, Preheated, Preheated, operators},
	{ActAdjust, Live, Live, operators},
	{ActAdjust, Paused, Paused, operators},
	{ActVoid, Preheated, Preheated, operators}, // the clock may set LIVE seconds late
	{ActVoid, Live, Live, operators},
	{ActVoid, Paused, Paused, operators},
	{ActVoid, Ended, Ended, operators},
	{ActExpire, Preheated, Preheated, operators},
	{ActExpire, Live, Live, operators},
	{ActExpire, Paused, Paused, operators},
	{ActExpire, Ended, Ended, operators},
	{ActHold, Preheated, Preheated, operators},
	{ActHold, Live, Live, operators},
	{ActHold, Paused, Paused, operators},
	{ActHold, Ended, Ended, operators},
	{ActRelease, Preheated, Preheated, operators},
	{ActRelease, Live, Live, operators},
	{ActRelease, Paused, Paused, operators},
	{ActRelease, Ended, Ended, operators},
	{ActSwitch, Draft, Draft, operators},
	{ActSwitch, PendingApproval, PendingApproval, operators},
	{ActSwitch, Rejected, Rejected, operators},
	{ActSwitch, Approved, Approved, operators},
	{ActSwitch, Scheduled, Scheduled, operators},
	{ActSwitch, Preheated, Preheated, operators},
	{ActSwitch, Live, Live, operators},
	{ActSwitch, Paused, Paused, operators},
	{ActCodes, Draft, Draft, operators},
	{ActCodes, PendingApproval, PendingApproval, operators},
	{ActCodes, Rejected, Rejected, operators},
	{ActCodes, Approved, Approved, operators},
	{ActCodes, Scheduled, Scheduled, operators},
	{ActCodes, Preheated, Preheated, operators},
	{ActCodes, Live, Live, operators},
	{ActCodes, Paused, Paused, operators},
	{ActExtend, Preheated, Preheated, operators},
	{ActExtend, Live, Live, operators},
	{ActExtend, Paused, Paused, operators},
	{ActValue, Preheated, Preheated, operators},
	{ActValue, Live, Live, operators},
	{ActValue, Paused, Paused, operators},
	{ActDescribe, Approved, Approved, operators},
	{ActDescribe, Scheduled, Scheduled, operators},
	{ActDescribe, Preheated, Preheated, operators},
	{ActDescribe, Live, Live, operators},
	{ActDescribe, Paused, Paused, operators},
	{ActDescribe, Ended, Ended, operators},
}

// Allowed reports whether an act may move a sale from one status to another.
func Allowed(act Act, from, to Status) bool {
	return slices.ContainsFunc(moves, func(m move) bool { return m.act == act && m.from == from && m.to == to })
}

// Targets returns the possible target statuses of an act of a user; none if the status forbids
// it.
func Targets(act Act, from Status) []Status {
	var to []Status
	for _, m := range moves {
		if m.act == act && m.from == from && m.who.role != "" {
			to = append(to, m.to)
		}
	}
	return to
}

// LeastRole returns the lowest role that may perform an act, and false if only the
// clock may.
func LeastRole(act Act) (auth.Role, bool) {
	if act == ActCreate {
		return auth.Operator, true
	}
	for _, m := range moves {
		if m.act == act && m.who.role != "" {
			return m.who.role, true
		}
	}
	return "", false
}

func (m move) mayBeMadeBy(a Actor) bool {
	if a.Clock() {
		return m.who.clock
	}
	return m.who.role != "" && a.Role.AtLeast(m.who.role)
}

// Statuses lists every status in its usual order.
func Statuses() []Status {
	return []Status{Draft, PendingApproval, Rejected, Approved, Scheduled, Preheated, Live, Paused, Ended, Cancelled}
}

// Acts lists every act.
func Acts() []Act {
	return []Act{
		ActCreate, ActUpdate, ActSubmit, ActApprove, ActReject, ActWithdraw, ActSchedule, ActPreheat, ActOpen, ActPause,
		ActResume,
		ActEnd, ActCancel, ActDiscard, ActSettle, ActRebuild, ActAdjust, ActVoid, ActExpire, ActHold, ActRelease, ActSwitch,
		ActExtend, ActValue, ActDescribe, ActGoods, ActCodes,
	}
}
