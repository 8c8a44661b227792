package storefront

import (
	"context"
	"time"
)

// PhaseEvery is the interval of phase checks.
const PhaseEvery = phaseEvery

// UntilPhase returns the time until the next phase check.
func (s *Storefront) UntilPhase(ctx context.Context) time.Duration { return s.untilPhase(ctx) }
