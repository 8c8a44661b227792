package web

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"html"
	"image/png"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"seckill/internal/platform/accent"
)

// Brand is what an installation shows instead of the look that was built. The zero value
// changes nothing.
type Brand struct {
	Name           string // "" = that of the language
	Accent         accent.Accent
	Logo, LogoDark *Logo // nil = the mark and the name; on dark pages, Logo
}

// Logo is a picture that is a part of the page, so that the first paint has it.
type Logo struct {
	Source string `json:"src"` // data URL
	Width  int    `json:"width"`
	Height int    `json:"height"`
}

// Bounds of a logo: it is in every page, and as large as it is shown in the header.
const (
	maxLogoBytes  = 16 * 1024
	maxLogoWidth  = 160 // CSS pixels
	maxLogoHeight = 32
)

// ReadLogo reads an SVG or PNG file.
func ReadLogo(file string) (*Logo, error) {
	body, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the logo: %w", err)
	}
	if len(body) > maxLogoBytes {
		return nil, fmt.Errorf("the logo %s has %d bytes: %d are the most, because it is in every page", file, len(body),
			maxLogoBytes)
	}
	kind, size := "image/png", pngSize
	if filepath.Ext(file) == ".svg" {
		kind, size = "image/svg+xml", svgSize
	}
	wide, high, err := size(body)
	if err != nil {
		return nil, fmt.Errorf("the logo %s: %w", file, err)
	}
	scale := min(maxLogoHeight/high, maxLogoWidth/wide)
	return &Logo{
		Source: "data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(body),
		Width:  max(1, int(wide*scale)), Height: max(1, int(high*scale)),
	}, nil
}

func pngSize(body []byte) (wide, high float64, err error) {
	c, err := png.DecodeConfig(bytes.NewReader(body))
	if err != nil {
		return 0, 0, fmt.Errorf("is no PNG: %w", err)
	}
	return float64(c.Width), float64(c.Height), nil
}

// svgSize returns the sides of an SVG: those of its viewBox, or its width and height.
func svgSize(body []byte) (wide, high float64, err error) {
	var root struct {
		XMLName xml.Name `xml:"http://www.w3.org/2000/svg svg"`
		Box     string   `xml:"viewBox,attr"`
		Width   string   `xml:"width,attr"`
		Height  string   `xml:"height,attr"`
	}
	if err := xml.Unmarshal(body, &root); err != nil {
		return 0, 0, fmt.Errorf("is no SVG: %w", err)
	}
	sides := []string{strings.TrimSuffix(root.Width, "px"), strings.TrimSuffix(root.Height, "px")}
	if box := strings.Fields(strings.ReplaceAll(root.Box, ",", " ")); len(box) == 4 {
		sides = box[2:]
	}
	wide, err1 := strconv.ParseFloat(sides[0], 64)
	high, err2 := strconv.ParseFloat(sides[1], 64)
	if err1 != nil || err2 != nil || !(wide > 0) || !(high > 0) {
		return 0, 0, errors.New("has no size: give the svg element a viewBox")
	}
	return wide, high, nil
}

// IsZero reports whether the brand changes nothing.
func (b Brand) IsZero() bool { return b == Brand{} }

// style returns the style sheet of the accent; "" = none. It sets the tokens of
// src/style.css.
func (b Brand) style() string {
	if b.Accent == (accent.Accent{}) {
		return ""
	}
	pair := func(token, light, dark string) string {
		return "--color-" + token + ":light-dark(" + light + "," + dark + ");"
	}
	light, dark := b.Accent.Light, b.Accent.Dark
	return ":root{" + pair("fill", light.Fill, dark.Fill) + pair("press", light.Press, dark.Press) +
		pair("accent", light.Text, dark.Text) + "}"
}

// StyleSource returns the source by which a Content-Security-Policy allows the style
// sheet of the accent in a page; "" = there is none.
func (b Brand) StyleSource() string {
	style := b.style()
	if style == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(style))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// title is the element of index.html with the name.
const title = "<title>Seckill</title>"

// Of returns built files with the brand in their page and their manifest.
func (b Brand) Of(built fs.FS) (fs.FS, error) {
	data, err := json.Marshal(struct {
		Name string `json:"name,omitempty"`
		Logo *Logo  `json:"logo,omitempty"`
		Dark *Logo  `json:"dark,omitempty"`
	}{b.Name, b.Logo, b.LogoDark}) // it escapes <, so that the text cannot close its element
	if err != nil {
		return nil, fmt.Errorf("web: %w", err)
	}
	head := `<script type="application/json" id="brand">` + string(data) + "</script>"
	if style := b.style(); style != "" {
		head += "<style>" + style + "</style>"
	}
	manifest, err := b.manifest(built)
	if err != nil {
		return nil, err
	}
	page := edited{FS: built, files: map[string][]byte{manifestFile: manifest},
		edits: []edit{{old: "</head>", now: head + "</head>"}}}
	if b.Name != "" {
		page.edits = append(page.edits, edit{old: title, now: "<title>" + html.EscapeString(b.Name) + "</title>"})
	}
	return page, nil
}
