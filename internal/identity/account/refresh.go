package account

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"

	"seckill/internal/platform/auth"
	"seckill/internal/platform/id"
)

// A refresh token is base64url(session | secret | tag).
//
// The first secret of a session is random. Each later one is an HMAC of its predecessor,
// so that repeated requests with one token return the same successor in every process,
// while only hashes are stored: neither the database alone nor the key alone yields a
// token. The tag distinguishes issued tokens from forged ones, so that only an issued
// token can end its session when it is reused late.
const (
	secretBytes  = 32 // 256 bits
	tagBytes     = 16
	refreshBytes = 16 + secretBytes + tagBytes
)

type refreshToken struct {
	session id.Session
	secret  [secretBytes]byte
	text    string // as the client holds it
}

// hash returns the stored form of a token.
func (t refreshToken) hash() []byte {
	sum := sha256.Sum256([]byte(t.text))
	return sum[:]
}

// refresher issues and verifies refresh tokens.
type refresher struct {
	keys [][]byte // the first signs, all verify
}

func newRefresher(keys auth.Keys) refresher { return refresher{keys: keys.Derive("refresh tokens")} }

func (r refresher) first(session id.Session) (refreshToken, error) {
	var secret [secretBytes]byte
	if _, err := rand.Read(secret[:]); err != nil {
		return refreshToken{}, fmt.Errorf("refresh token: %w", err)
	}
	return r.make(r.keys[0], session, secret), nil
}

// successors returns the possible successors of a token for the given generation: one per
// key, that of the present key first. During a key rotation, processes may differ in
// which key comes first.
func (r refresher) successors(t refreshToken, generation int64) []refreshToken {
	next := make([]refreshToken, len(r.keys))
	for i, key := range r.keys {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(generation)) //nolint:gosec // bits, not a number
		secret := mac(key, "next", t.session[:], n[:], t.secret[:])
		next[i] = r.make(key, t.session, [secretBytes]byte(secret))
	}
	return next
}

// open parses and verifies a token; it returns false if no key matches.
func (r refresher) open(text string) (refreshToken, bool) {
	if base64.RawURLEncoding.DecodedLen(len(text)) != refreshBytes {
		return refreshToken{}, false
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(raw) != refreshBytes {
		return refreshToken{}, false
	}
	t := refreshToken{session: id.Session(raw[:16]), secret: [secretBytes]byte(raw[16 : 16+secretBytes]), text: text}
	for _, key := range r.keys {
		if hmac.Equal(raw[16+secretBytes:], tag(key, t)) {
			return t, true
		}
	}
	return refreshToken{}, false
}

func (r refresher) make(key []byte, session id.Session, secret [secretBytes]byte) refreshToken {
	t := refreshToken{session: session, secret: secret}
	raw := make([]byte, 0, refreshBytes)
	raw = append(raw, session[:]...)
	raw = append(raw, secret[:]...)
	raw = append(raw, tag(key, t)...)
	t.text = base64.RawURLEncoding.EncodeToString(raw)
	return t
}

func tag(key []byte, t refreshToken) []byte {
	return mac(key, "tag", t.session[:], t.secret[:])[:tagBytes]
}

// mac is HMAC-SHA256 over parts of fixed length, with a separate use per purpose.
func mac(key []byte, use string, parts ...[]byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(use))
	h.Write([]byte{0})
	for _, part := range parts {
		h.Write(part)
	}
	return h.Sum(nil)
}
