package seed

import (
	"encoding/base64"
	"fmt"
)

// picture draws a goods as a small SVG in a data URL, so that the demo shows
// something without files or foreign hosts.
func picture(emoji, tint string) string {
	svg := fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 160 120">`+
		`<rect width="160" height="120" fill="%s"/><text x="80" y="82" font-size="64" text-anchor="middle">%s</text></svg>`, tint, emoji)
	return "data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString([]byte(svg))
}
