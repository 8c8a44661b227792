package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
)

// MinKeyBytes is the least length of a signing key: that of the hash of HS256.
const MinKeyBytes = 32

// Key signs access tokens. Its id travels in the token's header.
type Key struct {
	ID     string
	Secret []byte
}

var keyID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,32}$`)

// SigningKeys returns the key that signs and those that are only checked
// against. The id of the current key is a fingerprint of it, so that a new key
// has a new id by itself.
func (c *Config) SigningKeys() (current Key, previous []Key, err error) {
	if len(c.JWTKey) < MinKeyBytes {
		return Key{}, nil, fmt.Errorf("has %d bytes; at least %d are needed", len(c.JWTKey), MinKeyBytes)
	}
	current = Key{ID: fingerprint(c.JWTKey), Secret: []byte(c.JWTKey)}
	seen := map[string]bool{current.ID: true}
	for i, text := range c.JWTPreviousKeys {
		name, secret, found := strings.Cut(string(text), "=")
		switch {
		case !found || !keyID.MatchString(name):
			return Key{}, nil, fmt.Errorf("entry %d of the previous keys is not of the form kid=key", i+1)
		case len(secret) < MinKeyBytes:
			return Key{}, nil, fmt.Errorf("previous key %s has %d bytes; at least %d are needed", name, len(secret), MinKeyBytes)
		case seen[name]:
			return Key{}, nil, fmt.Errorf("previous key %s is there twice", name)
		}
		seen[name] = true
		previous = append(previous, Key{ID: name, Secret: []byte(secret)})
	}
	return current, previous, nil
}

// fingerprint names a key by the start of a hash, which tells nothing of it.
func fingerprint(key Secret) string {
	sum := sha256.Sum256([]byte("seckill key id:" + string(key)))
	return hex.EncodeToString(sum[:4])
}
