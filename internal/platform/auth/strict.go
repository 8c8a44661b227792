package auth

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/golang-jwt/jwt/v5"
)

// maxMembers limits the members of a header or of claims; issued tokens have 3 and 7.
const maxMembers = 16

var errMembers = errors.New("members not distinct")

// strictSegments refuses a token whose header or claims contain a member twice: parsers
// disagree on which one counts (RFC 8725 §2.4, RFC 7519 §4). The token has been parsed,
// so both are well-formed JSON objects.
func strictSegments(token string) error {
	header, rest, _ := strings.Cut(token, ".")
	body, _, _ := strings.Cut(rest, ".")
	for _, segment := range [2]string{header, body} {
		raw, err := base64.RawURLEncoding.DecodeString(segment)
		if err == nil {
			err = distinctMembers(raw)
		}
		if err != nil {
			return fmt.Errorf("%w: %w", jwt.ErrTokenMalformed, err)
		}
	}
	return nil
}

// distinctMembers checks that the members of a well-formed JSON object have distinct
// names, compared case-insensitively like the decoder does. A name with an escape is
// refused, because two spellings may be one name.
func distinctMembers(raw []byte) error {
	var names [maxMembers][]byte
	count, depth := 0, 0
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case '"':
			text, end := jsonString(raw, i)
			i = end
			if depth != 1 || !bytes.HasPrefix(bytes.TrimLeft(raw[end+1:], " \t\r\n"), []byte(":")) {
				continue // a value, or inside one
			}
			if count == maxMembers || bytes.IndexByte(text, '\\') >= 0 {
				return errMembers
			}
			for _, seen := range names[:count] {
				if bytes.EqualFold(seen, text) {
					return errMembers
				}
			}
			names[count] = text
			count++
		}
	}
	return nil
}

// jsonString returns the content of the string that begins at raw[start], and the index
// of its closing quote.
func jsonString(raw []byte, start int) (text []byte, end int) {
	for i := start + 1; i < len(raw); i++ {
		switch raw[i] {
		case '\\':
			i++
		case '"':
			return raw[start+1 : i], i
		}
	}
	return raw[start+1:], len(raw) - 1
}
