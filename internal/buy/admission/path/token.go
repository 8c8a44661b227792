package path

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"time"

	"seckill/internal/buy/reservation"
	"seckill/internal/identity/person"
	"seckill/internal/platform/id"
)

const (
	// macBytes gives a token a MAC of 128 bits: it cannot be guessed within its lifetime.
	macBytes = 16
	// timeBytes holds Unix milliseconds.
	timeBytes = 8
	// maxEpochBytes is the longest varint.
	maxEpochBytes = binary.MaxVarintLen64
)

// Tokens makes and verifies path tokens: base64url of the expiry in Unix milliseconds,
// the epoch as a varint, the person keys of the buyer, if there are any, as text, and a MAC
// (HMAC-SHA256, truncated) over user, item, epoch, expiry and person keys. With the keys in it, an
// attempt needs no read of the buyer's contact and address. It is safe for concurrent use.
type Tokens struct{ secrets [][]byte }

// NewTokens returns the tokens of some secrets. The first one signs; tokens of the
// others are valid, too.
func NewTokens(secrets [][]byte) Tokens { return Tokens{secrets} }

// Token returns the path token of a user's permit of an item.
func (t Tokens) Token(user id.User, item id.Item, p reservation.Permit) string {
	persons := p.Persons.String()
	raw := make([]byte, 0, timeBytes+maxEpochBytes+len(persons)+macBytes)
	raw = binary.BigEndian.AppendUint64(raw, uint64(p.Until.UnixMilli()))
	raw = append(binary.AppendVarint(raw, p.Epoch), persons...)
	return base64.RawURLEncoding.EncodeToString(append(raw, mac(t.secrets[0], user, item, p)...))
}

// Permit returns what a token proves for a user and an item: the zero Permit, which the
// gate refuses, unless it was made for both. Only the gate knows whether the permit is
// unused.
func (t Tokens) Permit(user id.User, item id.Item, token string) reservation.Permit {
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || len(raw) < timeBytes {
		return reservation.Permit{}
	}
	epoch, size := binary.Varint(raw[timeBytes:])
	if size <= 0 || len(raw) < timeBytes+size+macBytes {
		return reservation.Permit{}
	}
	rest := raw[timeBytes+size:]
	persons, err := person.Parse(string(rest[:len(rest)-macBytes]))
	if err != nil {
		return reservation.Permit{}
	}
	until := time.UnixMilli(int64(binary.BigEndian.Uint64(raw))).UTC()
	p := reservation.Permit{Epoch: epoch, Until: until, Persons: persons}
	for _, secret := range t.secrets {
		if hmac.Equal(rest[len(rest)-macBytes:], mac(secret, user, item, p)) {
			return p
		}
	}
	return reservation.Permit{}
}

func mac(secret []byte, user id.User, item id.Item, p reservation.Permit) []byte {
	var text [16 + 16 + 8 + 8]byte
	copy(text[:], user[:])
	copy(text[16:], item[:])
	binary.BigEndian.PutUint64(text[32:], uint64(p.Epoch))
	binary.BigEndian.PutUint64(text[40:], uint64(p.Until.UnixMilli()))
	h := hmac.New(sha256.New, secret)
	h.Write(text[:])
	h.Write([]byte(p.Persons.String()))
	return h.Sum(nil)[:macBytes]
}
