package seed

import (
	"embed"
	"net/url"
)

//go:embed pictures/*.svg
var pictures embed.FS

// picture returns a drawing of the folder pictures as a data URL, so that the demo has
// pictures without files or other hosts. It is escaped, not Base64, because escaped text
// is much smaller after compression. A file that does not exist gives no picture.
func picture(name string) string {
	svg, err := pictures.ReadFile("pictures/" + name + ".svg")
	if err != nil {
		return ""
	}
	return "data:image/svg+xml," + url.PathEscape(string(svg))
}
