package guard

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// Manifest holds trusted documents by id. Most client tools use the SHA-256 of the text
// in lower-case hex as the id; Relay and others may use any id.
type Manifest map[string]string

// trusted is an immutable set of trusted documents.
type trusted struct {
	byID   map[string]string // ids and hashes to texts
	parsed map[string]*entry // by text
}

// probes are documents that monitors, load balancers and audits send to check that a
// GraphQL server answers. They read no data and are always trusted.
var probes = []string{"{__typename}", "{ __typename }", "query Query { __typename }"}

// Hash returns the SHA-256 of a document in lower-case hex.
func Hash(document string) string {
	sum := sha256.Sum256([]byte(document))
	return hex.EncodeToString(sum[:])
}

// NewManifest returns documents keyed by Hash.
func NewManifest(documents ...string) Manifest {
	m := make(Manifest, len(documents))
	for _, d := range documents {
		m[Hash(d)] = d
	}
	return m
}

// Trust replaces the trusted documents with those of Options.Trusted and more. When a
// document violates the schema or the limits it returns an error and changes nothing. It
// is safe for concurrent use with running operations.
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

// resolve sets the text of a document that the client sent by id in p, and refuses
// untrusted documents when TrustedOnly is set.
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
		return nil // the text was sent too: no lookup is needed
	case p.Query != "":
		return refuse(CodeNotTrusted, "This server answers trusted documents only.")
	case p.Extensions["persistedQuery"] != nil && !g.opts.TrustedOnly:
		// Clients send the text after either text, but after this one for all documents: a
		// hash is never registered here. They check for the exact text.
		return refuse(CodeNoRegistration, "PersistedQueryNotSupported")
	default:
		return refuse(CodeUnknownHash, "PersistedQueryNotFound")
	}
}

// Trusts reports whether a document is trusted.
func (g *Guard) Trusts(document string) bool {
	_, ok := g.docs.trusted.Load().parsed[document]
	return ok
}

// hashPrefix is an optional prefix of an id: the GraphQL-over-HTTP draft and gql.tada
// write it.
const hashPrefix = "sha256:"

// idOf returns the id of a persisted document in the request's extensions:
// {"persistedQuery": {"sha256Hash"}} of Apollo's and urql's clients, or "documentId" of
// the GraphQL-over-HTTP draft.
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
