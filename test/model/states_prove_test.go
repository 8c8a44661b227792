//go:build prove

package model

import "testing"

// The bounds of make test, and larger ones for make prove.
func TestMoreStatesKeepTheInvariantsAndCanSettle(t *testing.T) {
	explore(t, "losses", Bounds{Buyers: 3, Items: 2, Units: 2, Attempts: 2, Losses: 2, Tasks: 3})
	explore(t, "one item", Bounds{Buyers: 3, Items: 1, Units: 2, Attempts: 2, Losses: 2, Tasks: 5})
	explore(t, "four tasks", Bounds{Buyers: 3, Items: 2, Units: 2, Attempts: 2, Losses: 1, Tasks: 4})
	explore(t, "operators", Bounds{
		Buyers: 2, Items: 1, Units: 1, Attempts: 2, Losses: 2, Tasks: 2, Paths: true, Pauses: 2, Adjusts: 1,
	})
}
