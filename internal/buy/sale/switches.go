package sale

import "strings"

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
