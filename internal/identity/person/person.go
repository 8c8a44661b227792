// Package person joins the accounts of one person: it makes the keys by which the limits of
// a sale count a contact, a delivery address or a means of payment, and those by which operators
// see orders from one network or device.
//
// A key is a keyed hash of the normalised value and the sale, so that neither the value nor
// the purchases of a person in other sales follow from it. Keys are stored with reservations,
// orders and waitlist entries until the sale is settled. The package stores nothing, and does not
// own accounts, addresses or limits.
package person

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"seckill/internal/platform/id"
)

// Kind is what joins accounts.
type Kind string

// Kinds. The account is always counted; it has no key, because its id is one.
const (
	Account Kind = "ACCOUNT"
	Contact Kind = "CONTACT"
	Address Kind = "ADDRESS"
	Payment Kind = "PAYMENT"
)

// Code is the kind of a code that gives access to a sale: its buyers share its uses.
const Code Kind = "CODE"

// Kinds that limits do not count: strangers share a network, and an account may use several
// devices.
const (
	Network Kind = "NETWORK"
	Device  Kind = "DEVICE"
)

const (
	// keyBytes gives a key 96 bits: two persons of a sale never share one by chance.
	keyBytes = 12
	// KeyChars is the length of a key: its letter, and keyBytes in base64url.
	KeyChars = 1 + keyBytes*4/3
)

// letters begin the keys of the kinds; the scripts of the gate know them.
const (
	contactLetter = 'c'
	addressLetter = 'a'
	paymentLetter = 'p'
	formerLetter  = 'f' // with the hash of a contact
	networkLetter = 'n'
	deviceLetter  = 'd'
	codeLetter    = 'k' // with the number of a code and its uses, in hexadecimal
)

// KindOf returns what a key, or a label, joins; "" for other texts.
func KindOf[T ~string](key T) Kind {
	if key == "" {
		return ""
	}
	switch key[0] {
	case contactLetter:
		return Contact
	case addressLetter:
		return Address
	case paymentLetter:
		return Payment
	case networkLetter:
		return Network
	case deviceLetter:
		return Device
	case codeLetter:
		return Code
	}
	return ""
}

// shareLetter begins the key of a share, which has no hash.
const shareLetter = "s"

// LabelChars is the length of the part of a key that names it among those of its sale: 48 bits.
const LabelChars = 9

// Label returns the name of a key for operators; "" for none.
func (k Key) Label() string { return string(k[:min(len(k), LabelChars)]) }

// Key is the key of a person in a sale; "" = none.
type Key string

func valid(text string, letter byte) bool {
	if len(text) != KeyChars || text[0] != letter {
		return false
	}
	_, err := base64.RawURLEncoding.DecodeString(text[1:])
	return err == nil
}

// Keys are the keys of a buyer that the gate counts; zero = the account alone is counted.
type Keys struct {
	Contact Key
	Address Key
	// Former are the keys that count what a deleted account took for later accounts of its contact, with
	// a verified contact for those that verify theirs, and for those that do not. A buyer has at most
	// one, where the limits of the sale do not count contacts: the gate reads it, and adds nothing to it.
	Former [2]Key
	// Code is the key of the code that gives the buyer access, as CodeOf returns it; "" = none.
	Code Key
	// Share names the access rule that keeps units for the buyer, as ShareOf returns it; "" = none.
	Share Key
}

// ShareOf returns the key of the share of an access rule, by its index from 0 to 9.
func ShareOf(rule int) Key { return Key(shareLetter) + Key(strconv.Itoa(rule)) }

func isShare(text string) bool {
	return len(text) == len(shareLetter)+1 && text[:1] == shareLetter && text[1] >= '0' && text[1] <= '9'
}

// CodeOf returns the key of a code, by its number in the sale, which can be used for a number of units.
// The key names no person: the gate counts it over all items of the sale, up to its uses.
func CodeOf(number uint32, uses int) Key {
	return Key(fmt.Sprintf("%c%08x%08x", codeLetter, number, uses))
}

// Uses returns the units of a code, by its key.
func (k Key) Uses() int {
	if !isCode(string(k)) {
		return 0
	}
	n, _ := strconv.ParseUint(string(k[KeyChars-8:]), 16, 32) // isCode has read the digits
	return int(n)
}

func isCode(text string) bool {
	return len(text) == KeyChars && text[0] == codeLetter && strings.Trim(text[1:], "0123456789abcdef") == ""
}

// IsZero reports whether there is no key.
func (k Keys) IsZero() bool { return k == Keys{} }

// String returns the keys as the scripts of the gate and the tables have them: those that
// there are, separated by commas.
func (k Keys) String() string {
	text := string(k.Contact)
	for _, key := range []Key{k.Address, k.Former[0], k.Former[1], k.Code, k.Share} {
		if text != "" && key != "" {
			text += ","
		}
		text += string(key)
	}
	return text
}

// With returns the keys with further ones that count a deleted account.
func (k Keys) With(former ...Key) Keys {
	for _, key := range former {
		switch {
		case key == k.Contact || key == k.Former[0] || key == k.Former[1]:
		case k.Contact == "" && valid(string(key), contactLetter):
			k.Contact = key
		case k.Former[0] == "":
			k.Former[0] = key
		default:
			k.Former[1] = key
		}
	}
	return k
}

// Access returns the keys that access rules count, in the form of String.
func (k Keys) Access() string { return Keys{Code: k.Code, Share: k.Share}.String() }

// WithAccess returns the keys with those that Access returned.
func (k Keys) WithAccess(text string) Keys {
	of, _ := Parse(text) // only Access writes it
	return k.Under(of)
}

// Under returns the keys with those of another buyer that access rules count.
func (k Keys) Under(access Keys) Keys {
	k.Code, k.Share = access.Code, access.Share
	return k
}

// Persons returns the keys of persons alone, which expiries are counted for.
func (k Keys) Persons() []string {
	k.Code, k.Share = "", ""
	if k.IsZero() {
		return nil
	}
	return strings.Split(k.String(), ",")
}

// Parse reads what String returns.
func Parse(text string) (Keys, error) {
	var k Keys
	if text == "" {
		return k, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		switch {
		case isShare(part) && k.Share == "":
			k.Share = Key(part)
		case isCode(part) && k.Code == "":
			k.Code = Key(part)
		case valid(part, contactLetter) && (k == Keys{Code: k.Code, Share: k.Share}):
			k.Contact = Key(part)
		case valid(part, addressLetter) && k.Address == "" && k.Former == [2]Key{}:
			k.Address = Key(part)
		case (valid(part, formerLetter) || k.Contact != "" && valid(part, contactLetter)) && k.Former[1] == "":
			k.Former[min(1, len(k.Former[0]))] = Key(part)
		default:
			return Keys{}, fmt.Errorf("person keys of %d bytes", len(text))
		}
	}
	return k, nil
}

// Origin is where an attempt came from. It is recorded, and no limit counts it.
type Origin struct {
	Network Key
	Device  Key
}

// IsZero reports whether nothing is known.
func (o Origin) IsZero() bool { return o == Origin{} }

// OriginChars is the length of an origin in an order message.
const OriginChars = 2 * KeyChars

// noKey stands for a key that an origin lacks.
var noKey = strings.Repeat("-", KeyChars)

// String returns the form in order messages, of OriginChars.
func (o Origin) String() string {
	return cmp.Or(string(o.Network), noKey) + cmp.Or(string(o.Device), noKey)
}

// ParseOrigin reads what String returns. A part that is no key is left out: an order does not
// fail because of it.
func ParseOrigin(text string) (o Origin) {
	if len(text) != OriginChars {
		return o
	}
	if network := text[:KeyChars]; valid(network, networkLetter) {
		o.Network = Key(network)
	}
	if device := text[KeyChars:]; valid(device, deviceLetter) {
		o.Device = Key(device)
	}
	return o
}

// MarkTime returns the time of a reservation, in Unix milliseconds, with the keys of its
// buyer behind it: the form of reservations in Redis and of order messages.
func MarkTime(at int64, keys Keys) string {
	text := strconv.FormatInt(at, 10)
	if keys.IsZero() {
		return text
	}
	return text + "," + keys.String()
}

// ParseTime reads what MarkTime returns.
func ParseTime(text string) (int64, Keys, error) {
	at, rest, _ := strings.Cut(text, ",")
	ms, errTime := strconv.ParseInt(at, 10, 64)
	persons, errKeys := Parse(rest)
	return ms, persons, errors.Join(errTime, errKeys)
}

// Hasher makes keys. The zero Hasher makes none.
type Hasher struct{ secret []byte }

// NewHasher returns the hasher of the secrets that auth.Keys derives. The last, of the oldest
// key, makes the keys: while an installation changes its signing key, the keys of
// running sales stay.
func NewHasher(secrets [][]byte) Hasher { return Hasher{secrets[len(secrets)-1]} }

// Contact returns the key of an account's contact: an e-mail address or a phone number. A
// verified contact and one that is not have different keys: a stranger's address cannot be used up by
// an account that does not receive its mail.
func (h Hasher) Contact(sale id.Sale, contact string, verified bool) Key {
	mark := "unverified"
	if verified {
		mark = "verified"
	}
	return h.key(contactLetter, sale, mark, Mailbox(contact))
}

// Former returns the key under which deleted accounts of a contact are counted where the limits of
// the sale do not count contacts.
func (h Hasher) Former(sale id.Sale, contact string, verified bool) Key {
	if key := h.Contact(sale, contact, verified); key != "" {
		return Key(string(formerLetter)) + key[1:]
	}
	return ""
}

// Address returns the key of a delivery address.
func (h Hasher) Address(sale id.Sale, p Place) Key {
	return h.key(addressLetter, sale, p.normalised()...)
}

// Payment returns the key of a means of payment, by its digest.
func (h Hasher) Payment(sale id.Sale, digest string) Key {
	if digest == "" {
		return ""
	}
	return h.key(paymentLetter, sale, digest)
}

// Origin returns where an attempt of a sale came from: a network, invalid = unknown, and the id of
// a device, "" = unknown.
func (h Hasher) Origin(sale id.Sale, network netip.Prefix, device string) (o Origin) {
	if network.IsValid() {
		o.Network = h.key(networkLetter, sale, network.String())
	}
	if device != "" {
		o.Device = h.key(deviceLetter, sale, device)
	}
	return o
}

// Payer returns the digest of a means of payment as a provider names it, which is stored until
// the sale of the payment is known; "" for none.
func (h Hasher) Payer(provider, payer string) string {
	if payer == "" || h.secret == nil {
		return ""
	}
	return string(h.key(paymentLetter, id.Sale{}, provider, payer))
}

// key hashes parts, each with its length, so that no two lists are alike.
func (h Hasher) key(letter byte, sale id.Sale, parts ...string) Key {
	if h.secret == nil {
		return ""
	}
	mac := hmac.New(sha256.New, h.secret)
	mac.Write(sale[:])
	mac.Write([]byte{letter})
	for _, part := range parts {
		fmt.Fprintf(mac, "%d:%s", len(part), part)
	}
	return Key(string(letter) + base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:keyBytes]))
}
