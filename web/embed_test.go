package web_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"strings"
	"testing"

	"seckill/web"
)

// TestReferencesCarryTheVersion opens every reference of the page and checks
// that it leads to a file of the build under its current version.
func TestReferencesCarryTheVersion(t *testing.T) {
	t.Parallel()
	page, err := fs.ReadFile(web.Dist(), "index.html")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"/assets/app.js", "/assets/app.css", "/assets/app.woff2"} {
		if !strings.Contains(string(page), `"`+want+"?v="+web.Version()+`"`) {
			t.Errorf("index.html does not name %s?v=%s", want, web.Version())
		}
		if _, err := fs.Stat(web.Dist(), strings.TrimPrefix(want, "/")); err != nil {
			t.Errorf("the build lacks %s: %v", want, err)
		}
	}
}

// TestNothingInline keeps the page within a Content-Security-Policy of
// default-src 'self'.
func TestNothingInline(t *testing.T) {
	t.Parallel()
	page, err := fs.ReadFile(web.Dist(), "index.html")
	if err != nil {
		t.Fatal(err)
	}
	for _, banned := range []string{"<style", "style=", "http://", "https://", "onload="} {
		if strings.Contains(string(page), banned) {
			t.Errorf("index.html contains %q", banned)
		}
	}
	for _, rest := range strings.Split(string(page), "<script")[1:] {
		tag, body, _ := strings.Cut(rest, ">")
		if !strings.Contains(tag, "src=") || !strings.HasPrefix(body, "</script>") {
			t.Errorf("index.html has an inline script: <script%s>", tag)
		}
	}
}

// TestDocumentsAreNamedByTheirHash recomputes each name.
func TestDocumentsAreNamedByTheirHash(t *testing.T) {
	t.Parallel()
	documents, err := web.Documents()
	if err != nil {
		t.Fatal(err)
	}
	if len(documents) == 0 {
		t.Fatal("no documents")
	}
	for name, text := range documents {
		sum := sha256.Sum256([]byte(text))
		if got := hex.EncodeToString(sum[:]); got != name {
			t.Errorf("document %.40q is named %s, its hash is %s", text, name, got)
		}
	}
}

// TestFirstQueryNamesADocument checks that the first queries are trusted
// documents, and that only pages that read public data have one.
func TestFirstQueryNamesADocument(t *testing.T) {
	t.Parallel()
	documents, err := web.Documents()
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/":           `{"after":null,"search":null}`,
		"/s/one-drop": `{"slug":"one-drop"}`,
		"/s/":         "", "/orders": "", "/operate": "", `/s/a"b`: "", "/s/a/b": "",
	} {
		body := web.Pages{}.FirstQuery(path)
		if want == "" {
			if body != nil {
				t.Errorf("%s has the first query %s", path, body)
			}
			continue
		}
		var sent struct {
			Variables  json.RawMessage
			Extensions struct{ PersistedQuery struct{ Sha256Hash string } }
		}
		if err := json.Unmarshal(body, &sent); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if string(sent.Variables) != want || documents[sent.Extensions.PersistedQuery.Sha256Hash] == "" {
			t.Errorf("%s has the first query %s", path, body)
		}
	}
}

// TestTheServiceWorkerOnlyShowsNotices keeps pages independent of it: one that answered
// requests could keep serving an old shop.
func TestTheServiceWorkerOnlyShowsNotices(t *testing.T) {
	t.Parallel()
	worker, err := fs.ReadFile(web.Dist(), "push.js")
	if err != nil {
		t.Fatal(err)
	}
	for _, banned := range []string{"'fetch'", "fetch(", "caches", "indexedDB", "importScripts"} {
		if strings.Contains(string(worker), banned) {
			t.Errorf("push.js contains %q", banned)
		}
	}
}
