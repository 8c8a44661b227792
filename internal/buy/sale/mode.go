package sale

import (
	"fmt"
	"time"
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
