package operator

import (
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"seckill/internal/fault"
	"seckill/internal/money"
)

// Bounds of what operators write; lengths are in characters.
const (
	maxName     = 120
	maxText     = 10_000
	maxSlug     = 64
	maxNote     = 200
	maxItems    = 20
	maxUnits    = 10_000_000
	maxLimit    = 100
	minWindow   = 30 * time.Second
	maxWindow   = 24 * time.Hour
	maxImageURL = 64 * 1024 // a small picture may be a data URL
	maxPrice    = 1e14      // minor units
)

var slugFormat = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// first returns the first refusal there is.
func first(refusals ...fault.Refusal) fault.Refusal {
	for _, r := range refusals {
		if r != nil {
			return r
		}
	}
	return nil
}

// needed cuts a text that must be there and bounds it.
func needed(text *string, most int, path ...string) fault.Refusal {
	*text = strings.TrimSpace(*text)
	if *text == "" {
		return bad("minLength: 1", path...)
	}
	return bounded(*text, most, path...)
}

// bounded bounds a text and keeps out what Postgres cannot keep, whoever calls.
func bounded(text string, most int, path ...string) fault.Refusal {
	switch {
	case !utf8.ValidString(text):
		return bad("UTF-8", path...)
	case strings.IndexByte(text, 0) >= 0:
		return bad("no U+0000", path...)
	case utf8.RuneCountInString(text) > most:
		return bad(fmt.Sprintf("maxLength: %d", most), path...)
	}
	return nil
}

func between(n, least, most int, path ...string) fault.Refusal {
	switch {
	case n < least:
		return bad(fmt.Sprintf("min: %d", least), path...)
	case n > most:
		return bad(fmt.Sprintf("max: %d", most), path...)
	}
	return nil
}

func priced(price money.Amount, path ...string) fault.Refusal {
	switch {
	case price.Currency == "":
		return bad("currency", path...)
	case price.Minor <= 0:
		return bad("more than nothing", path...)
	case price.Minor > maxPrice:
		return bad("smaller", path...)
	}
	return nil
}

// pictured allows addresses on this server, addresses by https, and small
// pictures in the address itself.
func pictured(address *string, path ...string) fault.Refusal {
	if address == nil {
		return nil
	}
	if len(*address) > maxImageURL {
		return bad("maxLength: "+strconv.Itoa(maxImageURL), path...)
	}
	u, err := url.Parse(*address)
	switch {
	case err != nil:
		return bad("format: uri", path...)
	case u.Scheme == "https" && u.Host != "",
		u.Scheme == "" && u.Host == "" && strings.HasPrefix(u.Path, "/"),
		u.Scheme == "data" && strings.HasPrefix(u.Opaque, "image/"):
		return nil
	}
	return bad("an address of this server, of https, or a picture itself", path...)
}

func timed(starts, ends time.Time, path ...string) fault.Refusal {
	if !ends.After(starts) {
		return bad("after startsAt", append(path, "endsAt")...)
	}
	return nil
}

// slugOf turns a title into a part of an address, with room for a tag after it;
// "" when nothing of it fits.
func slugOf(title string) string {
	words := strings.FieldsFunc(strings.ToLower(title), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
	slug := strings.Join(words, "-")
	if len(slug) > maxSlug-slugTag-1 {
		slug = strings.Trim(slug[:maxSlug-slugTag-1], "-")
	}
	return slug
}

// slugTag is how many characters make the slug of a title unique.
const slugTag = 8
