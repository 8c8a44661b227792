package server

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
)

// GraphiQL and React, as published, compressed; and the page that loads them. Versions
// and licences are in playground/assets/README.md.
//
//go:embed playground
var playgroundFiles embed.FS

//go:embed page
var pageFiles embed.FS

// Tab is an example of the playground, which opens with the first.
type Tab struct {
	Title     string `json:"title,omitempty"`
	Query     string `json:"query"`
	Variables string `json:"variables,omitempty"` // JSON
}

// Tabs are the examples of a playground. They may be replaced while it is served.
type Tabs struct{ list atomic.Pointer[[]Tab] }

// NewTabs returns some examples.
func NewTabs(list []Tab) *Tabs {
	t := &Tabs{}
	t.Set(list)
	return t
}

// Set replaces the examples.
func (t *Tabs) Set(list []Tab) { t.list.Store(&list) }

// all returns the examples; nil Tabs have none.
func (t *Tabs) all() []Tab {
	if t == nil {
		return []Tab{}
	}
	return *t.list.Load()
}

// the content policy of the playground: CodeMirror writes style attributes, and
// GraphiQL's style sheet contains its fonts
var playgroundCSP = []string{"default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
	"font-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"}

// playground serves GraphiQL from this server only.
type playground struct {
	files *files
	tabs  *Tabs
}

// graphiQL is 1.5 MB uncompressed.
var graphiQL = sync.OnceValues(func() (*files, error) {
	tree, err := fs.Sub(playgroundFiles, "playground")
	if err != nil {
		return nil, fmt.Errorf("playground: %w", err)
	}
	return loadFiles(tree, "")
})

func newPlayground(tabs *Tabs) (*playground, error) {
	loaded, err := graphiQL()
	if err != nil {
		return nil, err
	}
	return &playground{files: loaded, tabs: tabs}, nil
}

// ServeHTTP implements http.Handler.
func (p *playground) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header()["Content-Security-Policy"] = playgroundCSP
	name := strings.Trim(strings.TrimPrefix(r.URL.Path, "/playground"), "/")
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "Method not allowed.", http.StatusMethodNotAllowed)
	case name == "":
		p.files.serve(w, r, p.files.byPath["index.html"])
	case name == "tabs.json":
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-cache")
		_ = json.NewEncoder(w).Encode(p.tabs.all()) // the client may have disconnected
	case p.files.byPath[name] != nil:
		p.files.serve(w, r, p.files.byPath[name])
	default:
		http.Error(w, "Not found.", http.StatusNotFound)
	}
}

// placeholder returns the handler of / without a shop.
func placeholder() (http.Handler, error) {
	tree, err := fs.Sub(pageFiles, "page")
	if err != nil {
		return nil, fmt.Errorf("placeholder: %w", err)
	}
	loaded, err := loadFiles(tree, "")
	if err != nil {
		return nil, err
	}
	return &spa{files: loaded}, nil
}
