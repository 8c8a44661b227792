// Package accent owns the accent colours of the shop: how one is written, whether it can
// be read, and the shades that the two colour schemes need of it.
//
// It knows the grounds of the shop's pages, which web/src/style.css sets. It does not write
// style sheets.
package accent

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// Least is the least contrast of text, as the Web Content Accessibility Guidelines 2.2
// require it at level AA (success criterion 1.4.3).
const Least = 4.5

// Accent is a colour with its shades. The zero value is none.
type Accent struct {
	Color       string // as it was chosen: # and six lower-case hexadecimal digits
	Light, Dark Shades
}

// Shades are the colours of one scheme, written as Accent.Color.
type Shades struct {
	Fill  string // ground of white text
	Press string // Fill under the pointer
	Text  string // text and outlines on the grounds of the page
}

// FormatError says that a text is no colour.
type FormatError struct{ Text string }

func (e FormatError) Error() string {
	return fmt.Sprintf("is %q: write # and six hexadecimal digits, such as #2b34d9", e.Text)
}

// ContrastError says that a colour is too light for white text and for text on white.
type ContrastError struct {
	Color string
	Ratio float64
	Near  string // the same hue, dark enough
}

// Error names the measured contrast and a colour that would do.
func (e ContrastError) Error() string {
	return fmt.Sprintf("is %s, whose contrast with white is %.2f:1, and %.1f:1 is the least: %s would do", e.Color,
		floor(e.Ratio), Least, e.Near)
}

// Bound returns the measured contrast for programs.
func (e ContrastError) Bound() string { return fmt.Sprintf("%.2f", floor(e.Ratio)) }

// floor cuts a ratio to two decimals: one below the least must not read as the least.
func floor(ratio float64) float64 { return math.Floor(ratio*100) / 100 }

var format = regexp.MustCompile(`^#[0-9a-f]{6}$`)

// The grounds on which text stands, of web/src/style.css: page, card and sunk.
var (
	white     = rgb{1, 1, 1}
	black     = rgb{}
	lightSunk = of("#f4f4f5") // the darkest ground of the light scheme
	darkPage  = of("#0e0e10")
	darkSunk  = of("#222226") // the lightest ground of the dark scheme
)

// leastFill is the least contrast of a filled area with a dark page. It is above the 3:1
// of success criterion 1.4.11, and low enough that white text on the area has Least.
const leastFill = 3.5

// Parse reads a colour and derives its shades, all of which have at least the contrast
// Least where text needs it. The error is a FormatError or a ContrastError.
func Parse(text string) (Accent, error) {
	text = strings.ToLower(strings.TrimSpace(text))
	if !format.MatchString(text) {
		return Accent{}, FormatError{Text: text}
	}
	chosen := of(text)
	if ratio := contrast(chosen, white); ratio < Least {
		near := chosen.toward(black, func(c rgb) bool { return contrast(c, white) >= Least })
		return Accent{}, ContrastError{Color: text, Ratio: ratio, Near: near.String()}
	}
	fill := chosen.toward(white, func(c rgb) bool { return contrast(c, darkPage) >= leastFill })
	return Accent{
		Color: text,
		Light: Shades{
			Fill: text, Press: chosen.pressed().String(),
			Text: chosen.toward(black, func(c rgb) bool { return contrast(c, lightSunk) >= Least }).String(),
		},
		Dark: Shades{
			Fill: fill.String(), Press: fill.pressed().String(),
			Text: chosen.toward(white, func(c rgb) bool { return contrast(c, darkSunk) >= Least }).String(),
		},
	}, nil
}

// rgb is a colour of sRGB, each part from 0 to 1.
type rgb struct{ r, g, b float64 }

// levels is the number of values of a part above zero.
const levels = 255

// of returns a colour that has the format.
func of(text string) rgb {
	n, _ := strconv.ParseUint(text[1:], 16, 32)
	part := func(shift int) float64 { return float64(n>>shift&levels) / levels }
	return rgb{part(16), part(8), part(0)}
}

// String returns the colour as # and six digits.
func (c rgb) String() string {
	part := func(v float64) int { return int(math.Round(v * levels)) }
	return fmt.Sprintf("#%02x%02x%02x", part(c.r), part(c.g), part(c.b))
}

func (c rgb) mix(with rgb, share float64) rgb {
	part := func(a, b float64) float64 { return a + (b-a)*share }
	return of(rgb{part(c.r, with.r), part(c.g, with.g), part(c.b, with.b)}.String())
}

// steps is the number of mixtures that toward tries.
const steps = 64

// toward returns the first mixture with another colour that fits; the other colour has to.
func (c rgb) toward(other rgb, fits func(rgb) bool) rgb {
	for i := range steps {
		if mixed := c.mix(other, float64(i)/steps); fits(mixed) {
			return mixed
		}
	}
	return other
}

// pressed returns the colour of an area under the pointer: a quarter darker, or lighter
// where darker would not be seen.
func (c rgb) pressed() rgb {
	const share, dark = 0.25, 14
	if contrast(c, white) > dark {
		return c.mix(white, share)
	}
	return c.mix(black, share)
}

// luminance is the relative luminance of WCAG 2.2.
func (c rgb) luminance() float64 {
	linear := func(v float64) float64 {
		if v <= 0.04045 {
			return v / 12.92
		}
		return math.Pow((v+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(c.r) + 0.7152*linear(c.g) + 0.0722*linear(c.b)
}

// contrast is the contrast ratio of WCAG 2.2, from 1 to 21.
func contrast(a, b rgb) float64 {
	la, lb := a.luminance(), b.luminance()
	return (max(la, lb) + 0.05) / (min(la, lb) + 0.05)
}
