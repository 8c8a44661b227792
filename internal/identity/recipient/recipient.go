// Package recipient owns the address books of users, and the recipient of each order: a
// copy of the buyer's default address at the time when the order was written.
//
// It does not own orders or shipping. A sale decides whether its orders have a recipient
// (sale.Sale.RequiresAddress).
//
// An address is private: it is stored, returned to its user and to staff, and sent to
// other systems with the order. It is never logged; formatting a Recipient hides it.
package recipient

import (
	"log/slog"
	"regexp"
	"strings"
	"unicode/utf8"

	"seckill/ent"
	"seckill/internal/identity/person"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/typed"
)

// Bounds of an address in characters. Postal codes and phone numbers are ASCII. The longest
// city and person names known have less than 64 characters.
const (
	maxName   = 64
	maxPhone  = 32
	maxRegion = 64
	maxCity   = 64
	maxStreet = 200
	maxPostal = 16
)

// Recipient is a person and a place.
type Recipient struct {
	Name       string `json:"name"`
	Phone      string `json:"phone"`
	Country    string `json:"country"`          // ISO 3166-1 alpha-2
	Region     string `json:"region,omitempty"` // province or state
	City       string `json:"city"`
	Street     string `json:"street"`
	PostalCode string `json:"postalCode,omitempty"`
}

// Place returns what identifies the place of an address, for the limits of a sale.
func (r Recipient) Place() person.Place {
	return person.Place{Country: r.Country, Region: r.Region, City: r.City, Street: r.Street, PostalCode: r.PostalCode}
}

// hidden is shown instead of an address.
const hidden = "[address]"

// String hides the address.
func (Recipient) String() string { return hidden }

// GoString hides the address.
func (Recipient) GoString() string { return hidden }

// LogValue hides the address.
func (Recipient) LogValue() slog.Value { return slog.StringValue(hidden) }

var (
	postalCode  = regexp.MustCompile(`^[0-9A-Za-z -]*$`)
	countryCode = regexp.MustCompile(`^[A-Z]{2}$`)
)

// Ready returns the address in the form in which it is stored, or all its faults. The phone
// number is in E.164 with the country of the address, unless it is only known there.
func (r Recipient) Ready() (Recipient, error) {
	r = Recipient{
		Name: typed.Line(r.Name), Phone: r.Phone, Country: strings.ToUpper(typed.Plain(r.Country)),
		Region: typed.Line(r.Region), City: typed.Line(r.City), Street: typed.Line(r.Street),
		PostalCode: typed.Plain(r.PostalCode),
	}
	var phone error
	if number, ok := typed.AnyPhone(r.Phone, r.Country); ok && len(number) <= maxPhone {
		r.Phone = number
	} else {
		phone = bad("phone", fault.PhoneNumber)
	}
	return r, fault.All(
		text(r.Name, "name", bounds{1, maxName}), phone,
		matches(r.Country, "country", len("CN"), countryCode), text(r.Region, "region", bounds{0, maxRegion}),
		text(r.City, "city", bounds{1, maxCity}), text(r.Street, "street", bounds{1, maxStreet}),
		matches(r.PostalCode, "postalCode", maxPostal, postalCode),
	)
}

type bounds struct{ least, most int }

// text refuses a text that is too short or too long, or that does not fit on a line.
func text(value, field string, in bounds) error {
	if rule := fault.Line(value, in.least, in.most); rule != (fault.Rule{}) {
		return bad(field, rule)
	}
	return nil
}

func matches(value, field string, most int, pattern *regexp.Regexp) error {
	if utf8.RuneCountInString(value) > most {
		return bad(field, fault.MaxLength(most))
	}
	if !pattern.MatchString(value) {
		return bad(field, fault.Rule{Code: fault.PatternCode, Bound: pattern.String()})
	}
	return nil
}

func bad(field string, rule fault.Rule) error {
	return fault.BadField{At: []string{field}, Rule: rule}
}

// Required refuses to admit a buyer without an address to a sale whose orders have one.
func Required() error {
	return fault.Refused{Why: fault.AddressRequired, At: []string{"itemId"}}
}

func fromAddress(row *ent.Address) Recipient {
	return Recipient{
		Name: row.Name, Phone: row.Phone, Country: row.Country, Region: row.Region, City: row.City, Street: row.Street,
		PostalCode: row.PostalCode,
	}
}

func fromOrder(row *ent.OrderRecipient) Recipient {
	return Recipient{
		Name: row.Name, Phone: row.Phone, Country: row.Country, Region: row.Region, City: row.City, Street: row.Street,
		PostalCode: row.PostalCode,
	}
}
