package operator

import (
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"seckill/internal/buy/access"
	"seckill/internal/buy/sale"
	"seckill/internal/platform/accent"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/money"
	"seckill/internal/platform/typed"
)

// Limits of input; lengths are in characters.
const (
	maxName     = 120
	maxText     = 10_000
	maxSlug     = 64
	maxNote     = 200
	maxItems    = 20
	maxUnits    = 10_000_000
	maxLimit    = 10 // units in one order, and a buyer has one order per item
	minWindow   = 30 * time.Second
	maxWindow   = 24 * time.Hour
	maxImageAlt = 200
	maxImageURL = 64 * 1024 // a small picture may be a data URL
	maxPrice    = 1e14      // minor units
)

var slugFormat = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// requireNote puts a note, which must not be empty, into the form in which it is stored, and
// checks it.
func requireNote(note *string) error {
	*note = typed.Text(*note)
	return checked(fault.Lines(*note, 1, maxNote), "note")
}

// optional puts a text, which may be empty, into the form in which it is stored, and checks
// it.
func optional(text *string, most int, path ...string) error {
	*text = typed.Text(*text)
	return checked(fault.Lines(*text, 0, most), path...)
}

// line puts a text of one line, which must not be empty, into the form in which it is stored, and checks it.
func line(text *string, path ...string) error {
	*text = typed.Line(*text)
	return checked(fault.Line(*text, 1, maxName), path...)
}

func checked(rule fault.Rule, path ...string) error {
	if rule == (fault.Rule{}) {
		return nil
	}
	return invalid(rule, path...)
}

// externalFormat are the characters of ids of other systems: printable ASCII without
// spaces, so that no two look alike.
var externalFormat = regexp.MustCompile(`^[!-~]{1,64}$`)

// checkExternal checks the id that another system uses; "" = none.
func checkExternal(text *string, path ...string) error {
	*text = typed.Identifier(*text)
	if *text != "" && !externalFormat.MatchString(*text) {
		return invalid(fault.Rule{Code: "1 to 64 printable ASCII characters"}, path...)
	}
	return nil
}

func inRange(n, least, most int, path ...string) error {
	switch {
	case n < least:
		return invalid(fault.Min(least), path...)
	case n > most:
		return invalid(fault.Max(most), path...)
	}
	return nil
}

func checkPrice(price money.Amount, path ...string) error {
	switch {
	case price.Currency == "":
		return invalid(fault.KnownCurrency, path...)
	case price.Minor <= 0:
		return invalid(fault.MoreThanNothing, path...)
	case price.Minor > maxPrice:
		return invalid(fault.Rule{Code: fault.MaxCode,
			Bound: money.Amount{Minor: maxPrice, Currency: price.Currency}.Decimal()}, path...)
	}
	return nil
}

// checkImageURL allows paths on this server, https URLs, and small data URLs.
func checkImageURL(address *string, path ...string) error {
	if address == nil {
		return nil
	}
	if len(*address) > maxImageURL {
		return invalid(fault.MaxLength(maxImageURL), path...)
	}
	u, err := url.Parse(*address)
	switch {
	case err != nil:
		return invalid(fault.URIFormat, path...)
	case u.Scheme == "https" && u.Host != "",
		u.Scheme == "" && u.Host == "" && strings.HasPrefix(u.Path, "/"),
		u.Scheme == "data" && strings.HasPrefix(u.Opaque, "image/"):
		return nil
	}
	return invalid(fault.PictureAddress, path...)
}

// checkTimes checks the times of a sale, which must start after a time.
func checkTimes(starts, ends, after time.Time) error {
	var start, end error
	if !starts.After(after) {
		start = invalid(fault.InTheFuture, "startsAt")
	}
	if !ends.After(starts) {
		end = invalid(fault.AfterStart, "endsAt")
	}
	return fault.All(start, end)
}

// checkWindow checks how long buyers have to pay. The window of the installation is
// always allowed.
func checkWindow(window, usual time.Duration) error {
	seconds := func(d time.Duration) int { return int(d / time.Second) }
	return inRange(seconds(window), seconds(min(minWindow, usual)), seconds(max(maxWindow, usual)), "paymentWindowSeconds")
}

// checkSlug checks the name of a sale in addresses; "" = it is made from the title.
func checkSlug(slug *string) error {
	*slug = strings.ToLower(typed.Plain(*slug))
	if *slug != "" && (len(*slug) > maxSlug || !slugFormat.MatchString(*slug)) {
		return invalid(fault.SlugFormat, "slug")
	}
	return nil
}

// checkAccent puts a colour into the form in which it is stored, and checks that it can be
// read.
func checkAccent(color *string) error {
	if *color == "" {
		return nil
	}
	read, err := accent.Parse(*color)
	if light := (accent.ContrastError{}); errors.As(err, &light) {
		return invalid(fault.Rule{Code: fault.ContrastCode, Bound: light.Bound()}, "accent")
	}
	if err != nil {
		return invalid(fault.ColorFormat, "accent")
	}
	*color = read.Color
	return nil
}

// cleanAccess puts the texts of access rules into the form in which they are stored, and checks
// them.
func cleanAccess(rules access.Rules) error {
	faults := []error{inRange(len(rules), 0, access.MaxRules, "access")}
	for i := range rules[:min(len(rules), access.MaxRules)] {
		r, at := &rules[i], []string{"access", strconv.Itoa(i)}
		r.Name, r.Source = typed.Line(r.Name), typed.Line(r.Source)
		least := 0
		if r.Kind.Named() {
			least = 1
		}
		name := fault.Line(r.Name, least, access.MaxName)
		if least == 0 && r.Name != "" {
			name = fault.Max(0)
		}
		faults = append(faults, checked(name, append(at, "name")...))
		if !r.Kind.ValidSource(r.Source) {
			faults = append(faults, invalid(sourceFormat, append(at, "source")...))
		}
	}
	return fault.All(faults...)
}

// sourceFormat is the rule of what an access rule asks.
var sourceFormat = fault.Rule{Code: "LIST, CODE: a name of a-z, 0-9 and -; CLAIM: name=value; others: none"}

// useless refuses an access rule that matches no buyer: an earlier rule matches the same ones.
var useless = fault.Rule{Code: "no rule before it that fits the same buyers"}

// checkAccess checks the order and the times of access rules, of a sale that lasts some time. The
// earliest rule lets in at the opening, because the gate opens then; a rule for everyone is the
// last, and a rule that a former one has made useless is a mistake. All rules together keep at most
// the units of the smallest item, stock.
func checkAccess(rules access.Rules, lasts time.Duration, stock int) error {
	var faults []error
	earliest := len(rules) == 0
	for i, r := range rules[:min(len(rules), access.MaxRules)] {
		at := []string{"access", strconv.Itoa(i)}
		earliest = earliest || r.After == 0
		switch {
		case r.After < 0:
			faults = append(faults, invalid(fault.Min(0), append(at, "afterSeconds")...))
		case lasts > 0 && time.Duration(r.After)*time.Second >= lasts:
			faults = append(faults, invalid(fault.Rule{Code: "before endsAt"}, append(at, "afterSeconds")...))
		}
		faults = append(faults, checkKept(r, lasts, at))
		same := func(o access.Rule) bool { return o.Kind == access.All || o.Kind == r.Kind && o.Source == r.Source }
		if slices.ContainsFunc(rules[:i], same) {
			faults = append(faults, invalid(useless, append(at, "kind")...))
		}
	}
	if rules.Kept() > stock {
		faults = append(faults, invalid(fault.Rule{Code: "keepUnits of all rules at most the stock of each item"}, "access"))
	}
	if !earliest {
		faults = append(faults, invalid(fault.Rule{Code: "a rule with afterSeconds: 0"}, "access"))
	}
	return fault.All(faults...)
}

// checkPrivate checks that a private sale has rules, and none that lets in everyone: it would be public
// for all accounts.
func checkPrivate(private bool, rules access.Rules) error {
	if private && (len(rules) == 0 || rules.Asks(access.All)) {
		return invalid(fault.Rule{Code: "access without a rule for ALL"}, "private")
	}
	return nil
}

// checkKept checks the units that an access rule keeps.
func checkKept(r access.Rule, lasts time.Duration, at []string) error {
	keep, until := append(slices.Clone(at), "keepUnits"), append(slices.Clone(at), "keepSeconds")
	switch {
	case r.Kind == access.All && r.Keep > 0:
		return invalid(fault.Max(0), keep...)
	case r.Keep < 0:
		return invalid(fault.Min(0), keep...)
	case r.Keep == 0 && r.Until != 0:
		return invalid(fault.Max(0), until...)
	case r.Keep > 0 && r.Until <= r.After:
		return invalid(fault.Rule{Code: "after afterSeconds"}, until...)
	case lasts > 0 && time.Duration(r.Until)*time.Second > lasts:
		return invalid(fault.Rule{Code: "not after endsAt"}, until...)
	}
	return nil
}

// slugOf converts a title into a part of a URL, with space for a tag after it; "" if no
// characters remain.
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

// slugTag is the number of characters that make the slug of a title unique.
const slugTag = 8

// checkDraw checks the rules of a draw in a sale that lasts some time: the offers of its first
// buyers end before the sale does.
func checkDraw(r sale.DrawRules, lasts time.Duration) error {
	if r == (sale.DrawRules{}) {
		return nil
	}
	faults := []error{
		inRange(r.EntrySeconds, sale.MinEntrySeconds, sale.MaxEntrySeconds, "draw", "entrySeconds"),
		inRange(r.OfferSeconds, sale.MinOfferSeconds, sale.MaxOfferSeconds, "draw", "offerSeconds"),
	}
	if fault.All(faults...) == nil {
		faults = append(faults, checkOffersEnd(r, lasts, "draw", "offerSeconds"))
	}
	return fault.All(faults...)
}

func checkOffersEnd(r sale.DrawRules, lasts time.Duration, path ...string) error {
	if lasts > 0 && time.Duration(r.EntrySeconds+r.OfferSeconds)*time.Second >= lasts {
		return invalid(offersEnd, path...)
	}
	return nil
}

// offersEnd is the rule of the times of a draw.
var offersEnd = fault.Rule{Code: "startsAt + entrySeconds + offerSeconds before endsAt"}
