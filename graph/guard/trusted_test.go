package guard_test

import (
	"testing"

	"github.com/99designs/gqlgen/graphql"

	"seckill/graph/guard"
)

func TestOnlyTrustedDocumentsRunAndOthersAreNotParsed(t *testing.T) {
	t.Parallel()
	const trusted, other = "query T{leaf}", "{node{id}}"
	h := newHarness(t, guard.Options{Trusted: guard.NewManifest(trusted), TrustedOnly: true})
	byHash := func(hash string) map[string]any {
		return map[string]any{"persistedQuery": map[string]any{"version": int64(1), "sha256Hash": hash}}
	}
	for name, c := range map[string]struct {
		query      string
		extensions map[string]any
		want       string
	}{
		"by hash":                    {"", byHash(guard.Hash(trusted)), ""},
		"by hash and text":           {trusted, byHash(guard.Hash(trusted)), ""},
		"by text":                    {trusted, nil, ""},
		"by documentId":              {"", map[string]any{"documentId": "sha256:" + guard.Hash(trusted)}, ""},
		"by bare documentId":         {"", map[string]any{"documentId": guard.Hash(trusted)}, ""},
		"unknown hash":               {"", byHash(guard.Hash(other)), guard.CodeUnknownHash},
		"unknown hash with its text": {other, byHash(guard.Hash(other)), guard.CodeNotTrusted},
		"text under another's hash":  {other, byHash(guard.Hash(trusted)), "BAD_USER_INPUT"},
		"untrusted text":             {other, nil, guard.CodeNotTrusted},
		"not even a document":        {"{{{{", nil, guard.CodeNotTrusted},
		"empty":                      {"", nil, guard.CodeNotTrusted},
	} {
		_, err := h.send(graphql.RawParams{Query: c.query, Extensions: c.extensions})
		if code(err) != c.want {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	open := newHarness(t, guard.Options{Trusted: guard.NewManifest(trusted)})
	if _, err := open.send(graphql.RawParams{Query: other, Extensions: byHash(guard.Hash(other))}); err != nil {
		t.Errorf("development, hash and text: %v", err)
	}
	if _, err := open.send(graphql.RawParams{Extensions: byHash(guard.Hash(other))}); code(err) != guard.CodeNoRegistration || err.Message != "PersistedQueryNotSupported" {
		t.Errorf("any document, automatic persisted query: %v", err)
	}
	if _, err := open.send(graphql.RawParams{Extensions: map[string]any{"documentId": guard.Hash(other)}}); code(err) != guard.CodeUnknownHash {
		t.Errorf("any document, unknown id: %v", err)
	}
}

func TestManifestIsCheckedAtTheStart(t *testing.T) {
	t.Parallel()
	for name, document := range map[string]string{"unknown field": "{nope}", "too deep": nest(9), "not a document": "{", "too dear": "{node{kids{kids{kids{kids{id}}}}}}"} {
		if _, err := guard.New(guard.Options{Schema: schema, Trusted: guard.NewManifest(document)}); err == nil {
			t.Errorf("%s was trusted", name)
		}
	}
	if _, err := guard.New(guard.Options{Schema: schema, Trusted: guard.Manifest{"abc": "{leaf}"}}); err == nil {
		t.Error("a wrong hash was taken")
	}
}
