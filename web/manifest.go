package web

import (
	"encoding/json"
	"fmt"
	"io/fs"
)

// manifestFile is the web app manifest (https://www.w3.org/TR/appmanifest/): browsers
// install the shop by it, and iOS shows notices of installed web apps only.
const manifestFile = "manifest.webmanifest"

// manifest returns the built manifest with the name and the accent of the brand.
func (b Brand) manifest(built fs.FS) ([]byte, error) {
	body, err := fs.ReadFile(built, manifestFile)
	if err != nil {
		return nil, fmt.Errorf("web: %w", err)
	}
	members := map[string]any{}
	if err := json.Unmarshal(body, &members); err != nil {
		return nil, fmt.Errorf("web: %s: %w", manifestFile, err)
	}
	if b.Name != "" {
		members["name"], members["short_name"] = b.Name, b.Name
	}
	if fill := b.Accent.Light.Fill; fill != "" {
		members["theme_color"] = fill
	}
	body, err = json.Marshal(members)
	if err != nil {
		return nil, fmt.Errorf("web: %s: %w", manifestFile, err)
	}
	return body, nil
}
