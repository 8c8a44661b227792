package sale

import (
	"time"

	"seckill/internal/fault"
)

// NotOpen refuses an act on a sale that is not open: not begun, held or over.
type NotOpen struct {
	Phase      Phase
	StartsAt   *time.Time // when it opens, if it will
	ServerTime time.Time  // the clock that decided
}

// Reason tells "not begun" from "closed".
func (n NotOpen) Reason() fault.Reason {
	if n.Phase == PhaseUpcoming {
		return fault.SaleNotStarted
	}
	return fault.SaleClosed
}

// Path is nil: no input is at fault.
func (NotOpen) Path() []string { return nil }
