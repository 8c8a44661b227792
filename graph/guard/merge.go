package guard

import (
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// maxMerges bounds the pairs of fields with the same response name in one selection set.
// The validator compares each pair (§5.3.2 of the specification, "Field Selection
// Merging"): three hundred times the same field are 45,000 pairs. The fragments of one
// page that all select id make a few dozen.
const maxMerges = 2000

// merges counts the pairs of a document.
type merges struct {
	doc   *ast.QueryDocument
	pairs int
}

// add counts one operation or fragment and refuses the document above the bound.
func (m *merges) add(set ast.SelectionSet) *gqlerror.Error {
	m.count(set)
	if m.pairs > maxMerges {
		return tooComplex("The same fields are selected too many times in one place.")
	}
	return nil
}

// count walks the selections of one response position, which may come from several sets,
// and those below. The number of nodes is already bounded by walk.
func (m *merges) count(sets ...ast.SelectionSet) {
	groups := map[string][]ast.SelectionSet{}
	for _, set := range sets {
		m.collect(set, groups)
	}
	for _, below := range groups {
		m.pairs += len(below) * (len(below) - 1) / 2
		if m.pairs > maxMerges {
			return
		}
		m.count(below...)
	}
}

// collect groups fields by response name, including those of fragments.
func (m *merges) collect(set ast.SelectionSet, groups map[string][]ast.SelectionSet) {
	for _, s := range set {
		switch s := s.(type) {
		case *ast.Field:
			groups[s.Alias] = append(groups[s.Alias], s.SelectionSet)
		case *ast.InlineFragment:
			m.collect(s.SelectionSet, groups)
		case *ast.FragmentSpread:
			if f := m.doc.Fragments.ForName(s.Name); f != nil {
				m.collect(f.SelectionSet, groups)
			}
		}
	}
}
