// Package access decides from when a buyer may buy in a sale: its access rules, whom they
// fit, and their times, and it makes and checks codes. It is pure: it reads nothing and has no clock.
//
// The rules of a sale are ordered, and the first that fits a buyer counts. A sale opens with its
// earliest rule, so that a time is an offset from the opening, which moves with it. Rules change only
// in a draft: what was approved never lets in others, or earlier.
//
// Package member owns the lists of members; accounts and their claims are in package account.
package access

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"seckill/internal/platform/collect"
)

var (
	listFormat  = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	claimFormat = regexp.MustCompile(`^[!-<>-~]{1,64}=[^\x00-\x1f]{1,100}$`)
)

// ValidList reports whether a text may be the name of a list, or of codes: words of a-z and 0-9 with - between them.
func ValidList(name string) bool { return len(name) <= MaxName && listFormat.MatchString(name) }

// ValidSource reports whether a text may be the source of a rule of the kind.
func (k Kind) ValidSource(source string) bool {
	switch k {
	case List, ByCode:
		return ValidList(source)
	case Claim:
		return claimFormat.MatchString(source)
	case All, VerifiedContact:
	}
	return source == ""
}

// Kind is whom a rule fits.
type Kind string

// Kinds of rules.
const (
	All             Kind = "ALL"
	VerifiedContact Kind = "VERIFIED_CONTACT"
	Claim           Kind = "CLAIM" // of the provider that signed the buyer in
	List            Kind = "LIST"  // of members
	ByCode          Kind = "CODE"  // that the buyer redeemed
)

const (
	// MaxRules bounds the rules of a sale.
	MaxRules = 10
	// MaxName is the length of the longest name of a group, list or claim, in characters.
	MaxName = 40
)

// Rule lets in the buyers that it fits from a time on.
type Rule struct {
	Kind Kind `json:"kind"`
	// Name is that of the group for buyers, as "Members"; "" for All and VerifiedContact.
	Name string `json:"name,omitempty"`
	// Source is the list of List, the Batch.Source of ByCode, and the claim of Claim in the form name=value.
	Source string `json:"source,omitempty"`
	// After is how long after the opening of the sale the rule lets in, in seconds.
	After int `json:"after,omitempty"`
	// Keep is how many units of each item the rule keeps for its buyers, until Until seconds after the
	// opening; 0 = none.
	Keep  int `json:"keep,omitempty"`
	Until int `json:"until,omitempty"`
}

// KeptUntil returns when the units that the rule keeps are for all buyers of a sale that opens at a
// time.
func (r Rule) KeptUntil(opens time.Time) time.Time {
	return opens.Add(time.Duration(r.Until) * time.Second)
}

// Named reports whether rules of the kind have a name and a source.
func (k Kind) Named() bool { return k == Claim || k == List || k == ByCode }

// From returns when the rule lets in buyers of a sale that opens at a time.
func (r Rule) From(opens time.Time) time.Time { return opens.Add(time.Duration(r.After) * time.Second) }

// String returns the rule for approvals and logs.
func (r Rule) String() string {
	text := string(r.Kind)
	if r.Kind.Named() {
		text += fmt.Sprintf(" %s (%s)", r.Source, r.Name)
	}
	if r.After > 0 {
		text += fmt.Sprintf(" + %d s", r.After)
	}
	if r.Keep > 0 {
		text += fmt.Sprintf(", keeps %d until + %d s", r.Keep, r.Until)
	}
	return text
}

// fits reports whether the rule fits a buyer.
func (r Rule) fits(b Buyer) bool {
	switch r.Kind {
	case All:
		return true
	case VerifiedContact:
		return b.Verified
	case Claim:
		name, value, _ := strings.Cut(r.Source, "=")
		return slices.Contains(b.Claims[name], value)
	case List:
		return slices.Contains(b.Lists, r.Source)
	case ByCode:
		return b.Code != Code{} && b.CodeSource == r.Source
	}
	return false
}

// Rules are the rules of a sale, in their order. Without any, everyone may buy from the opening on.
type Rules []Rule

// Buyer is what rules ask about a buyer.
type Buyer struct {
	Verified bool                // the account has a verified contact
	Claims   map[string][]string // of the provider that signed the buyer in
	Lists    []string            // of which the buyer is a member
	// Code is the valid code that the buyer redeemed for the sale, of a batch with CodeSource; zero = none.
	Code       Code
	CodeSource string
}

// Access is the decision about a buyer of a sale with rules.
type Access struct {
	Rule  *Rule     // the first that fits; nil = none does
	Index int       // of Rule
	From  time.Time // from when the buyer may buy; zero without a rule
	Code  Code      // of Rule, which is used up by what the buyer buys; zero = none
}

// Of returns the access of a buyer to a sale that opens at a time. ok is false for a sale without
// rules, which has no exceptions.
func (r Rules) Of(b Buyer, opens time.Time) (a Access, ok bool) {
	if i := slices.IndexFunc(r, func(rule Rule) bool { return rule.fits(b) }); i >= 0 {
		a = Access{Rule: &r[i], Index: i, From: r[i].From(opens)}
		if r[i].Kind == ByCode {
			a.Code = b.Code
		}
		return a, true
	}
	return Access{}, len(r) > 0
}

// Open reports whether the buyer may buy at a time, in a sale that is open.
func (a Access) Open(now time.Time) bool { return a.Rule != nil && !now.Before(a.From) }

// Waits reports whether the buyer may enter the waiting room: from their own time on, and before the
// opening those whose time it is.
func (a Access) Waits(now time.Time) bool { return a.Open(now) || a.Rule != nil && a.Rule.After == 0 }

// Asks reports whether a rule asks for a kind.
func (r Rules) Asks(kind Kind) bool {
	return slices.ContainsFunc(r, func(rule Rule) bool { return rule.Kind == kind })
}

// Kept returns how many units of each item the rules keep.
func (r Rules) Kept() (units int) {
	for _, rule := range r {
		units += rule.Keep
	}
	return units
}

// Begun returns how many rules let in at a time, and how many of their shares are for all buyers.
func (r Rules) Begun(opens, now time.Time) (n int) {
	for _, rule := range r {
		if !now.Before(rule.From(opens)) {
			n++
		}
		if rule.Keep > 0 && !now.Before(rule.KeptUntil(opens)) {
			n++
		}
	}
	return n
}

// Texts returns the rules for approvals and logs.
func (r Rules) Texts() []string {
	return collect.Map(r, func(rule Rule) string { return rule.String() })
}

// JSON returns the stored form; "" without rules.
func (r Rules) JSON() string {
	if len(r) == 0 {
		return ""
	}
	text, err := json.Marshal(r)
	if err != nil {
		panic(err) // texts and numbers
	}
	return string(text)
}

// Parse reads the stored form. Rules that it cannot read let in no buyer: a former release does not
// open a sale that a later one has closed.
func Parse(text string) Rules {
	if text == "" {
		return nil
	}
	var r Rules
	if err := json.Unmarshal([]byte(text), &r); err != nil || len(r) == 0 {
		return Rules{{}}
	}
	return r
}
