package person

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// mailboxes are providers that deliver several addresses to one mailbox, by domain.
type mailboxes struct {
	domain string // that the mailbox is known by; "" = its own
	dots   bool   // dots in the name make no difference
	tags   string // characters that begin a tag; "" = +
	host   bool   // the part before the domain may be the name: tag@name.domain
}

// providers is the table of mail providers. Of all others only the tag after + is left out,
// which no widely used server gives to another mailbox.
var providers = map[string]mailboxes{
	"gmail.com":       {dots: true},
	"googlemail.com":  {domain: "gmail.com", dots: true},
	"outlook.com":     {},
	"hotmail.com":     {},
	"live.com":        {},
	"msn.com":         {},
	"icloud.com":      {},
	"me.com":          {domain: "icloud.com"}, // one mailbox has all three
	"mac.com":         {domain: "icloud.com"},
	"proton.me":       {dots: true, tags: "+"},
	"protonmail.com":  {domain: "proton.me", dots: true},
	"protonmail.ch":   {domain: "proton.me", dots: true},
	"pm.me":           {domain: "proton.me", dots: true},
	"fastmail.com":    {host: true},
	"fastmail.fm":     {host: true},
	"yahoo.com":       {tags: "-+"}, // "base-keyword": Yahoo's names have no hyphen
	"yahoo.co.jp":     {tags: "-+"},
	"ymail.com":       {tags: "-+"},
	"yandex.com":      {domain: "yandex.ru"},
	"yandex.ru":       {},
	"ya.ru":           {domain: "yandex.ru"},
	"qq.com":          {},
	"foxmail.com":     {},
	"vip.qq.com":      {},
	"163.com":         {},
	"126.com":         {},
	"yeah.net":        {},
	"tutanota.com":    {},
	"zoho.com":        {},
	"startmail.com":   {},
	"mailbox.org":     {},
	"posteo.de":       {},
	"posteo.net":      {domain: "posteo.de"},
	"gmx.net":         {},
	"gmx.de":          {domain: "gmx.net"},
	"duck.com":        {},
	"simplelogin.com": {},
}

// Mailbox returns the mailbox that an e-mail address belongs to, as far as the table knows; a phone
// number, and any other text, as it is.
func Mailbox(account string) string {
	account = strings.ToLower(norm.NFKC.String(account))
	at := strings.LastIndexByte(account, '@')
	if at < 1 {
		return account
	}
	name, domain := account[:at], account[at+1:]
	known, ok := providers[domain]
	if !ok {
		if sub, base, cut := strings.Cut(domain, "."); cut && providers[base].host {
			return sub + "@" + base // tag@name.fastmail.com
		}
	}
	tags := known.tags
	if tags == "" {
		tags = "+"
	}
	if tag := strings.IndexAny(name, tags); tag > 0 {
		name = name[:tag]
	}
	if known.dots {
		name = strings.ReplaceAll(name, ".", "")
	}
	if known.domain != "" {
		domain = known.domain
	}
	return name + "@" + domain
}

// Place is a delivery address without the name and the phone number of the person, which can be
// made up.
type Place struct{ Country, Region, City, Street, PostalCode string }

// Same reports whether two addresses are of one place.
func (p Place) Same(other Place) bool { return slices.Equal(p.normalised(), other.normalised()) }

// streetWords are the usual abbreviations of street names in Latin script, by the form that
// counts.
var streetWords = map[string]string{
	"street": "st", "str": "st", "strasse": "st", "straße": "st", "avenue": "ave", "av": "ave", "road": "rd",
	"boulevard": "blvd", "lane": "ln", "drive": "dr",
	"court": "ct", "place": "pl", "square": "sq", "floor": "fl", "north": "n", "south": "s", "east": "e", "west": "w",
	"number": "", "no": "", "nr": "", "apartment": "", "apt": "", "suite": "", "ste": "", "unit": "", "flat": "",
	"room": "", "rm": "",
}

// postalPrefix is how many characters of a postal code count where the rest may be left out, or
// made up without harm to the delivery.
var postalPrefix = map[string]int{"BR": 5, "NL": 4, "PT": 4, "TW": 3, "US": 5}

// normalised returns the parts of a place that count: the country, the postal code, or without
// one region and city, and the street. Case, width, accents, spaces and punctuation make no difference.
func (p Place) normalised() []string {
	country := strings.ToUpper(p.Country)
	area := letters(p.PostalCode)
	if n, ok := postalPrefix[country]; ok && len(area) > n {
		area = area[:n] // letters and digits of the address book's postal codes are ASCII
	}
	if area == "" {
		area = letters(p.Region) + "/" + letters(p.City)
	}
	var street strings.Builder
	last := false // the street so far ends with a digit
	for _, word := range words(p.Street) {
		if short, ok := streetWords[word]; ok {
			word = short
		} else if stem, ok := strings.CutSuffix(word, "strasse"); ok {
			word = stem + "st"
		} else if stem, ok := strings.CutSuffix(word, "str"); ok {
			word = stem + "st"
		}
		if word == "" {
			continue
		}
		if last && digit(word[0]) {
			street.WriteByte('/') // two numbers are not one
		}
		street.WriteString(word)
		last = digit(word[len(word)-1])
	}
	return []string{country, area, street.String()}
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

// words returns the runs of letters and digits of a text in lower case, of one width, without
// accents.
func words(text string) []string {
	text = strings.ToLower(strings.ReplaceAll(norm.NFKD.String(text), "ß", "ss"))
	text = strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		return r
	}, text)
	return strings.FieldsFunc(norm.NFKC.String(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.Is(unicode.M, r)
	})
}

func letters(text string) string { return strings.Join(words(text), "") }
