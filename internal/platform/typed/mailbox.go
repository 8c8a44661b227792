package typed

import (
	"net/mail"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// Bounds of an e-mail address in bytes, RFC 5321 §4.5.3.1. That of the whole is the one of a
// path, less the brackets.
const (
	maxLocal   = 64
	maxMailbox = 254
)

// hostName is a domain as HTML forms accept it (HTML §4.10.5.1.5), with a dot in it and a last
// part that begins with a letter: others are IP addresses, or domains that do not exist.
var hostName = regexp.MustCompile(`^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])$`)

// Mailbox returns an e-mail address to which e-mail can be sent, in lower case and with its
// domain in ASCII; ok is false for another text. The name before @ may have characters of
// every language; only servers with SMTPUTF8 (RFC 6531) take e-mail for such names.
func Mailbox(text string) (address string, ok bool) {
	if len(text) > 4*maxMailbox { // checked before further processing
		return "", false
	}
	text = strings.ToLower(Identifier(text))
	at := strings.LastIndexByte(text, '@')
	if at < 1 {
		return "", false
	}
	local := text[:at]
	domain, err := text[at+1:], error(nil)
	if International(domain) {
		domain, err = idna.Lookup.ToASCII(domain)
	}
	if strings.ContainsFunc(text[at+1:], notDomain) || err != nil || !hostName.MatchString(domain) ||
		len(local) > maxLocal || strings.ContainsFunc(local, notLocal) {
		return "", false
	}
	address = local + "@" + domain
	parsed, err := mail.ParseAddress(address) // as the sender does
	return address, err == nil && parsed.Address == address && len(address) <= maxMailbox
}

// notLocal reports characters that the name of a mailbox cannot have. Quoted names are not
// accepted: hardly a mail server has one.
func notLocal(r rune) bool {
	if r >= utf8.RuneSelf {
		return !unicode.In(r, unicode.L, unicode.M, unicode.N)
	}
	return (r < 'a' || r > 'z') && (r < '0' || r > '9') && !strings.ContainsRune(".!#$%&'*+/=?^_{|}~`-", r)
}

// notDomain reports characters that a domain cannot have, in any language (RFC 5892). Package
// idna takes pictures.
func notDomain(r rune) bool {
	return !unicode.In(r, unicode.L, unicode.M, unicode.N) && !strings.ContainsRune(".。-", r)
}

// International reports whether only servers with SMTPUTF8 take e-mail for an address.
func International(address string) bool {
	return strings.ContainsFunc(address, func(r rune) bool { return r >= utf8.RuneSelf })
}
