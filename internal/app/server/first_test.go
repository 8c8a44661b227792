package server_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"seckill/internal/app/server"
	"seckill/internal/testenv"
)

func TestFirstQueryIsInlined(t *testing.T) {
	t.Parallel()
	site, err := server.NewSite(fstest.MapFS{
		"index.html": {Data: []byte("<html><head><title>x</title></head><body></body></html>")},
	}, "")
	if err != nil {
		t.Fatal(err)
	}
	answer := func(status int, body string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			sent, _ := io.ReadAll(r.Body)
			if r.Method != http.MethodPost || string(sent) != `{"q":1}` || r.Header.Get("Cookie") != "" || r.Header.Get("Authorization") != "" {
				t.Errorf("the query was %s %q with header %v", r.Method, sent, r.Header)
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		})
	}
	first := server.FirstQuery{Timeout: testenv.Wait, Pages: onePage{}}
	const inlined = `<script type="application/json" id="first">`
	for name, c := range map[string]struct {
		graphql http.Handler
		target  string
		want    string
	}{
		"data":          {answer(http.StatusOK, `{"data":{"title":"</script>"}}`), "/", `<meta content="/">` + inlined + `{"body":{"q":1},"data":{"title":"\u003c/script>"}}</script></head>`},
		"errors":        {answer(http.StatusOK, `{"data":null,"errors":[{"message":"no"}]}`), "/", ""},
		"unavailable":   {answer(http.StatusServiceUnavailable, `{}`), "/", ""},
		"another page":  {http.NotFoundHandler(), "/orders", ""},
		"with a search": {http.NotFoundHandler(), "/?q=x", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequest(http.MethodGet, c.target, nil)
			r.Header.Set("Accept", "text/html")
			r.Header.Set("Cookie", "seckill_refresh=x")
			r.Header.Set("Authorization", "Bearer x")
			w := httptest.NewRecorder()
			server.WithFirstQuery(site, c.graphql, first).ServeHTTP(w, r)
			body := w.Body.String()
			if w.Code != http.StatusOK || !strings.Contains(body, "<title>") {
				t.Fatalf("got %d %q", w.Code, body)
			}
			if got := strings.Contains(body, inlined); got != (c.want != "") || !strings.Contains(body, c.want) {
				t.Errorf("got %q, want it to hold %q", body, c.want)
			}
			if c.want != "" && w.Header().Get("Etag") != "" {
				t.Error("a page with data must not have the ETag of the file")
			}
		})
	}
}

// onePage is a site whose start page has a first query.
type onePage struct{}

func (onePage) FirstQuery(path string) []byte {
	if path != "/" {
		return nil
	}
	return []byte(`{"q":1}`)
}

func (onePage) Preview(path string, _ []byte) []byte {
	return []byte(`<meta content="` + path + `">`)
}
