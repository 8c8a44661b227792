package transport_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"seckill/graph/transport"
)

func TestAnswersThatAreTheSameForAllMayBeKeptByCaches(t *testing.T) {
	t.Parallel()
	f := setup(t, setupOptions{
		transport: transport.Options{Shared: []string{"hello", "fail"}},
		configure: func(server *http.Server) {
			inner := server.Handler
			server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Add("Vary", "Origin") // as CORS middleware does
				inner.ServeHTTP(w, r)
			})
		},
	})
	get := func(document string, edits ...edit) answer {
		t.Helper()
		return f.do("GET", "/graphql?query="+url.QueryEscape(document), "", edits...)
	}
	first := get(`{ hello __typename }`)
	tag := first.header.Get("ETag")
	if first.status != 200 || !strings.HasPrefix(first.header.Get("Cache-Control"), "public, max-age=1") || tag == "" ||
		strings.Join(first.header.Values("Vary"), ", ") != "Origin, Accept, Accept-Language, Authorization" || strings.Contains(first.body, "cost") {
		t.Fatalf("%d %v %s", first.status, first.header, first.body)
	}
	if again := get(`{ hello __typename }`, header("If-None-Match", `"other", `+tag)); again.status != 304 || again.body != "" {
		t.Errorf("the same again: %d %s", again.status, again.body)
	}
	if other := get(`{ hello(name: "x") }`, header("If-None-Match", tag)); other.status != 200 || other.header.Get("ETag") == tag {
		t.Errorf("another answer: %d", other.status)
	}
	for what, got := range map[string]answer{
		"signed in":           get(`{ hello }`, header("Authorization", "Bearer user:ann")),
		"another field":       get(`{ hello viewer }`),
		"behind a fragment":   get(`{ hello ...V } fragment V on Query { viewer }`),
		"behind an inline":    get(`{ hello ... on Query { viewer } }`),
		"behind an alias":     get(`{ hello: viewer }`),
		"an error":            get(`{ fail(code: "NOT_FOUND") }`),
		"by POST":             f.query(`{ hello }`, ""),
		"nothing that exists": get(`{ nothing }`),
	} {
		if cache := got.header.Get("Cache-Control"); cache != "no-store" || got.header.Get("ETag") != "" {
			t.Errorf("%s: %q %s", what, cache, got.body)
		}
	}
}
