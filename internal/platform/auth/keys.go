package auth

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"

	"github.com/google/uuid"
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

// ErrSealed reports a secret that no key opens.
var ErrSealed = errors.New("no signing key opens the secret: the key that sealed it was removed")

// Sealer seals secrets for storage with keys derived from the signing keys, so that a copy
// of the database has no usable secrets (AES-256-GCM; the id of the owner is
// authenticated).
type Sealer struct {
	keys [][]byte // the first seals, all open
}

// NewSealer returns a Sealer for the named use.
func NewSealer(keys Keys, use string) Sealer { return Sealer{keys: keys.Derive(use)} }

// Seal returns the secret of an owner in the form to store.
func (s Sealer) Seal(owner uuid.UUID, secret []byte) ([]byte, error) {
	box, err := aead(s.keys[0])
	if err != nil {
		return nil, err
	}
	nonce := make([]byte, box.NonceSize())
	if _, err := rand.Read(nonce); err != nil {
		return nil, fmt.Errorf("seal secret: %w", err)
	}
	return box.Seal(nonce, nonce, secret, owner[:]), nil
}

// Open returns the secret. old reports that another key than the first opened it: seal it
// again before that key is removed. The error is ErrSealed when no key opens it.
func (s Sealer) Open(owner uuid.UUID, sealed []byte) (secret []byte, old bool, err error) {
	for i, key := range s.keys {
		box, err := aead(key)
		if err != nil {
			return nil, false, err
		}
		if len(sealed) < box.NonceSize() {
			break
		}
		secret, err := box.Open(nil, sealed[:box.NonceSize()], sealed[box.NonceSize():], owner[:])
		if err == nil {
			return secret, i > 0, nil
		}
	}
	return nil, false, ErrSealed
}

func aead(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("key of sealed secrets: %w", err)
	}
	return cipher.NewGCM(block)
}
