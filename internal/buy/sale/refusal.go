package sale

import (
	"strings"
	"time"

	"seckill/internal/buy/access"
	"seckill/internal/platform/fault"
)

// NotOpen refuses an act on a sale that is not open: not started, paused or over.
type NotOpen struct {
	Phase      Phase
	StartsAt   *time.Time // opening time, if it will open
	ServerTime time.Time  // time of the decision
}

// NewNotOpen returns the refusal at now of an act on a sale that opens at a time. It
// carries that time only if it is ahead and the sale may still open.
func NewNotOpen(phase Phase, opens, now time.Time) NotOpen {
	n := NotOpen{Phase: phase, ServerTime: now}
	if (phase == PhaseUpcoming || phase == PhasePaused) && opens.After(now) {
		n.StartsAt = &opens
	}
	return n
}

// Reason returns SaleNotStarted before the opening, SalePaused while the sale may go on,
// and SaleClosed once it is over.
func (n NotOpen) Reason() fault.Reason {
	switch n.Phase {
	case PhaseUpcoming:
		return fault.SaleNotStarted
	case PhasePaused:
		return fault.SalePaused
	case PhaseLive, PhaseSoldOut, PhaseEnded, PhaseCancelled:
	}
	return fault.SaleClosed
}

// Path returns nil: no input is refused.
func (NotOpen) Path() []string { return nil }

func (n NotOpen) Error() string { return fault.Text(n, "phase "+strings.ToLower(string(n.Phase))) }

// NoAccess refuses a buyer whom no access rule fits, or whose time has not come.
type NoAccess struct {
	Sale       *Sale
	Access     access.Access // of the buyer
	ServerTime time.Time     // time of the decision
}

// Reason returns NoAccess.
func (NoAccess) Reason() fault.Reason { return fault.NoAccess }

// Path returns nil: no input is refused.
func (NoAccess) Path() []string { return nil }

// Error returns from when the buyer has access.
func (n NoAccess) Error() string {
	if n.Access.Rule == nil {
		return fault.Text(n, "no rule fits")
	}
	return fault.Text(n, "from "+n.Access.From.Format(time.RFC3339))
}
