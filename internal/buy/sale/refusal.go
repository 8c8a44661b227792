package sale

import (
	"strings"
	"time"

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

// Error returns the phase.
func (n NotOpen) Error() string { return fault.Text(n, "phase "+strings.ToLower(string(n.Phase))) }
