package guard

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Bounds of manifests, which the server's operator writes: they catch a wrong file, not
// an attack.
const (
	maxManifestBytes     = 8 << 20
	maxManifestDocuments = 10_000
)

// apolloManifest is the format of Apollo's generate-persisted-query-manifest
// (https://www.apollographql.com/docs/graphos/platform/security/persisted-queries).
type apolloManifest struct {
	Format     string
	Version    int
	Operations []struct{ ID, Body string }
}

const apolloFormat = "apollo-persisted-query-manifest"

// ManifestFile reads manifests from a file, or from the *.json files of a folder.
type ManifestFile struct {
	Path string
	seen string // state of the files at the last Read
}

// Changed reports whether a file was changed, added or removed since the last Read.
func (f *ManifestFile) Changed() bool {
	state, err := f.state()
	return err != nil || state != f.seen
}

// Read returns the documents of all files. The formats are Apollo's manifest, and the map
// from id to text that Relay (persistConfig.file), gql.tada and graphql-codegen's client
// preset write.
func (f *ManifestFile) Read() (Manifest, error) {
	state, err := f.state()
	if err != nil {
		return nil, err
	}
	names, err := f.names()
	if err != nil {
		return nil, err
	}
	all := Manifest{}
	for _, name := range names {
		if err := readManifest(name, all); err != nil {
			return nil, fmt.Errorf("trusted documents: %s: %w", name, err)
		}
	}
	f.seen = state
	return all, nil
}

func (f *ManifestFile) names() ([]string, error) {
	info, err := os.Stat(f.Path)
	if err != nil {
		return nil, fmt.Errorf("trusted documents: %w", err)
	}
	if !info.IsDir() {
		return []string{f.Path}, nil
	}
	entries, err := os.ReadDir(f.Path)
	if err != nil {
		return nil, fmt.Errorf("trusted documents: %w", err)
	}
	var names []string
	for _, e := range entries {
		if !e.IsDir() && strings.HasSuffix(e.Name(), ".json") {
			names = append(names, filepath.Join(f.Path, e.Name()))
		}
	}
	slices.Sort(names)
	return names, nil
}

// state returns the names, sizes and modification times of the files.
func (f *ManifestFile) state() (string, error) {
	names, err := f.names()
	if err != nil {
		return "", err
	}
	var state strings.Builder
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil {
			return "", fmt.Errorf("trusted documents: %w", err)
		}
		fmt.Fprintf(&state, "%s %d %s\n", name, info.Size(), info.ModTime().Format(time.RFC3339Nano))
	}
	return state.String(), nil
}

func readManifest(name string, into Manifest) error {
	file, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	defer file.Close()
	raw, err := io.ReadAll(io.LimitReader(file, maxManifestBytes+1))
	switch {
	case err != nil:
		return fmt.Errorf("read: %w", err)
	case len(raw) > maxManifestBytes:
		return fmt.Errorf("more than %d bytes", maxManifestBytes)
	}
	documents, err := parseManifest(raw)
	if err != nil {
		return err
	}
	for id, text := range documents {
		if other, known := into[id]; known && other != text {
			return fmt.Errorf("id %s names two documents", id)
		}
		into[id] = text
	}
	if len(into) > maxManifestDocuments {
		return fmt.Errorf("more than %d documents", maxManifestDocuments)
	}
	return nil
}

func parseManifest(raw []byte) (Manifest, error) {
	var head struct{ Format any }
	if err := json.Unmarshal(raw, &head); err != nil {
		return nil, fmt.Errorf("not a JSON object: %w", err)
	}
	if head.Format != apolloFormat {
		var byID Manifest
		if err := json.Unmarshal(raw, &byID); err != nil {
			return nil, fmt.Errorf("neither Apollo's manifest nor a map from id to document: %w", err)
		}
		return byID, nil
	}
	var apollo apolloManifest
	if err := json.Unmarshal(raw, &apollo); err != nil {
		return nil, fmt.Errorf("apollo manifest: %w", err)
	}
	if apollo.Version != 1 {
		return nil, fmt.Errorf("apollo manifest of version %d: only 1 is known", apollo.Version)
	}
	out := make(Manifest, len(apollo.Operations))
	for _, op := range apollo.Operations {
		out[op.ID] = op.Body
	}
	return out, nil
}
