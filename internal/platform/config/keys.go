package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
)

// MinKeyBytes is the minimum length of a signing key: the size of the HS256 hash.
const MinKeyBytes = 32

// Key signs access tokens. Its id is in the token's header.
type Key struct {
	ID     string
	Secret []byte
}

var keyID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,32}$`)

// SigningKeys returns the key that signs and those that only verify. The id of the
// current key is a fingerprint of it, so that a new key always has a new id.
func (c *Config) SigningKeys() (current Key, previous []Key, err error) {
	if err := c.fitKey(); err != nil {
		return Key{}, nil, err
	}
	previous, err = c.previousKeys()
	if err != nil {
		return Key{}, nil, fmt.Errorf("previous keys: %w", err)
	}
	return Key{ID: fingerprint(c.JWTKey), Secret: []byte(c.JWTKey)}, previous, nil
}

// fitKey refuses a signing key that is too short.
func (c *Config) fitKey() error {
	if len(c.JWTKey) < MinKeyBytes {
		return fmt.Errorf("has %d bytes; at least %d are needed: make one with `openssl rand -base64 48`", len(c.JWTKey),
			MinKeyBytes)
	}
	return nil
}

func (c *Config) previousKeys() ([]Key, error) {
	var previous []Key
	seen := map[string]bool{fingerprint(c.JWTKey): true}
	for i, text := range c.JWTPreviousKeys {
		name, secret, found := strings.Cut(string(text), "=")
		switch {
		case !found || !keyID.MatchString(name):
			return nil, fmt.Errorf("entry %d is not of the form kid=key: put the key's id and = before it, as `seckill config print` shows it", i+1)
		case len(secret) < MinKeyBytes:
			return nil, fmt.Errorf("key %s has %d bytes, at least %d are needed: give it whole, or leave it out", name,
				len(secret), MinKeyBytes)
		case seen[name]:
			return nil, fmt.Errorf("key %s is there twice, or is that of SECKILL_JWT_KEY: leave one out", name)
		}
		seen[name] = true
		previous = append(previous, Key{ID: name, Secret: []byte(secret)})
	}
	return previous, nil
}

// fingerprint returns a prefix of the key's hash, which does not reveal the key.
func fingerprint(key Secret) string {
	sum := sha256.Sum256([]byte("seckill key id:" + string(key)))
	return hex.EncodeToString(sum[:4])
}
