package fault

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"seckill/internal/platform/typed"
)

// Rule is a rule of input values. Clients receive its text (String), which is part of the
// API; the message for people is made from its parts.
type Rule struct {
	Code  string // what is required
	Bound string // the bound, for example 64 of maxLength; "" = none
}

// Codes of rules with a bound.
const (
	MinCode       = "min"
	MaxCode       = "max"
	MinLengthCode = "minLength" // in characters
	MaxLengthCode = "maxLength" // in characters
	PatternCode   = "pattern"
	FormatCode    = "format"
	ContrastCode  = "contrast" // the bound is the measured contrast with white
	PayableCode   = "payable"  // the bound is the amount and the limits of the providers
)

// String returns the text of the rule, for example "maxLength: 64".
func (r Rule) String() string {
	if r.Bound == "" {
		return r.Code
	}
	return r.Code + ": " + r.Bound
}

// Min requires a number of at least n.
func Min(n int) Rule { return Rule{MinCode, strconv.Itoa(n)} }

// Max requires a number of at most n.
func Max(n int) Rule { return Rule{MaxCode, strconv.Itoa(n)} }

// MinLength requires at least n characters.
func MinLength(n int) Rule { return Rule{MinLengthCode, strconv.Itoa(n)} }

// MaxLength allows at most n characters.
func MaxLength(n int) Rule { return Rule{MaxLengthCode, strconv.Itoa(n)} }

// Line returns the rule that a text in the form of typed.Line breaks: least to most
// characters, one line, and no characters that hide or reorder others. It is zero for a
// text that breaks none.
func Line(text string, least, most int) Rule {
	if rule := Lines(text, least, most); rule != (Rule{}) {
		return rule
	}
	if strings.ContainsRune(text, '\n') {
		return NoControlCharacters
	}
	return Rule{}
}

// Lines is Line for a text in the form of typed.Text, which may have several lines.
func Lines(text string, least, most int) Rule {
	n := utf8.RuneCountInString(text)
	switch {
	case !utf8.ValidString(text):
		return UTF8
	case n < least:
		return MinLength(least)
	case n > most:
		return MaxLength(most)
	case typed.Overrides(text):
		return NoOverrides
	case strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }):
		return NoControlCharacters
	}
	return Rule{}
}

// Rules that messages for people explain.
var (
	NotEmpty                = MinLength(1)
	AfterStart              = Rule{Code: "after startsAt"}
	AfterSince              = Rule{Code: "after since"}
	AScope                  = Rule{Code: "at least one scope"}
	BeforeStart             = Rule{Code: "before startsAt"}
	NearStart               = Rule{Code: "at most 8 hours before startsAt"}
	InTheFuture             = Rule{Code: "in the future"}
	EachGoodsOnce           = Rule{Code: "each goods once"}
	MoreThanNothing         = Rule{Code: "more than nothing"}
	SlugFormat              = Rule{FormatCode, "slug"}
	HTTPSAddress            = Rule{Code: "an address of https"}
	ColorFormat             = Rule{FormatCode, "#rrggbb"}
	URIFormat               = Rule{FormatCode, "uri"}
	NoControlCharacters     = Rule{Code: "no control characters"}
	NoOverrides             = Rule{Code: "no direction overrides"}
	UTF8                    = Rule{Code: "UTF-8"}
	NotZero                 = Rule{Code: "not 0"}
	NotCommonPassword       = Rule{Code: "not a common password"}
	NotTheAccount           = Rule{Code: "not the account itself"}
	OneGoodsID              = Rule{Code: "exactly one of goodsId and goodsExternalId"}
	OneCurrency             = Rule{Code: "one currency in a sale"}
	NeedsAddress            = Rule{Code: "needs requiresAddress"}
	AllowedOrigin           = Rule{Code: "an address of an allowed origin"}
	NotOffered              = Rule{Code: "option is not offered for this order"}
	NoAuthorizer            = Rule{Code: "needs a provider that authorizes cards"}
	KnownCurrency           = Rule{Code: "an amount of a known currency"}
	StartInTheFuture        = Rule{Code: "startsAt in the future"}
	CaptchaService          = Rule{Code: "a captcha service for EXTERNAL"}
	PhoneNumber             = Rule{Code: "phone number"}
	EmailOrPhone            = Rule{Code: "e-mail address or phone number"}
	EmailOrPhoneWithCountry = Rule{Code: "e-mail address, or phone number with country code"}
	PictureAddress          = Rule{Code: "an address of this server, of https, or a picture itself"}
	DeliverableEmail        = Rule{Code: "an address that the mail server takes"}
	EmailFormat             = Rule{FormatCode, "email"}
)
