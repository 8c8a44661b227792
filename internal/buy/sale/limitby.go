package sale

import (
	"slices"
	"strings"

	"seckill/internal/identity/person"
)

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
