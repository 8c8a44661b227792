package guard_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/99designs/gqlgen/graphql"

	"seckill/graph/guard"
	"seckill/internal/platform/fault"
)

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// byID returns a request that sends a document by its id.
func byID(id string) graphql.RawParams {
	return graphql.RawParams{Extensions: map[string]any{"persistedQuery": map[string]any{"version": int64(1), "sha256Hash": id}}}
}

func TestManifestsOfTheUsualToolsAreRead(t *testing.T) {
	t.Parallel()
	const document = "query T{leaf}"
	dir := t.TempDir()
	for name, c := range map[string]struct{ text, id string }{
		"apollo.json": {fmt.Sprintf(`{"format":"apollo-persisted-query-manifest","version":1,"operations":[{"id":%q,"name":"T","type":"query","body":%q}]}`,
			guard.Hash(document), document), guard.Hash(document)},
		"relay.json":    {fmt.Sprintf(`{"0123456789abcdef0123456789abcdef":%q}`, document), "0123456789abcdef0123456789abcdef"},
		"gql-tada.json": {fmt.Sprintf(`{"sha256:%s":%q}`, guard.Hash(document), document), guard.Hash(document)},
		"codegen.json":  {fmt.Sprintf(`{"da39a3ee5e6b4b0d3255bfef95601890afd80709":%q}`, document), "da39a3ee5e6b4b0d3255bfef95601890afd80709"},
	} {
		path := filepath.Join(dir, name)
		write(t, path, c.text)
		manifest, err := (&guard.ManifestFile{Path: path}).Read()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		h := newHarness(t, guard.Options{TrustedOnly: true})
		if _, err := h.send(byID(c.id)); code(err) != guard.CodeUnknownHash {
			t.Errorf("%s: before it is trusted: %v", name, err)
		}
		if err := h.guard.Trust(manifest); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for how, p := range map[string]graphql.RawParams{
			"by id": byID(c.id), "by documentId": {Extensions: map[string]any{"documentId": c.id}}, "by text": {Query: document},
		} {
			if _, err := h.send(p); err != nil {
				t.Errorf("%s %s: %v", name, how, err)
			}
		}
	}
	all, err := (&guard.ManifestFile{Path: dir}).Read()
	if err != nil || len(all) != 4 {
		t.Errorf("the folder has %d ids: %v", len(all), err)
	}
}

func TestManifestsThatDoNotFitChangeNothing(t *testing.T) {
	t.Parallel()
	h := newHarness(t, guard.Options{TrustedOnly: true})
	if err := h.guard.Trust(guard.Manifest{"a": "query T{leaf}"}); err != nil {
		t.Fatal(err)
	}
	if err := h.guard.Trust(guard.Manifest{"b": "query T{leaf}", "c": "{nope}"}); err == nil {
		t.Error("a document that does not fit the schema was trusted")
	}
	if _, err := h.send(byID("a")); err != nil {
		t.Errorf("the former documents are gone: %v", err)
	}
	for name, text := range map[string]string{
		"list": `[]`, "text": `hello`, "version": `{"format":"apollo-persisted-query-manifest","version":2,"operations":[]}`, "values": `{"a":{"b":1}}`,
	} {
		path := filepath.Join(t.TempDir(), name)
		write(t, path, text)
		if _, err := (&guard.ManifestFile{Path: path}).Read(); err == nil {
			t.Errorf("%s was read", name)
		}
	}
	if _, err := (&guard.ManifestFile{Path: filepath.Join(t.TempDir(), "none.json")}).Read(); err == nil {
		t.Error("a file that is not there was read")
	}
}

func TestReplacedManifestsAreNoticedAndObeyed(t *testing.T) {
	t.Parallel()
	const first, second = "query A{leaf}", "query B{leaf}"
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.json"), fmt.Sprintf(`{"a":%q}`, first))
	file := &guard.ManifestFile{Path: dir}
	h := newHarness(t, guard.Options{TrustedOnly: true})
	read := func() {
		t.Helper()
		manifest, err := file.Read()
		if err != nil {
			t.Fatal(err)
		}
		if err := h.guard.Trust(manifest); err != nil {
			t.Fatal(err)
		}
	}
	read()
	if file.Changed() {
		t.Error("nothing has changed")
	}
	if _, err := h.send(byID("a")); err != nil {
		t.Error(err)
	}
	write(t, filepath.Join(dir, "b.json"), fmt.Sprintf(`{"b":%q}`, second))
	if err := os.Remove(filepath.Join(dir, "a.json")); err != nil {
		t.Fatal(err)
	}
	if !file.Changed() {
		t.Fatal("the change was not noticed")
	}
	read()
	if _, err := h.send(byID("b")); err != nil {
		t.Error(err)
	}
	if _, err := h.send(graphql.RawParams{Query: first}); code(err) != guard.CodeNotTrusted {
		t.Errorf("a document that is trusted no longer: %v", err)
	}
}

func TestOtherDocumentsDoNotEvictTrustedOnes(t *testing.T) {
	t.Parallel()
	const document = "query T{leaf}"
	spent := int64(0)
	h := newHarness(t, guard.Options{Trusted: guard.NewManifest(document), Spend: func(_ context.Context, cost int64) (guard.Budget, error) {
		spent += cost
		return guard.Budget{}, nil
	}})
	for i := range 1200 { // more than the cache holds
		if _, err := h.send(graphql.RawParams{Query: fmt.Sprintf("query Q%d{leaf}", i)}); err != nil {
			t.Fatal(err)
		}
	}
	if perDocument := spent / 1200; perDocument < 100 {
		t.Errorf("a document that must be parsed costs %d points", perDocument)
	}
	spent = 0
	if _, err := h.send(graphql.RawParams{Query: document}); err != nil || spent >= 100 {
		t.Errorf("a trusted document was parsed again for %d points: %v", spent, err)
	}
}

func TestADocumentIsChargedBeforeItIsParsed(t *testing.T) {
	t.Parallel()
	h := newHarness(t, guard.Options{Spend: func(context.Context, int64) (guard.Budget, error) {
		return guard.Budget{}, fault.New(fault.RateLimited, "Spent.")
	}})
	if _, err := h.send(graphql.RawParams{Query: "{{{{"}); code(err) != string(fault.RateLimited) {
		t.Errorf("%v", err)
	}
}

func TestIntrospectionMayDependOnTheCaller(t *testing.T) {
	t.Parallel()
	may := false
	h := newHarness(t, guard.Options{MayIntrospect: func(context.Context) bool { return may }})
	for _, query := range []string{"{__schema{queryType{name}}}", `{...on Query{__type(name:"Query"){name}}}`, "{...F} fragment F on Query{__schema{queryType{name}}}"} {
		may = false
		if _, err := h.send(graphql.RawParams{Query: query}); code(err) != "FORBIDDEN" {
			t.Errorf("%s: %v", query, err)
		}
		may = true
		if _, err := h.send(graphql.RawParams{Query: query}); err != nil {
			t.Errorf("%s: %v", query, err)
		}
	}
}
