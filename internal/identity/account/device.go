package account

import (
	"crypto/hmac"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"time"

	"seckill/internal/platform/auth"
)

// A device token proves that a device signed in to an account before (OWASP, "Slow Down
// Online Guessing Attacks with Device Cookies"). It only gives the device its own failure
// counter and access to the whole hash queue, so that failures of other clients do not
// lock the device out. It is base64url(nonce | issued | tag); the tag binds it to the
// account.
const (
	deviceNonceBytes = 16
	deviceBytes      = deviceNonceBytes + 8 + tagBytes
	// DeviceLife is how long a device token stays valid after the last sign-in.
	DeviceLife = 180 * 24 * time.Hour
)

// devices issues and verifies device tokens.
type devices struct {
	keys [][]byte // the first signs, all verify
}

func newDevices(keys auth.Keys) devices { return devices{keys: keys.Derive("device tokens")} }

// DeviceID returns the id that a device token has, "" for a text that is none. It proves nothing:
// the token may be of any account, expired or invented.
func DeviceID(token string) string {
	if raw := rawToken(token); raw != nil {
		return hex.EncodeToString(raw[:deviceNonceBytes])
	}
	return ""
}

// rawToken decodes a device token; nil for a text that is none.
func rawToken(token string) []byte {
	if base64.RawURLEncoding.DecodedLen(len(token)) != deviceBytes {
		return nil
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(raw) != deviceBytes {
		return nil
	}
	return raw
}

// issue returns a token for the account. A browser keeps the id of the token that it sent, of
// whatever account, so that operators see which accounts share a browser; another one gets a random
// id.
func (d devices) issue(sent, account string, now time.Time) (string, error) {
	raw := make([]byte, deviceNonceBytes, deviceBytes)
	if _, err := rand.Read(raw); err != nil {
		return "", fmt.Errorf("device token: %w", err)
	}
	if known := rawToken(sent); known != nil {
		copy(raw, known[:deviceNonceBytes])
	}
	raw = binary.BigEndian.AppendUint64(raw, uint64(now.Unix())) // the time is after 1970
	raw = append(raw, d.tag(d.keys[0], raw, account)...)
	return base64.RawURLEncoding.EncodeToString(raw), nil
}

// open returns the id of the device; "" if the token is expired, invalid, or for another
// account.
func (d devices) open(token, account string, now time.Time) string {
	raw := rawToken(token)
	if raw == nil {
		return ""
	}
	body, sent := raw[:deviceBytes-tagBytes], raw[deviceBytes-tagBytes:]
	issued := time.Unix(int64(binary.BigEndian.Uint64(body[deviceNonceBytes:])), 0) // checked by the tag
	for _, key := range d.keys {
		if hmac.Equal(sent, d.tag(key, body, account)) && now.Before(issued.Add(DeviceLife)) {
			return hex.EncodeToString(body[:deviceNonceBytes])
		}
	}
	return ""
}

func (devices) tag(key, body []byte, account string) []byte {
	return mac(key, "device", body, []byte(account))[:tagBytes]
}
