package guard

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// Manifest holds trusted documents by their id. Clients of most tools use the SHA-256
// of the text in lower-case hex; Relay and others may use any id of their own.
type Manifest map[string]string

// trusted is one set of trusted documents; it never changes.
type trusted struct {
	byID   map[string]string // ids and hashes to texts
	parsed map[string]*entry // by text
}

// probes are sent by monitors, balancers and audits to check that a GraphQL server
// answers. They read nothing and are always trusted.
var probes = []string{"{__typename}", "{ __typename }", "query Query { __typename }"}

// Hash names a document.
func Hash(document string) string {
	sum := sha256.Sum256([]byte(document))
	return hex.EncodeToString(sum[:])
}

// NewManifest names documents by their hashes.
func NewManifest(documents ...string) Manifest {
	m := make(Manifest, len(documents))
	for _, d := range documents {
		m[Hash(d)] = d
	}
	return m
}

// Trust replaces the trusted documents by those of Options.Trusted and these. It
// changes nothing and returns an error when a document does not fit the schema or the
// limits. It is safe while operations run.
func (g *Guard) Trust(more Manifest) error {
	set := &trusted{byID: map[string]string{}, parsed: map[string]*entry{}}
	for _, documents := range []Manifest{NewManifest(probes...), g.opts.Trusted, more} {
		for id, text := range documents {
			doc, err := g.admit(text)
			if err != nil {
				return fmt.Errorf("trusted document %s: %w", id, err)
			}
			set.byID[strings.TrimPrefix(id, hashPrefix)] = text
			set.byID[Hash(text)] = text
			set.parsed[text] = newEntry(doc)
		}
	}
	g.docs.trusted.Store(set)
	return nil
}

// resolve puts the document that the client named by its id into p, and refuses
// documents that are not trusted where only those are.
func (g *Guard) resolve(p *graphql.RawParams) *gqlerror.Error {
	id := idOf(p.Extensions)
	if id == "" {
		if !g.opts.TrustedOnly || g.Trusts(p.Query) {
			return nil
		}
		return refuse(CodeNotTrusted, "This server answers trusted documents only.")
	}
	document, known := g.docs.trusted.Load().byID[id]
	switch {
	case known && (p.Query == "" || p.Query == document):
		p.Query = document
		return nil
	case known:
		return refuse(codeBadUserInput, "The document does not have that hash.")
	case p.Query != "" && !g.opts.TrustedOnly:
		return nil // sent in full as well: nothing has to be looked up
	default:
		// the wording is what Apollo's clients look for
		return refuse(CodeUnknownHash, "PersistedQueryNotFound")
	}
}

// Trusts reports whether a document is one of the trusted ones.
func (g *Guard) Trusts(document string) bool {
	_, ok := g.docs.trusted.Load().parsed[document]
	return ok
}

// hashPrefix may stand before an id: the GraphQL-over-HTTP draft and gql.tada write it.
const hashPrefix = "sha256:"

// idOf returns the id of a persisted document in the request's extensions:
// {"persistedQuery": {"sha256Hash"}} as Apollo's and urql's clients send it, or
// "documentId" of the GraphQL-over-HTTP draft.
func idOf(extensions map[string]any) string {
	if len(extensions) == 0 {
		return ""
	}
	if persisted, ok := extensions["persistedQuery"].(map[string]any); ok {
		if id, ok := persisted["sha256Hash"].(string); ok {
			return strings.TrimPrefix(id, hashPrefix)
		}
	}
	id, _ := extensions["documentId"].(string)
	return strings.TrimPrefix(id, hashPrefix)
}
