package auth

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/golang-jwt/jwt/v5"
)

// strictSegments refuses a token whose header or claims name a member twice:
// parsers disagree on which of the two counts (RFC 8725 §2.4, RFC 7519 §4).
func strictSegments(token string) error {
	parts := strings.SplitN(token, ".", 3)
	for _, part := range parts[:2] {
		raw, err := base64.RawURLEncoding.DecodeString(part)
		if err != nil {
			return fmt.Errorf("%w: %w", jwt.ErrTokenMalformed, err)
		}
		if err := flatAndUnique(raw); err != nil {
			return fmt.Errorf("%w: %w", jwt.ErrTokenMalformed, err)
		}
	}
	return nil
}

// flatAndUnique checks that raw is one JSON object whose top-level members have
// distinct names, compared as our decoder does: without regard to case.
func flatAndUnique(raw []byte) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if first, err := dec.Token(); err != nil || first != json.Delim('{') {
		return fmt.Errorf("not an object: %w", err)
	}
	seen := make(map[string]bool, 8)
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return err
		}
		key := strings.ToLower(fmt.Sprint(name))
		if seen[key] {
			return fmt.Errorf("member %q twice", key)
		}
		seen[key] = true
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return err
		}
	}
	return nil
}
