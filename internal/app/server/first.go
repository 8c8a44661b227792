package server

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// headEnd is where the response is inserted into a page.
var headEnd = []byte("</head>")

// FirstQuery names the first queries of pages.
type FirstQuery struct {
	Timeout time.Duration // of a query; after it the browser sends the query itself
	Pages   Pages
}

// Pages are the pages of a site; web.Pages implements it.
type Pages interface {
	// FirstQuery returns the body of the first query for a URL path, or nil.
	FirstQuery(path string) []byte
	// Preview returns elements for the head of a page with a response, or nil.
	Preview(path string, data []byte) []byte
}

// WithFirstQuery serves the pages of a site with the response to their first
// query inlined as <script type="application/json" id="first">, so that the
// first paint shows data. Where the query fails or is slow, the page is served
// without it.
func WithFirstQuery(site, graphql http.Handler, first FirstQuery) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := firstBody(r, first.Pages)
		if body == nil {
			site.ServeHTTP(w, r)
			return
		}
		page := replay(site, firstRequest(r.Context(), r, http.MethodGet, r.URL.Path, nil))
		at := bytes.Index(page.body.Bytes(), headEnd)
		data := runFirst(graphql, r, body, first.Timeout)
		if page.status != http.StatusOK || at < 0 || data == nil {
			site.ServeHTTP(w, r)
			return
		}
		html := page.body.Bytes()
		preview := first.Pages.Preview(r.URL.Path, data)
		serveFirst(w, r, bytes.Join([][]byte{html[:at], preview, firstScript(body, data), html[at:]}, nil))
	})
}

// firstBody returns the first query of a request for a page, or nil.
func firstBody(r *http.Request, pages Pages) []byte {
	if r.Method != http.MethodGet || r.URL.RawQuery != "" || !acceptsPage(r.Header.Get("Accept")) {
		return nil
	}
	return pages.FirstQuery(r.URL.Path)
}

// acceptsPage reports whether an Accept header includes a page. Clients that preview links
// accept everything, or say nothing.
func acceptsPage(accept string) bool {
	return accept == "" || strings.Contains(accept, "text/html") || strings.Contains(accept, "*/*")
}

// firstRequest returns a request on behalf of the client of r, without its credentials
// and conditional headers.
func firstRequest(ctx context.Context, r *http.Request, method, path string, body []byte) *http.Request {
	out := r.Clone(ctx)
	out.Method, out.URL.Path, out.RequestURI = method, path, path
	out.Header = http.Header{"Accept-Language": r.Header.Values("Accept-Language")}
	out.Body, out.ContentLength = http.NoBody, 0
	if body != nil {
		out.Header.Set("Content-Type", "application/json")
		out.Header.Set("Accept", "application/json")
		out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	return out
}

// runFirst returns the data of a query, or nil if it failed.
func runFirst(graphql http.Handler, r *http.Request, body []byte, timeout time.Duration) json.RawMessage {
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	defer cancel()
	got := replay(graphql, firstRequest(ctx, r, http.MethodPost, "/graphql", body))
	var response struct {
		Data   json.RawMessage `json:"data"`
		Errors json.RawMessage `json:"errors"`
	}
	if got.status != http.StatusOK || json.Unmarshal(got.body.Bytes(), &response) != nil || response.Errors != nil {
		return nil
	}
	return response.Data
}

// firstScript returns the script element. It is data, which a Content-Security-Policy
// does not restrict; its text is escaped and cannot close the element.
func firstScript(body, data []byte) []byte {
	content := bytes.Join([][]byte{[]byte(`{"body":`), body, []byte(`,"data":`), data, []byte(`}`)}, nil)
	content = bytes.ReplaceAll(content, []byte("<"), []byte(`\u003c`))
	return bytes.Join([][]byte{[]byte(`<script type="application/json" id="first">`), content, []byte("</script>")}, nil)
}

func serveFirst(w http.ResponseWriter, r *http.Request, html []byte) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-cache")
	h.Add("Vary", "Accept-Encoding")
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		html = pack(html)
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("Content-Length", strconv.Itoa(len(html)))
	_, _ = w.Write(html) //nolint:gosec // Preview and firstScript escape what they insert; the client may have disconnected
}

// replayed is a response in memory.
type replayed struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (p *replayed) Header() http.Header { return p.header }

// WriteHeader keeps the first status.
func (p *replayed) WriteHeader(status int) {
	if p.status == 0 {
		p.status = status
	}
}

// Write appends to the body.
func (p *replayed) Write(b []byte) (int, error) {
	p.WriteHeader(http.StatusOK)
	return p.body.Write(b)
}

// replay runs a handler and returns its response.
func replay(h http.Handler, r *http.Request) *replayed {
	w := &replayed{header: http.Header{}}
	h.ServeHTTP(w, r)
	return w
}
