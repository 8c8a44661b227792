package inbox

import (
	"cmp"
	"slices"
)

// Count is the number of entries of a kind.
type Count struct {
	Kind      Kind
	Count     int  // at most 200
	Decidable int  // that the viewer may decide
	More      bool // Count is the maximum
}

// List is what a viewer sees of the inbox.
type List struct {
	Entries          []Entry
	Counts           []Count // by kind
	Total, Decidable int
}

// For returns what a viewer may act on of some kinds; of every kind when none is given.
func For(v Viewer, entries []Entry, kinds ...Kind) List {
	var out List
	counts := map[Kind]*Count{}
	for _, e := range entries {
		if !v.Role.AtLeast(e.Kind.leastRole()) || len(kinds) > 0 && !slices.Contains(kinds, e.Kind) {
			continue
		}
		c := counts[e.Kind]
		if c == nil {
			c = &Count{Kind: e.Kind}
			counts[e.Kind] = c
		}
		out.Entries = append(out.Entries, e)
		out.Total++
		c.Count++
		if e.Decidable(v) {
			out.Decidable++
			c.Decidable++
		}
	}
	for _, c := range counts {
		c.More = c.Count >= maxPerKind
		out.Counts = append(out.Counts, *c)
	}
	slices.SortFunc(out.Counts, func(x, y Count) int { return cmp.Compare(x.Kind, y.Kind) })
	return out
}
