package account

import (
	"encoding/json"
	"slices"
)

// Claims are what a sign-in provider states of a user, by name: of the claims that its settings
// name, the first values.
type Claims map[string][]string

const (
	// MaxClaims bounds the claims that settings of a provider name.
	MaxClaims = 10
	// maxClaimValues bounds the values of a claim; further ones are left out.
	maxClaimValues = 20
	// maxClaimValue bounds a value, in bytes; longer ones are left out.
	maxClaimValue = 100
)

// KeptClaims returns what is kept of claims.
func KeptClaims(stated map[string][]string) Claims {
	kept := Claims{}
	for name, values := range stated {
		values = slices.DeleteFunc(slices.Clone(values), func(v string) bool { return v == "" || len(v) > maxClaimValue })
		slices.Sort(values)
		if values = slices.Compact(values); len(values) > 0 {
			kept[name] = values[:min(len(values), maxClaimValues)]
		}
	}
	return kept
}

// json returns the stored form, in which the names are sorted; "" without claims.
func (c Claims) json() string {
	if len(c) == 0 {
		return ""
	}
	text, err := json.Marshal(c)
	if err != nil {
		panic(err) // texts
	}
	return string(text)
}

// parseClaims reads the stored form. What it cannot read is as not stated.
func parseClaims(text string) (c Claims) {
	if text != "" && json.Unmarshal([]byte(text), &c) != nil {
		return nil
	}
	return c
}
