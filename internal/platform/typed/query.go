package typed

import (
	"net/url"
	"regexp"
	"strings"
	"unicode"
)

// Query is a text of a search in the forms in which it may be stored.
type Query struct {
	Line  string // for texts
	Plain string // for texts, when it was typed in full width
	Key   string // for what names one thing: without the address, the mark or the label around it
}

// QueryOf reads what people type or paste into a search. A Key is the last part of an
// address of the shop or of a provider, an account without mailto: or tel:, the number of an
// order or a public id within a text such as the subject of an e-mail, and another number
// without # or "No." before it.
func QueryOf(text string) Query {
	text = strings.Map(func(r rune) rune {
		if override(r) {
			return -1
		}
		return r
	}, text)
	q := Query{Line: Line(text), Plain: Plain(text)}
	if q.Key = keyOf(q.Plain); q.Key == "" {
		q.Key = q.Plain
	}
	return q
}

var (
	inBrackets = regexp.MustCompile(`<([^<>]+)>$`)
	schemeOf   = regexp.MustCompile(`(?i)^(?:mailto|tel|sms):([^?]*)`)
	// addressLike is an address with or without its scheme, or the path of one.
	addressLike = regexp.MustCompile(`(?i)^(?:https?://|/|[a-z0-9-]+(?:\.[a-z0-9-]+)+(?::[0-9]+)?/)`)
	// named is the number of an order or a public id, as the subject of an e-mail has it.
	named    = regexp.MustCompile(`(?i)\b(?:[0-9]{8}-[0-9a-z]{7,20}|[a-z]{3}_[0-9a-z]{26})\b`)
	labelled = regexp.MustCompile(`(?i)^(?:#|no\.?|nr\.?|order|订单编?号?)[\s:#]*([0-9].*)$`)
)

func keyOf(text string) string {
	text = strings.Trim(text, " \t\"'“”‘’«»,;")
	if found := inBrackets.FindStringSubmatch(text); found != nil {
		text = found[1]
	}
	if found := schemeOf.FindStringSubmatch(text); found != nil {
		if text = found[1]; strings.Contains(text, "%") {
			if plain, err := url.PathUnescape(text); err == nil {
				text = plain
			}
		}
		return text
	}
	if addressLike.MatchString(text) && strings.ContainsFunc(text, unicode.IsLetter) {
		text = lastPart(text)
	}
	if found := named.FindAllString(text, 2); len(found) == 1 {
		return found[0]
	}
	if found := labelled.FindStringSubmatch(text); found != nil {
		return found[1]
	}
	return strings.TrimSpace(strings.TrimLeft(text, "#"))
}

// lastPart returns the last part of the path of an address that is not empty, or the text
// itself. Parts with an underscore come first: a public id may have an action after it.
func lastPart(address string) string {
	path, _, _ := strings.Cut(address, "#")
	path, _, _ = strings.Cut(path, "?")
	_, rest, found := strings.Cut(path, "://")
	if !found {
		rest = path
	}
	parts := strings.FieldsFunc(rest, func(r rune) bool { return r == '/' })
	if len(parts) == 0 || len(parts) == 1 && !strings.HasPrefix(rest, "/") { // a host alone
		return address
	}
	last := parts[len(parts)-1]
	for _, part := range parts {
		if strings.Contains(part, "_") {
			last = part
		}
	}
	if plain, err := url.PathUnescape(last); err == nil {
		return plain
	}
	return last
}

// Digits returns the digits of a text that has no letters, such as a phone number in the
// form of a country, without leading zeros; "" for another text.
func Digits(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return unicode.IsLetter(r) || r == '@' }) {
		return ""
	}
	return strings.TrimLeft(strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, text), "0")
}
