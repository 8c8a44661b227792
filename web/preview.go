package web

import (
	"encoding/json"
	"html"
	"strings"
)

// maxPreview bounds the description of a preview, in characters: clients show about this
// much of it.
const maxPreview = 200

// Preview returns the meta elements by which other sites and messengers show a link to
// the page at a URL path (https://ogp.me): title, goods and picture of a sale, with its alternative text. data is
// the response to the page's FirstQuery. It returns nil for other pages and for a sale that does not
// exist; without an origin there is no picture, because its address must be absolute.
func (p Pages) Preview(path string, data []byte) []byte {
	var page struct {
		Sale *struct {
			Title string `json:"title"`
			Items []struct {
				Goods struct {
					Name     string  `json:"name"`
					ImageURL *string `json:"imageUrl"`
					ImageAlt *string `json:"imageAlt"`
				} `json:"goods"`
			} `json:"items"`
		} `json:"sale"`
	}
	if json.Unmarshal(data, &page) != nil || page.Sale == nil {
		return nil
	}
	var names []string
	picture, alt := "", ""
	for _, item := range page.Sale.Items {
		names = append(names, item.Goods.Name)
		if picture == "" && item.Goods.ImageURL != nil {
			picture, alt = absolute(*item.Goods.ImageURL, p.Origin), item.Goods.Name
			if item.Goods.ImageAlt != nil {
				alt = *item.Goods.ImageAlt
			}
		}
	}
	var b strings.Builder
	meta := func(property, content string) {
		if content != "" {
			b.WriteString(`<meta property="` + property + `" content="` + html.EscapeString(content) + `" />`)
		}
	}
	meta("og:type", "website")
	meta("og:title", page.Sale.Title)
	meta("og:description", shorten(strings.Join(names, ", ")))
	meta("og:url", absolute(path, p.Origin))
	meta("og:image", picture)
	if picture != "" {
		meta("og:image:alt", alt)
		b.WriteString(`<meta name="twitter:card" content="summary_large_image" />`)
	}
	return []byte(b.String())
}

// absolute returns the absolute form of an address of the shop, or "" where there is
// none: other sites do not show pictures in data: addresses.
func absolute(address, origin string) string {
	switch {
	case strings.HasPrefix(address, "https://"), strings.HasPrefix(address, "http://"):
		return address
	case origin != "" && strings.HasPrefix(address, "/"):
		return origin + address
	}
	return ""
}

func shorten(text string) string {
	runes := []rune(text)
	if len(runes) <= maxPreview {
		return text
	}
	return string(runes[:maxPreview-1]) + "…"
}
