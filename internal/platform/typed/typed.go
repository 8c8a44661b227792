// Package typed owns the one form of what people type or paste: texts, identifiers, codes,
// phone numbers and mailboxes. Forms, searches, imports and commands use it, so that the
// same input means the same everywhere.
//
// It does not own limits of length: package fault has them. Characters are code points,
// counted in the form that this package returns. Passwords have a form of their own, and
// texts of other systems (metadata, names of a provider's events) have none.
package typed

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Characters that are treated by themselves.
const (
	zeroWidthNonJoiner = '\u200c'
	zeroWidthJoiner    = '\u200d'
	blackFlag          = '\U0001f3f4' // begins the flag of a region, which is spelt with tags
	firstTag, lastTag  = '\U000e0000', '\U000e007f'
)

// embedding reports characters that open or close a run of text in one direction. Address
// books and mail programs put them around names and numbers. Unbalanced, they reorder the
// text that follows.
func embedding(r rune) bool {
	return r >= '\u202a' && r <= '\u202c' || r >= '\u2066' && r <= '\u2069'
}

// override reports characters that show the characters after them in another order than
// they have. No language needs them.
func override(r rune) bool { return r == '\u202d' || r == '\u202e' }

// Overrides reports whether a text has characters that show it in another order. A text
// that is stored may have none.
func Overrides(text string) bool { return strings.ContainsFunc(text, override) }

// invisible reports characters without a glyph: formats, such as U+200B and U+FEFF, and
// fillers, which are letters or symbols by their category.
func invisible(r rune) bool {
	switch r {
	case '\u034f', '\u115f', '\u1160', '\u17b4', '\u17b5', '\u2800', '\u3164', '\uffa0':
		return true
	}
	return unicode.Is(unicode.Cf, r)
}

// atEnd reports characters that are removed from both ends of a text. The tags of a flag
// stay: visible drops the others.
func atEnd(r rune) bool {
	return unicode.IsSpace(r) || invisible(r) && !override(r) && (r < firstTag || r > lastTag)
}

// visible drops embeddings, and tags outside a flag, which can hide text in text. Joiners
// and direction marks stay: words of Persian and Indic languages, and emojis, need them.
func visible(text string) string {
	flag := false
	return strings.Map(func(r rune) rune {
		tag := r >= firstTag && r <= lastTag
		flag = r == blackFlag || flag && tag
		if embedding(r) || tag && !flag {
			return -1
		}
		return r
	}, text)
}

// Line returns a text of one line: in NFC, without white space and invisible characters at
// its ends, and with a single space for white space inside, which may be line breaks of a
// pasted address.
func Line(text string) string {
	var out strings.Builder
	space := false
	for _, r := range Text(text) {
		if unicode.IsSpace(r) {
			space = true
			continue
		}
		if space {
			out.WriteByte(' ')
			space = false
		}
		out.WriteRune(r)
	}
	return out.String()
}

// Text returns a text that may have several lines: in NFC, with U+000A as line break, and
// without white space and invisible characters at its ends.
func Text(text string) string {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u2028", "\n", "\u2029", "\n\n").Replace(text)
	return norm.NFC.String(strings.TrimFunc(visible(text), atEnd))
}

// Identifier returns what names something: in NFKC, which folds the full-width characters
// of Chinese and Japanese keyboards, without invisible characters, and without white space
// at its ends. Overrides stay and are for the caller to refuse.
func Identifier(text string) string {
	text = strings.Map(func(r rune) rune {
		if invisible(r) && !override(r) {
			return -1
		}
		return r
	}, norm.NFKC.String(text))
	return strings.TrimSpace(norm.NFKC.String(text)) // what was apart may compose now
}

// Code returns a code of letters and digits that is compared and not stored: in capitals,
// and without what people put between its characters.
func Code(text string) string {
	return norm.NFC.String(strings.ToUpper(strings.Map(func(r rune) rune {
		if !unicode.In(r, unicode.L, unicode.M, unicode.N) {
			return -1
		}
		return r
	}, Plain(text))))
}

// Plain returns an identifier with ASCII digits and hyphens: other scripts have digits of
// their own, and word processors replace hyphens by dashes.
func Plain(text string) string {
	return strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf {
			return r
		}
		if unicode.Is(unicode.Pd, r) || r == '\u2212' {
			return '-'
		}
		return digit(r)
	}, Identifier(text))
}

// digit returns the ASCII digit of a decimal digit, and other characters as they are. Each
// range of the table begins with a zero and has whole runs of ten.
func digit(r rune) rune {
	for _, in := range unicode.Nd.R16 {
		if lo, hi := rune(in.Lo), rune(in.Hi); r >= lo && r <= hi {
			return '0' + (r-lo)%10
		}
	}
	for _, in := range unicode.Nd.R32 {
		if lo, hi := rune(in.Lo), rune(in.Hi); r >= lo && r <= hi {
			return '0' + (r-lo)%10
		}
	}
	return r
}

// Printable reports whether a character may be part of a name that others see: one with a
// glyph, a space, or a format that belongs to the characters around it.
func Printable(r rune) bool {
	return unicode.IsPrint(r) || unicode.Is(unicode.Cf, r) && !override(r)
}
