package account

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"seckill/internal/platform/fault"
	"seckill/internal/platform/typed"
)

// Limits of input, in characters.
const (
	maxAccount  = 254 // RFC 5321 §4.5.3.1.3, less the brackets
	minPassword = 10
	maxPassword = 128 // limits the work of hashing
	maxName     = 32
)

// Names normalises account names.
type Names struct {
	// Country is the country of phone numbers without a country code, as two capitals
	// (ISO 3166-1): CN. "" = numbers need their country code.
	Country string
}

// PhoneCountry returns the country of phone numbers without a country code; "" = none.
func (s *Service) PhoneCountry() string { return s.cfg.Names.Country }

func (n Names) rule() fault.Rule {
	if n.Country == "" {
		return fault.EmailOrPhoneWithCountry
	}
	return fault.EmailOrPhone
}

// formerMailbox is an e-mail address as releases up to 0.4 stored it. To some of them, such
// as a..b@example.com, no e-mail can be sent; their users still sign in.
var formerMailbox = regexp.MustCompile(`^[a-z0-9.!#$%&'*+/=?^_{|}~` + "`" +
	`-]{1,64}@(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])$`)

// Normalise returns the form in which an account is stored and looked up: an
// e-mail address in lower case, or a phone number in E.164. ok is false if the text is
// neither.
func (n Names) Normalise(text string) (account string, ok bool) {
	if address, ok := typed.Mailbox(text); ok {
		return address, true
	}
	return typed.Phone(text, n.Country)
}

// lookup returns the normalised account. Invalid text becomes a name that no account
// can have, so that it is looked up and refused like an unknown account.
func (n Names) lookup(text string) string {
	if account, ok := n.Normalise(text); ok {
		return account
	}
	if former := strings.ToLower(typed.Identifier(text)); len(former) <= maxAccount && formerMailbox.MatchString(former) {
		return former
	}
	sum := sha256.Sum256([]byte(text))
	return "no account " + hex.EncodeToString(sum[:])
}

// normalisePassword makes a password independent of the keyboard and input method (NIST
// SP 800-63B §3.1.1.2).
func normalisePassword(password string) string { return norm.NFKC.String(password) }

// NewUser holds the input for a new account.
type NewUser struct {
	Account     string
	Password    string
	DisplayName string
}

// CheckNew returns all faults of the input for a new account, as fault.BadField each.
func (s *Service) CheckNew(in NewUser) error {
	_, err := s.store.names.clean(in)
	return err
}

// clean returns the normalised form. The error is of fault.BadField.
func (n Names) clean(in NewUser) (NewUser, error) {
	account, ok := n.Normalise(in.Account)
	var badAccount error
	if !ok {
		badAccount = badField("account", n.rule())
	}
	name := typed.Line(in.DisplayName)
	password := normalisePassword(in.Password)
	err := fault.All(badAccount, checkName(name), checkPassword(password, account, "password"))
	if err != nil {
		return NewUser{}, err
	}
	return NewUser{Account: account, Password: password, DisplayName: name}, nil
}

func checkName(name string) error {
	rule := fault.Line(name, 1, maxName)
	if rule == (fault.Rule{}) && strings.ContainsFunc(name, func(r rune) bool { return !typed.Printable(r) }) {
		rule = fault.NoControlCharacters
	}
	if rule == (fault.Rule{}) {
		return nil
	}
	return badField("displayName", rule)
}

// checkPassword refuses a normalised password that breaks a rule, with fault.BadField.
func checkPassword(password, account, field string) error {
	switch length := utf8.RuneCountInString(password); {
	case length < minPassword:
		return badField(field, fault.MinLength(minPassword))
	case length > maxPassword:
		return badField(field, fault.MaxLength(maxPassword))
	case strings.EqualFold(password, account):
		return badField(field, fault.NotTheAccount)
	case common(password, account):
		return badField(field, fault.NotCommonPassword)
	}
	return nil
}

func badField(name string, rule fault.Rule) error {
	return fault.BadField{At: []string{name}, Rule: rule}
}
