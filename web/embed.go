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
)

//go:embed all:dist
var dist embed.FS

//go:embed dist/version.txt
var version string

//go:embed documents.json
var documents []byte

// Dist returns the built files: index.html, assets/, robots.txt.
func Dist() fs.FS {
	built, err := fs.Sub(dist, "dist")
	if err != nil {
		panic(fmt.Sprintf("web: %v", err)) // the name is a constant and valid
	}
	return built
}

// Version returns the hash of the build, the v of its references.
func Version() string { return strings.TrimSpace(version) }

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
