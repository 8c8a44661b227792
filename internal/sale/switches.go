package sale

import "strings"

// Switches are the rules of a sale that operators change while it runs. Every
// process follows them through the catalogue, at most a second later.
type Switches struct {
	CaptchaRequired bool     `json:"captchaRequired"`
	CaptchaKinds    []string `json:"captchaKinds"`    // kinds of captcha that are offered; empty = every kind
	PowMax          int      `json:"proofOfWorkMax"`  // highest number of a proof of work; 0 = the server's default
	PermitPerMille  int      `json:"permitPerMille"`  // unused paths at a time per thousand units left; 0 = any number
	InflowPerSecond int      `json:"inflowPerSecond"` // buyers let past the waiting room each second; 0 = no bound
	LimitBurst      int      `json:"limitBurst"`      // tries of one person at once; 0 = the product's default
	LimitPerSecond  float64  `json:"limitPerSecond"`  // tries given back each second; 0 = the product's default
}

// DefaultSwitches are those of a sale that nobody has switched.
func DefaultSwitches() Switches { return Switches{CaptchaRequired: true, PermitPerMille: 1500} }

// Limits reports whether the sale has a limit of its own.
func (s Switches) Limits() bool { return s.LimitBurst > 0 || s.LimitPerSecond > 0 }

// Limit returns how often one person may try in the sale, given the default.
func (s Switches) Limit(burst int, perSecond float64) (int, float64) {
	if s.LimitBurst > 0 {
		burst = s.LimitBurst
	}
	if s.LimitPerSecond > 0 {
		perSecond = s.LimitPerSecond
	}
	return burst, perSecond
}

// JoinKinds is how kinds of captcha are kept in their column.
func JoinKinds(kinds []string) string { return strings.Join(kinds, ",") }

func splitKinds(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}
