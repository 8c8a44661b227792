package checkout

import (
	"time"

	"github.com/google/uuid"

	"seckill/internal/clock"
	"seckill/internal/fault"
	"seckill/internal/ratelimit"
	"seckill/internal/reservation"
	"seckill/internal/sale"
)

// How often one person may press the button in a sale that has no limit of its
// own: the @rateLimit of placeOrder in the schema.
const (
	TriesAtOnce    = 5
	TriesPerSecond = 1.0
)

// Tries counts presses of the button, per person and sale, in this process. It is
// the coarse limit: what it lets through is counted once more across all
// processes, by the script that takes the stock.
type Tries struct {
	local *ratelimit.Local[try]
	off   bool
}

type try struct{ sale, user uuid.UUID }

// NewTries returns a counter.
func NewTries(c clock.Clock) *Tries { return &Tries{local: ratelimit.NewLocal[try](c, 0)} }

// NoLimit lets everything through, in this process and in Redis: for drills and tests.
func NoLimit() *Tries { return &Tries{local: ratelimit.NewLocalOff[try](), off: true} }

// take counts a press. The tries are what the script has to count by.
func (t *Tries) take(parent *sale.Sale, user uuid.UUID) (reservation.Tries, fault.Refusal) {
	if t.off {
		return reservation.Tries{}, nil
	}
	burst, perSecond := parent.Switches.Limit(TriesAtOnce, TriesPerSecond)
	d := t.local.Allow(ratelimit.Policy{Name: "placeOrder", Burst: burst, PerSecond: perSecond}, try{parent.ID, user})
	return reservation.Tries{Burst: burst, Every: time.Duration(float64(time.Second) / perSecond)}, d.Refusal()
}
