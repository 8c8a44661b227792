package auth

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/google/uuid"
)

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
