package sale

import (
	"slices"

	"seckill/internal/auth"
)

// Act is what is done to a sale. Each is logged with who, when and why.
type Act string

// Acts.
const (
	ActCreate   Act = "CREATE"
	ActUpdate   Act = "UPDATE"
	ActSubmit   Act = "SUBMIT"
	ActApprove  Act = "APPROVE"
	ActReject   Act = "REJECT"
	ActSchedule Act = "SCHEDULE"
	ActPreheat  Act = "PREHEAT"
	ActOpen     Act = "OPEN"
	ActPause    Act = "PAUSE"
	ActResume   Act = "RESUME"
	ActEnd      Act = "END"
	ActCancel   Act = "CANCEL"
	ActSettle   Act = "SETTLE" // the last order has ended; the gate leaves Redis
	// These leave the status as it is.
	ActRebuild Act = "REBUILD" // a gate that Redis lost is built anew
	ActAdjust  Act = "ADJUST_STOCK"
	ActVoid    Act = "VOID_ORDER"
	ActSwitch  Act = "SET_SWITCHES"
)

// who may take an act.
type who struct {
	role  auth.Role // lowest role of a person; "" = no person
	clock bool      // whether the scheduler may
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

// moves is the one table of what may be done to a sale, where it leads and who
// may do it. The picture of it is in the package's documentation. Beyond it, a
// sale is never approved by who wrote it, and stock and voids follow the rule of
// two persons (package operator).
var moves = []move{
	{ActUpdate, Draft, Draft, operators},
	{ActUpdate, Rejected, Draft, operators},
	{ActSubmit, Draft, PendingApproval, operators},
	{ActApprove, PendingApproval, Approved, admins},
	{ActReject, PendingApproval, Rejected, admins},
	{ActSchedule, Approved, Scheduled, operators},
	{ActSchedule, Scheduled, Scheduled, operators},
	{ActPreheat, Scheduled, Preheated, operatorsClock},
	{ActOpen, Preheated, Live, theClock},
	{ActPause, Preheated, Paused, operators},
	{ActPause, Live, Paused, operators},
	{ActResume, Paused, Preheated, operators}, // before the opening
	{ActResume, Paused, Live, operators},

	{ActEnd, Scheduled, Ended, theClock}, // its end passed before it was loaded
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
	{ActVoid, Preheated, Preheated, operators}, // the clock may be seconds late to call it live
	{ActVoid, Live, Live, operators},
	{ActVoid, Paused, Paused, operators},
	{ActVoid, Ended, Ended, operators},
	{ActSwitch, Draft, Draft, operators},
	{ActSwitch, PendingApproval, PendingApproval, operators},
	{ActSwitch, Rejected, Rejected, operators},
	{ActSwitch, Approved, Approved, operators},
	{ActSwitch, Scheduled, Scheduled, operators},
	{ActSwitch, Preheated, Preheated, operators},
	{ActSwitch, Live, Live, operators},
	{ActSwitch, Paused, Paused, operators},
}

// Allowed reports whether an act may lead from one status to another.
func Allowed(act Act, from, to Status) bool {
	return slices.ContainsFunc(moves, func(m move) bool { return m.act == act && m.from == from && m.to == to })
}

// Targets returns where an act can lead from a status; none when the status
// forbids it.
func Targets(act Act, from Status) []Status {
	var to []Status
	for _, m := range moves {
		if m.act == act && m.from == from {
			to = append(to, m.to)
		}
	}
	return to
}

// LeastRole returns the lowest role of a person who may take an act, and false
// when only the clock may.
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

// mayMove reports whether a person of that role, or the clock, may make a move.
func (m move) mayBeMadeBy(a Actor) bool {
	if a.Clock() {
		return m.who.clock
	}
	return m.who.role != "" && a.Role.AtLeast(m.who.role)
}

// Statuses lists every status in the order of a sale's life.
func Statuses() []Status {
	return []Status{Draft, PendingApproval, Rejected, Approved, Scheduled, Preheated, Live, Paused, Ended, Cancelled}
}

// Acts lists every act.
func Acts() []Act {
	return []Act{
		ActCreate, ActUpdate, ActSubmit, ActApprove, ActReject, ActSchedule, ActPreheat, ActOpen, ActPause, ActResume,
		ActEnd, ActCancel, ActSettle, ActRebuild, ActAdjust, ActVoid, ActSwitch,
	}
}
