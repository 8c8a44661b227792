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

// accountRule is the rule of an account name.
const accountRule = "e-mail address, or phone number with country code"

// mailbox is an e-mail address as HTML forms accept it (HTML §4.10.5.1.5), with a dot in
// its domain. International domains are given in ASCII form.
var mailbox = regexp.MustCompile(`^[a-z0-9.!#$%&'*+/=?^_{|}~` + "`" + `-]{1,64}@(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])$`)

// normaliseAccount returns the form in which an account is stored and looked up: an
// e-mail address in lower case, or a phone number in E.164. ok is false if the text is
// neither.
func normaliseAccount(text string) (account string, ok bool) {
	if len(text) > 4*maxAccount { // checked before further processing
		return "", false
	}
	text = strings.ToLower(strings.TrimSpace(norm.NFKC.String(text)))
	if len(text) > maxAccount {
		return "", false
	}
	if !strings.HasPrefix(text, "+") {
		return text, mailbox.MatchString(text)
	}
	number, err := phonenumbers.Parse(text, phonenumbers.UNKNOWN_REGION)
	if err != nil || !phonenumbers.IsPossibleNumber(number) || strings.ContainsFunc(text, unicode.IsLetter) {
		return "", false
	}
	return phonenumbers.Format(number, phonenumbers.E164), true
}

// lookupName returns the normalised account. Invalid text becomes a name that no account
// can have, so that it is looked up and refused like an unknown account.
func lookupName(text string) string {
	if account, ok := normaliseAccount(text); ok {
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

// Check returns all faults of the input, as fault.BadField each.
func (n NewUser) Check() error {
	_, err := n.clean()
	return err
}

// clean returns the normalised form. The error is of fault.BadField.
func (n NewUser) clean() (NewUser, error) {
	account, ok := normaliseAccount(n.Account)
	var badAccount error
	if !ok {
		badAccount = badField("account", accountRule)
	}
	name := strings.Join(strings.Fields(norm.NFC.String(n.DisplayName)), " ")
	password := normalisePassword(n.Password)
	err := fault.All(badAccount, checkName(name), checkPassword(password, account, "password"))
	if err != nil {
		return NewUser{}, err
	}
	return NewUser{Account: account, Password: password, DisplayName: name}, nil
}

func checkName(name string) error {
	switch length := utf8.RuneCountInString(name); {
	case length < 1:
		return badField("displayName", "minLength: 1")
	case length > maxName:
		return badField("displayName", "maxLength: 32")
	case strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return badField("displayName", "no control characters")
	}
	return nil
}

// checkPassword refuses a normalised password that breaks a rule, with fault.BadField.
func checkPassword(password, account, field string) error {
	switch length := utf8.RuneCountInString(password); {
	case length < minPassword:
		return badField(field, "minLength: 10")
	case length > maxPassword:
		return badField(field, "maxLength: 128")
	case strings.EqualFold(password, account):
		return badField(field, "not the account itself")
	case common(password, account):
		return badField(field, "not a common password")
	}
	return nil
}

func badField(name, rule string) error {
	return fault.BadField{At: []string{"input", name}, Rule: rule}
}
