package account

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/nyaruka/phonenumbers"
	"golang.org/x/text/unicode/norm"

	"seckill/internal/fault"
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

// rule returns the rule of an account name.
func (n Names) rule() fault.Rule {
	if n.Country == "" {
		return fault.EmailOrPhoneWithCountry
	}
	return fault.EmailOrPhone
}

// mailbox is an e-mail address as HTML forms accept it (HTML §4.10.5.1.5), with a dot in
// its domain. International domains are given in ASCII form.
var mailbox = regexp.MustCompile(`^[a-z0-9.!#$%&'*+/=?^_{|}~` + "`" + `-]{1,64}@(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])$`)

// Normalise returns the form in which an account is stored and looked up: an
// e-mail address in lower case, or a phone number in E.164. ok is false if the text is
// neither.
func (n Names) Normalise(text string) (account string, ok bool) {
	if len(text) > 4*maxAccount { // checked before further processing
		return "", false
	}
	text = strings.ToLower(strings.TrimSpace(norm.NFKC.String(text)))
	if len(text) > maxAccount {
		return "", false
	}
	country := phonenumbers.UNKNOWN_REGION
	if !strings.HasPrefix(text, "+") {
		if n.Country == "" || strings.Contains(text, "@") {
			return text, mailbox.MatchString(text)
		}
		country = n.Country
	}
	number, err := phonenumbers.Parse(text, country)
	if err != nil || !phonenumbers.IsPossibleNumber(number) || strings.ContainsFunc(text, unicode.IsLetter) {
		return "", false
	}
	return phonenumbers.Format(number, phonenumbers.E164), true
}

// lookup returns the normalised account. Invalid text becomes a name that no account
// can have, so that it is looked up and refused like an unknown account.
func (n Names) lookup(text string) string {
	if account, ok := n.Normalise(text); ok {
		return account
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
	name := strings.Join(strings.Fields(norm.NFC.String(in.DisplayName)), " ")
	password := normalisePassword(in.Password)
	err := fault.All(badAccount, checkName(name), checkPassword(password, account, "password"))
	if err != nil {
		return NewUser{}, err
	}
	return NewUser{Account: account, Password: password, DisplayName: name}, nil
}

func checkName(name string) error {
	switch length := utf8.RuneCountInString(name); {
	case length < 1:
		return badField("displayName", fault.NotEmpty)
	case length > maxName:
		return badField("displayName", fault.MaxLength(maxName))
	case strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return badField("displayName", fault.NoControlCharacters)
	}
	return nil
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
	return fault.BadField{At: []string{"input", name}, Rule: rule}
}
