package fault

import (
	"strings"
	"unicode/utf8"
)

// ellipsis ends a text that was shortened.
const ellipsis = "…"

// Shorten returns a text in the length that is logged, stored or sent: valid UTF-8 of at
// most a number of bytes, with an ellipsis at the end if something was left out. most is at
// least 3.
func Shorten(text string, most int) string {
	text = strings.ToValidUTF8(text, "?")
	if len(text) <= most {
		return text
	}
	end := most - len(ellipsis)
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + ellipsis
}
