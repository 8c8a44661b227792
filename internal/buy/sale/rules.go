package sale

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"seckill/internal/identity/person"
)

// Mode is how a sale gives out its units.
type Mode string

// Modes.
const (
	Rush Mode = "RUSH" // to the first buyers at the gate
	Draw Mode = "DRAW" // along an order that is drawn from all entries
)

// Bounds of DrawRules, in seconds.
const (
	MinEntrySeconds  = 10
	MaxEntrySeconds  = 90 * 24 * 3600
	MinOfferSeconds  = 60
	MaxOfferSeconds  = 14 * 24 * 3600
	UsualOfferLength = 24 * 3600
)

// DrawRules are the rules of a draw; zero = the sale is a rush. They are relative to the opening,
// so that templates and copies need no dates and a rescheduled sale takes them along.
type DrawRules struct {
	EntrySeconds int `json:"entrySeconds"` // from the opening until the entries are closed
	OfferSeconds int `json:"offerSeconds"` // lifetime of an offer
	// Authorize says that an entry counts only once a card is authorized for it, which is
	// charged if the entry is drawn.
	Authorize bool `json:"authorizeEntries,omitempty"`
}

// On reports whether the sale is a draw.
func (r DrawRules) On() bool { return r.EntrySeconds > 0 }

// String returns the form of logs and approvals.
func (r DrawRules) String() string {
	if !r.On() {
		return string(Rush)
	}
	text := fmt.Sprintf("%s entries %d s, offers %d s", Draw, r.EntrySeconds, r.OfferSeconds)
	if r.Authorize {
		text += ", cards authorized at entry"
	}
	return text
}

// OfferFor returns the lifetime of an offer of a draw.
func (r DrawRules) OfferFor() time.Duration { return time.Duration(r.OfferSeconds) * time.Second }

// Mode returns how the sale gives out its units.
func (s *Sale) Mode() Mode {
	if s.Draw.On() {
		return Draw
	}
	return Rush
}

// EntriesCloseAt returns until when a draw takes entries; zero for a rush.
func (s *Sale) EntriesCloseAt() time.Time {
	if !s.Draw.On() {
		return time.Time{}
	}
	return s.StartsAt.Add(time.Duration(s.Draw.EntrySeconds) * time.Second)
}

// LimitBy is what the purchase limits of a sale count beside the account. The zero value
// counts accounts alone.
type LimitBy struct {
	Contact bool `json:",omitzero"`
	Address bool `json:",omitzero"`
	Payment bool `json:",omitzero"`
}

// DefaultLimitBy is that of a new sale.
var DefaultLimitBy = LimitBy{Contact: true}

// LimitByKinds returns what counts the given kinds.
func LimitByKinds(kinds []person.Kind) LimitBy {
	return LimitBy{
		Contact: slices.Contains(kinds, person.Contact), Address: slices.Contains(kinds, person.Address),
		Payment: slices.Contains(kinds, person.Payment),
	}
}

// Kinds returns what is counted, the account first.
func (l LimitBy) Kinds() []person.Kind {
	kinds := []person.Kind{person.Account}
	for _, of := range []struct {
		counts bool
		kind   person.Kind
	}{{l.Contact, person.Contact}, {l.Address, person.Address}, {l.Payment, person.Payment}} {
		if of.counts {
			kinds = append(kinds, of.kind)
		}
	}
	return kinds
}

// String returns the form of the column: the kinds beside the account.
func (l LimitBy) String() string {
	var names []string
	for _, kind := range l.Kinds()[1:] {
		names = append(names, string(kind))
	}
	return strings.Join(names, ",")
}

// ParseLimitBy reads the column.
func ParseLimitBy(column string) LimitBy {
	var kinds []person.Kind
	for name := range strings.SplitSeq(column, ",") {
		kinds = append(kinds, person.Kind(name))
	}
	return LimitByKinds(kinds)
}

// Switches are the settings of a sale that operators change while it runs. Every
// process applies them through the catalogue, within a second.
type Switches struct {
	CaptchaRequired bool     `json:"captchaRequired"`
	CaptchaKinds    []string `json:"captchaKinds"` // offered kinds of captcha; empty = every kind
	// highest number of a proof of work; 0 = the server's default
	PowMax int `json:"proofOfWorkMax"`
	// unused path tokens at a time per thousand units left; 0 = no limit
	PermitPerMille int `json:"permitPerMille"`
	// buyers admitted from the waiting room per second; 0 = no limit
	InflowPerSecond int `json:"inflowPerSecond"`
	// accounts of a cluster whose unpaid orders are held for review; 0 = none are
	ReviewAccounts int     `json:"reviewAccounts,omitempty"`
	LimitBurst     int     `json:"limitBurst"`     // attempts of one user at once; 0 = the product's default
	LimitPerSecond float64 `json:"limitPerSecond"` // attempts allowed again per second; 0 = the product's default
}

// DefaultSwitches returns the switches of a sale that no operator has changed.
func DefaultSwitches() Switches { return Switches{CaptchaRequired: true, PermitPerMille: 1500} }

// Limits reports whether the sale has its own rate limit.
func (s Switches) Limits() bool { return s.LimitBurst > 0 || s.LimitPerSecond > 0 }

// Limit returns the rate limit of one user's attempts in the sale, given the default.
func (s Switches) Limit(burst int, perSecond float64) (int, float64) {
	if s.LimitBurst > 0 {
		burst = s.LimitBurst
	}
	if s.LimitPerSecond > 0 {
		perSecond = s.LimitPerSecond
	}
	return burst, perSecond
}

// JoinKinds encodes kinds of captcha for their column.
func JoinKinds(kinds []string) string { return strings.Join(kinds, ",") }

func splitKinds(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// PermitRatio returns the permits per available unit, as operators set them; 0 = no limit.
func (s Switches) PermitRatio() float64 { return float64(s.PermitPerMille) / 1000 }
