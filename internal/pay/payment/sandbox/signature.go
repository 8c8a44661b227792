package sandbox

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"seckill/internal/pay/payment"
)

// SignatureHeader is the header with the signature of a call-back: t=<Unix
// seconds>,v1=<hex of HMAC-SHA256 over "<t>.<body>">.
const SignatureHeader = "Sandbox-Signature"

const (
	// tolerance is the maximum difference between the time of a call-back and now, in
	// both directions.
	tolerance = 5 * time.Minute
	// minKey is the minimum length of a key in bytes.
	minKey = 16
	// maxKeys is the number of valid keys: the current one, and the previous or next
	// one.
	maxKeys = 2
)

// Signer signs and verifies call-backs. It signs with the first key and accepts all its
// keys, so that keys can be rotated without losing a call-back.
type Signer struct {
	keys [][]byte
}

// NewSigner returns a signer with one or two keys of at least 16 bytes.
func NewSigner(keys ...[]byte) (*Signer, error) {
	if len(keys) == 0 || len(keys) > maxKeys {
		return nil, fmt.Errorf("sandbox: %d keys, want 1 or %d", len(keys), maxKeys)
	}
	for i, key := range keys {
		if len(key) < minKey {
			return nil, fmt.Errorf("sandbox: key %d has %d bytes, want at least %d", i+1, len(key), minKey)
		}
	}
	return &Signer{keys: keys}, nil
}

// Sign returns the header value for a body at a time.
func (s *Signer) Sign(body []byte, at time.Time) string {
	t := strconv.FormatInt(at.Unix(), 10)
	return "t=" + t + ",v1=" + hex.EncodeToString(mac(s.keys[0], t, body))
}

// Verify checks a header value. Its errors wrap payment.ErrForged.
func (s *Signer) Verify(header string, body []byte, now time.Time) error {
	if err := s.verify(header, body, now); err != nil {
		return fmt.Errorf("%w: %w", payment.ErrForged, err)
	}
	return nil
}

func (s *Signer) verify(header string, body []byte, now time.Time) error {
	stamp, sum, ok := strings.Cut(header, ",")
	t, isTime := strings.CutPrefix(stamp, "t=")
	v1, isSum := strings.CutPrefix(sum, "v1=")
	if !ok || !isTime || !isSum || len(header) > 128 {
		return errors.New("signature is malformed")
	}
	seconds, err := strconv.ParseInt(t, 10, 64)
	if err != nil || strconv.FormatInt(seconds, 10) != t {
		return errors.New("time is malformed")
	}
	if age := now.Sub(time.Unix(seconds, 0)); age > tolerance || age < -tolerance {
		return errors.New("too old, or from the future")
	}
	got, err := hex.DecodeString(v1)
	if err != nil {
		return errors.New("signature is no hex")
	}
	good := false
	for _, key := range s.keys {
		good = hmac.Equal(got, mac(key, t, body)) || good
	}
	if !good {
		return errors.New("signature does not match")
	}
	return nil
}

func mac(key []byte, t string, body []byte) []byte {
	m := hmac.New(sha256.New, key)
	m.Write([]byte(t + "."))
	m.Write(body)
	return m.Sum(nil)
}
