package access

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

const (
	// MaxBatches bounds the batches of codes of a sale.
	MaxBatches = 100
	// MaxCodes bounds the codes of a batch.
	MaxCodes = 100_000
	// MaxUses bounds the units that can be bought with a code.
	MaxUses = 1_000_000
	// MaxRevoked bounds the codes of a batch that are revoked one by one.
	MaxRevoked = 1000

	// numberBits are those of a code in its batch, macBytes those of its signature: with the 7 bits of a
	// batch a code has 105 bits, 21 characters.
	numberBits = 18
	macBytes   = 10
	headChars  = 5
	codeChars  = 21
	groupChars = 7
)

// alphabet is Crockford's base32: digits and letters without I, L, O and U.
const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

var encoding = base32.NewEncoding(alphabet).WithPadding(base32.NoPadding)

// Batch is a batch of codes of a sale. The codes follow from it and from a signing key.
type Batch struct {
	Number  int       `json:"number"` // in its sale, from 1
	Source  string    `json:"source"` // by which rules refer to its codes
	Codes   int       `json:"codes"`
	Uses    int       `json:"uses"` // units that can be bought with each code
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires,omitzero"` // until when its codes can be redeemed; zero = no limit
	Key     string    `json:"key"`              // name of the signing key
	Revoked bool      `json:"revoked,omitempty"`
	// RevokedCodes are the numbers of codes that were revoked one by one, sorted.
	RevokedCodes []int `json:"revokedCodes,omitempty"`
}

// Batches are the batches of a sale, by number from 1.
type Batches []Batch

// Find returns a batch by its number; nil = there is none.
func (b Batches) Find(number int) *Batch {
	if number < 1 || number > len(b) {
		return nil
	}
	return &b[number-1]
}

// JSON returns the stored form; "" without batches.
func (b Batches) JSON() string {
	if len(b) == 0 {
		return ""
	}
	text, err := json.Marshal(b)
	if err != nil {
		panic(err) // texts, numbers and times
	}
	return string(text)
}

// ParseBatches reads the stored form. Batches that it cannot read give no access.
func ParseBatches(text string) Batches {
	if text == "" {
		return nil
	}
	var b Batches
	if err := json.Unmarshal([]byte(text), &b); err != nil {
		return nil
	}
	return b
}

// Code names a code of a sale; zero = none. It is no secret.
type Code struct{ Batch, Number int }

// Index returns the number of the code among all of its sale.
func (c Code) Index() uint32 { return uint32(c.Batch<<numberBits | c.Number - 1) } // 25 bits

// CodeAt returns the code of an Index.
func CodeAt(index uint32) Code {
	return Code{Batch: int(index >> numberBits), Number: int(index&(1<<numberBits-1)) + 1}
}

// Valid returns the batch of a code that was made and is not revoked, else nil.
func (b Batches) Valid(c Code) *Batch {
	batch := b.Find(c.Batch)
	if batch == nil || batch.Revokes(c.Number) {
		return nil
	}
	return batch
}

// Revokes reports whether a code of the batch is revoked.
func (b *Batch) Revokes(number int) bool {
	_, one := slices.BinarySearch(b.RevokedCodes, number)
	return b.Revoked || one
}

// Revoke revokes a code, or for 0 the batch.
func (b *Batch) Revoke(number int) {
	if number == 0 {
		b.Revoked = true
	} else if at, there := slices.BinarySearch(b.RevokedCodes, number); !there {
		b.RevokedCodes = slices.Insert(slices.Clone(b.RevokedCodes), at, number)
	}
}

// Codes makes and checks codes. A code is the number of its batch, its number there, and the first 80 bits
// of the HMAC-SHA-256 of both and the sale: a guess is right with probability 2^-80.
type Codes struct {
	secrets map[string][]byte // by name
	current string
}

// NewCodes returns the Codes of the secrets that auth.Keys derives. The first is that of new batches;
// those of a batch whose key an installation has removed are not valid any more.
func NewCodes(secrets [][]byte) Codes {
	c := Codes{secrets: make(map[string][]byte, len(secrets))}
	for _, secret := range slices.Backward(secrets) {
		sum := sha256.Sum256(append([]byte("name of "), secret...))
		c.current = hex.EncodeToString(sum[:4])
		c.secrets[c.current] = secret
	}
	return c
}

// Key returns the name of the key that signs new batches.
func (c Codes) Key() string { return c.current }

// Knows reports whether the key of a batch is there.
func (c Codes) Knows(b *Batch) bool { return c.secrets[b.Key] != nil }

// Text returns a code of a batch of a sale, in groups; "" without the key of the batch.
func (c Codes) Text(sale id.Sale, b *Batch, number int) string {
	if !c.Knows(b) {
		return ""
	}
	code := Code{Batch: b.Number, Number: number}
	var text strings.Builder
	for shift := (headChars - 1) * 5; shift >= 0; shift -= 5 {
		text.WriteByte(alphabet[code.Index()>>shift&31])
	}
	text.WriteString(encoding.EncodeToString(c.sign(sale, b.Key, code)))
	plain := text.String()
	return strings.Join([]string{plain[:groupChars], plain[groupChars : 2*groupChars], plain[2*groupChars:]}, "-")
}

func (c Codes) sign(sale id.Sale, key string, code Code) []byte {
	h := hmac.New(sha256.New, c.secrets[key])
	h.Write(sale[:])
	h.Write(binary.BigEndian.AppendUint32(nil, code.Index()))
	return h.Sum(nil)[:macBytes]
}

// Check returns the code that a buyer typed, of a sale with batches. It reads nothing. Refusals:
// CODE_INVALID, CODE_REVOKED, CODE_EXPIRED.
func (c Codes) Check(sale id.Sale, batches Batches, typed string, now time.Time) (Code, error) {
	code, mac, ok := parseCode(typed)
	batch := batches.Find(code.Batch)
	switch {
	case !ok || batch == nil || code.Number > batch.Codes || !c.Knows(batch),
		!hmac.Equal(mac, c.sign(sale, batch.Key, code)):
		return Code{}, refusedCode(fault.CodeInvalid)
	case batch.Revokes(code.Number):
		return Code{}, refusedCode(fault.CodeRevoked)
	case !batch.Expires.IsZero() && !now.Before(batch.Expires):
		return Code{}, refusedCode(fault.CodeExpired)
	}
	return code, nil
}

func refusedCode(why fault.Reason) error { return fault.Refused{Why: why, At: []string{"code"}} }

// similar are the characters that stand for a similar one of the alphabet, and those that count for
// nothing.
var similar = strings.NewReplacer("O", "0", "I", "1", "L", "1", "-", "", " ", "")

// parseCode reads a code as people type it.
func parseCode(typed string) (code Code, mac []byte, ok bool) {
	text := similar.Replace(strings.ToUpper(strings.TrimSpace(typed)))
	if len(text) != codeChars {
		return Code{}, nil, false
	}
	var index uint32
	for i := range headChars {
		digit := strings.IndexByte(alphabet, text[i])
		if digit < 0 {
			return Code{}, nil, false
		}
		index = index<<5 | uint32(digit) // below 32
	}
	mac, err := encoding.DecodeString(text[headChars:])
	return CodeAt(index), mac, err == nil
}
