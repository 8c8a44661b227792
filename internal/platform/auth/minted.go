package auth

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"seckill/internal/platform/id"
)

// strictBase64 accepts one text for each value.
var strictBase64 = base64.RawURLEncoding.Strict()

// headers returns the encoded header of tokens that Mint signs, for each key.
func (k Keys) headers() ([]string, error) {
	headers := make([]string, len(k.keys))
	for i, key := range k.keys {
		text, err := newToken(key.ID, claims{}).SigningString()
		if err != nil {
			return nil, err
		}
		headers[i], _, _ = strings.Cut(text, ".")
	}
	return headers, nil
}

// parseMinted verifies a token exactly as Mint writes it, in a fifth of the time of parse:
// the header is compared, not decoded, and the claims are read without encoding/json. It
// returns nil for every other token, also for a valid one, which parse decides.
func (t *Tokens) parseMinted(token string) *Principal {
	header, rest, _ := strings.Cut(token, ".")
	body, signature, _ := strings.Cut(rest, ".")
	for i, known := range t.headers {
		if header != known {
			continue
		}
		var mac [sha256.Size]byte
		if len(signature) != strictBase64.EncodedLen(len(mac)) {
			return nil
		}
		if _, err := strictBase64.Decode(mac[:], []byte(signature)); err != nil {
			return nil
		}
		hash := hmac.New(sha256.New, t.cfg.Keys.keys[i].Secret)
		hash.Write([]byte(token[:len(header)+1+len(body)]))
		if !hmac.Equal(hash.Sum(nil), mac[:]) {
			return nil
		}
		raw, err := strictBase64.DecodeString(body)
		if err != nil {
			return nil
		}
		return t.principalOf(raw)
	}
	return nil
}

// principalOf reads the claims of a token whose signature is right, in the order of Mint.
func (t *Tokens) principalOf(raw []byte) *Principal {
	next := func(before, after string) string {
		rest, ok := bytes.CutPrefix(raw, []byte(before))
		value, rest, found := bytes.Cut(rest, []byte(after))
		if raw = rest; !ok || !found {
			raw = nil
			return ""
		}
		return string(value)
	}
	user, err := id.ParseUUID[id.User](next(`{"iss":"`+issuer+`","sub":"`, `"`))
	if err != nil || user.IsZero() {
		return nil
	}
	expires, isExpiry := wholeSeconds(next(`,"aud":["`+audience+`"],"exp":`, `,`))
	issued, isIssue := wholeSeconds(next(`"iat":`, `,`))
	session, err := id.ParseUUID[id.Session](next(`"sid":"`, `"`))
	if !isExpiry || !isIssue || err != nil || session.IsZero() {
		return nil
	}
	role := Role(next(`,"role":"`, `"`))
	if now := t.cfg.Clock.Now(); !role.Valid() || string(raw) != "}" || !now.Before(expires.Add(leeway)) ||
		now.Before(issued.Add(-leeway)) {
		return nil
	}
	return &Principal{UserID: user, SessionID: session, Role: role, ExpiresAt: expires}
}

// wholeSeconds reads a NumericDate without sign, fraction and exponent.
func wholeSeconds(text string) (time.Time, bool) {
	seconds, err := strconv.ParseUint(text, 10, 40)
	return time.Unix(int64(seconds), 0).UTC(), err == nil && text[0] != '0'
}

// newToken returns a token that is not signed yet.
func newToken(kid string, c claims) *jwt.Token {
	token := jwt.NewWithClaims(jwt.SigningMethodHS256, c)
	token.Header["typ"], token.Header["kid"] = tokenType, kid
	return token
}
