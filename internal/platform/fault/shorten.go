package fault

import (
	"strings"
	"unicode/utf8"
)

// ellipsis ends a text that was shortened.
const ellipsis = "…"

// Shorten returns a text in the form that is logged, stored or sent: valid UTF-8 without
// NUL, which Postgres refuses, of at most a number of bytes, with an ellipsis at the end if
// something was left out. most is at
// least 3.
func Shorten(text string, most int) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "?"), "\x00", "?")
	if len(text) <= most {
		return text
	}
	end := most - len(ellipsis)
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + ellipsis
}
