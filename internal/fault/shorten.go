package fault

import (
	"strings"
	"unicode/utf8"
)

// Shorten returns the text of an error in the length that is logged or stored: valid UTF-8
// of at most a number of bytes.
func Shorten(text string, most int) string {
	text = strings.ToValidUTF8(text, "?")
	if len(text) <= most {
		return text
	}
	for !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}
