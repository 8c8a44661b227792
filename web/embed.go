// Package web holds the shop that buyers and operators open in a browser: its
// source, and in dist the build that the binary serves.
//
// The package owns the built files and the list of trusted documents. It does
// not serve them.
//
// File names in dist are stable. Every reference from one file to another
// carries ?v=<Version>, so a request with the current version may be kept for
// ever, and one without it must be revalidated. A server must not add or change
// the v of a reference: a module loaded under two addresses runs twice.
package web

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"
	"sync"
)

//go:embed all:dist
var dist embed.FS

//go:embed dist/version.txt
var version string

//go:embed documents.json
var documents []byte

// Dist returns the built files: index.html, assets/, manifest.webmanifest, push.js, robots.txt.
func Dist() fs.FS {
	built, err := fs.Sub(dist, "dist")
	if err != nil {
		panic(fmt.Sprintf("web: %v", err)) // the name is a constant and valid
	}
	return built
}

// Version returns the hash of the build, the v of its references.
func Version() string { return strings.TrimSpace(version) }

// Pages are the pages of the shop as the server needs to know them.
type Pages struct {
	Origin string // public address of the shop, such as https://shop.example; "" = not known
}

// FirstQuery returns the body of the request that the page at a URL path sends
// first when it is opened signed out; nil for a page without one. The shop
// looks for the response under exactly this body.
func (Pages) FirstQuery(path string) []byte {
	switch slug, isSale := strings.CutPrefix(path, "/s/"); {
	case path == "/":
		return firstQuery("Sales", `{"after":null,"search":null}`)
	case isSale && slug != "" && !strings.ContainsAny(slug, "/\"\\"):
		quoted, err := json.Marshal(slug)
		if err != nil {
			return nil
		}
		return firstQuery("SaleBySlug", `{"slug":`+string(quoted)+`}`)
	}
	return nil
}

// hashes are the names of the documents by the name of their query.
var hashes = sync.OnceValue(func() map[string]string {
	out := make(map[string]string)
	texts, err := Documents()
	if err != nil {
		return out
	}
	for hash, text := range texts {
		if rest, ok := strings.CutPrefix(text, "query "); ok {
			name, _, _ := strings.Cut(rest, "(")
			out[name] = hash
		}
	}
	return out
})

func firstQuery(name, variables string) []byte {
	hash := hashes()[name]
	if hash == "" {
		return nil
	}
	return []byte(`{"operationName":"` + name + `","variables":` + variables +
		`,"extensions":{"persistedQuery":{"version":1,"sha256Hash":"` + hash + `"}}}`)
}

// Documents returns the GraphQL documents that the shop sends, by the lower-case
// hexadecimal sha256 of their text. A client names one in
// extensions.persistedQuery.sha256Hash.
func Documents() (map[string]string, error) {
	texts := make(map[string]string)
	if err := json.Unmarshal(documents, &texts); err != nil {
		return nil, fmt.Errorf("read the trusted documents: %w", err)
	}
	return texts, nil
}
