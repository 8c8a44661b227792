// Package locale names the languages of texts for users: e-mails, reports and messages of
// the API. It does not own the texts.
package locale

import (
	"strings"
	"unicode"
)

// Language is a language of texts, as in an HTML lang attribute.
type Language string

// Languages. Every text exists in both.
const (
	English Language = "en"
	Chinese Language = "zh"
)

// rightToLeft are the scripts that are written from right to left.
var rightToLeft = []*unicode.RangeTable{unicode.Arabic, unicode.Hebrew, unicode.Syriac, unicode.Thaana, unicode.Nko}

// Isolate returns a text that a person wrote, for use within another one: a text from right
// to left gets the isolating characters U+2068 and U+2069, so that it does not mix with
// what is around it. HTML uses bdi and dir="auto" instead.
func Isolate(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return unicode.In(r, rightToLeft...) }) {
		return "\u2068" + text + "\u2069"
	}
	return text
}
