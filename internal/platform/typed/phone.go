package typed

import (
	"regexp"
	"strings"
	"unicode"

	"github.com/nyaruka/phonenumbers"
)

// maxPhone bounds what is parsed as a phone number, in bytes. E.164 has 15 digits.
const maxPhone = 64

// Phone returns a phone number in E.164. A number without a country code is of a country, as
// two capitals (ISO 3166-1); "" = it needs one. ok is false for another text, and for a
// number that lacks its area code: it cannot be dialled from elsewhere.
func Phone(text, country string) (number string, ok bool) {
	text = Plain(text)
	if len(text) > maxPhone || Overrides(text) || strings.ContainsFunc(text, unicode.IsLetter) {
		return "", false
	}
	if country == "" || strings.HasPrefix(text, "+") {
		if !strings.HasPrefix(text, "+") {
			return "", false
		}
		country = phonenumbers.UNKNOWN_REGION
	}
	parsed, err := phonenumbers.Parse(text, country)
	if err != nil || phonenumbers.IsPossibleNumberWithReason(parsed) != phonenumbers.IS_POSSIBLE {
		return "", false
	}
	return phonenumbers.Format(parsed, phonenumbers.E164), true
}

// dialled are the characters of a number as people write it.
var dialled = regexp.MustCompile(`^\+?[0-9][0-9 ()./-]{3,}[0-9]$`)

// extension is what follows a number within the building that it reaches.
var extension = regexp.MustCompile(`(?i) ?(?:ext\.?|extension|x|转|分机) ?:?[0-9]{1,6}$`)

// AnyPhone is like Phone for numbers that a person dials and no program does. A number
// that is only known where it is used, or has an extension, stays as it is typed.
func AnyPhone(text, country string) (number string, ok bool) {
	if number, ok := Phone(text, country); ok {
		return number, true
	}
	text = Plain(text)
	if at := extension.FindStringIndex(text); at != nil {
		if _, ok := Phone(text[:at[0]], country); ok {
			return text, true
		}
		return text, dialled.MatchString(text[:at[0]])
	}
	return text, dialled.MatchString(text)
}
