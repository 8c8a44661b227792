package auth

import (
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
)

// MinKeyBytes is the minimum length of a signing key: the size of the HS256 hash (RFC
// 7518 §3.2). The JWT library would accept an empty one.
const MinKeyBytes = 32

// ErrUnfitKey reports a signing key that is too short, or has no unique id.
var ErrUnfitKey = errors.New("unfit signing key")

// Key is a secret with the id in the header of tokens (kid).
type Key struct {
	ID     string
	Secret []byte
}

// Keys is the fixed set of secrets of an installation. The first signs, all verify. To
// rotate a key, add the new one in all processes, then move it to the front, and remove
// the old one when its tokens have expired.
type Keys struct {
	keys []Key
}

// NewKeys returns the set of a signing key and, during a rotation, the previous ones. The
// error wraps ErrUnfitKey if a key has fewer than MinKeyBytes, no id, or the id of
// another.
func NewKeys(signing Key, older ...Key) (Keys, error) {
	var set Keys
	for i, k := range append([]Key{signing}, older...) {
		if len(k.Secret) < MinKeyBytes {
			return Keys{}, fmt.Errorf("%w: key %d has %d bytes, at least %d are needed", ErrUnfitKey, i+1, len(k.Secret),
				MinKeyBytes)
		}
		if k.ID == "" || set.byID(k.ID) != nil {
			return Keys{}, fmt.Errorf("%w: key %d has no id of its own", ErrUnfitKey, i+1)
		}
		set.keys = append(set.keys, Key{ID: k.ID, Secret: append([]byte(nil), k.Secret...)})
	}
	return set, nil
}

// Derive returns one 32-byte secret per key for the named use, the signing key's
// first (HKDF-SHA256, RFC 5869), so that no secret serves two purposes.
func (k Keys) Derive(use string) [][]byte {
	out := make([][]byte, len(k.keys))
	for i, secret := range k.keys {
		key, err := hkdf.Key(sha256.New, secret.Secret, nil, "seckill "+use, sha256.Size)
		if err != nil {
			panic(fmt.Sprintf("auth: derive %s: %v", use, err)) // only for lengths beyond 8160 bytes
		}
		out[i] = key
	}
	return out
}

// String hides the secrets.
func (k Keys) String() string { return fmt.Sprintf("%d signing keys", len(k.keys)) }

// GoString hides the secrets.
func (k Keys) GoString() string { return k.String() }

// LogValue hides the secrets.
func (k Keys) LogValue() slog.Value { return slog.StringValue(k.String()) }

func (k Keys) signing() Key { return k.keys[0] }

// byID returns the secret of a key id, nil if there is none.
func (k Keys) byID(kid string) []byte {
	for _, known := range k.keys {
		if known.ID == kid {
			return known.Secret
		}
	}
	return nil
}
