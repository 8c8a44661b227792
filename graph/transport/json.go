package transport

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxJSONDepth bounds the nesting of a request: variables nest as deep as the input types
// of the schema, which are far below it.
const maxJSONDepth = 32

// maxJSONValues bounds the objects, lists and values of one request: a value of 2 bytes
// of text takes up to 400 bytes of memory. The largest operation has 100 ids.
const maxJSONValues = 2000

// Errors of the scanner. They never quote the text: a body may contain a password.
var (
	errJSON       = errors.New("not valid JSON")
	errJSONValues = errors.New("too many JSON values")
)

// scanner reads one JSON text (RFC 8259) from left to right. It allocates at most a small
// multiple of the text: strings without escapes share its memory, others get a buffer of
// their length, and the number of values is bounded. Whole numbers become int64, also those
// with a fraction or an exponent, such as 2.0 and 1e3 (GraphQL, §3.5.1). Others become
// json.Number; never float64, which gqlgen refuses as an Int.
type scanner struct {
	text   string
	pos    int
	values int // read so far
}

func (s *scanner) space() {
	for s.pos < len(s.text) {
		switch s.text[s.pos] {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return
		}
	}
}

// peek returns the next byte after white space, 0 at the end.
func (s *scanner) peek() byte {
	s.space()
	if s.pos >= len(s.text) {
		return 0
	}
	return s.text[s.pos]
}

// take consumes c, which must be the next byte after white space.
func (s *scanner) take(c byte) error {
	if s.peek() != c {
		return errJSON
	}
	s.pos++
	return nil
}

// end returns an error unless only white space is left.
func (s *scanner) end() error {
	s.space()
	if s.pos != len(s.text) {
		return errJSON
	}
	return nil
}

func (s *scanner) value(depth int) (any, error) {
	if depth <= 0 {
		return nil, errJSON
	}
	if s.values++; s.values > maxJSONValues {
		return nil, errJSONValues
	}
	switch c := s.peek(); c {
	case '{':
		return s.object(depth)
	case '[':
		return s.array(depth)
	case '"':
		return s.str()
	case 't':
		return true, s.word("true")
	case 'f':
		return false, s.word("false")
	case 'n':
		return nil, s.word("null")
	default:
		return s.number()
	}
}

func (s *scanner) word(w string) error {
	if !strings.HasPrefix(s.text[s.pos:], w) {
		return errJSON
	}
	s.pos += len(w)
	return nil
}

func (s *scanner) object(depth int) (map[string]any, error) {
	m := map[string]any{}
	err := s.members(func(key string) error {
		v, err := s.value(depth - 1)
		m[key] = v
		return err
	})
	return m, err
}

// members reads an object and calls field at each value.
func (s *scanner) members(field func(key string) error) error {
	if err := s.take('{'); err != nil {
		return err
	}
	if s.peek() == '}' {
		s.pos++
		return nil
	}
	for {
		if s.peek() != '"' {
			return errJSON
		}
		key, err := s.str()
		if err != nil {
			return err
		}
		if err := s.take(':'); err != nil {
			return err
		}
		if err := field(key); err != nil {
			return err
		}
		if s.peek() != ',' {
			return s.take('}')
		}
		s.pos++
	}
}

func (s *scanner) array(depth int) ([]any, error) {
	s.pos++ // the bracket
	list := []any{}
	if s.peek() == ']' {
		s.pos++
		return list, nil
	}
	for {
		v, err := s.value(depth - 1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
		if s.peek() != ',' {
			return list, s.take(']')
		}
		s.pos++
	}
}

func (s *scanner) number() (any, error) {
	start := s.pos
	if s.at('-') {
		s.pos++
	}
	if s.at('0') {
		s.pos++
	} else if !s.digits() {
		return nil, errJSON
	}
	whole := true
	if s.at('.') {
		s.pos++
		whole = false
		if !s.digits() {
			return nil, errJSON
		}
	}
	if s.at('e') || s.at('E') {
		s.pos++
		whole = false
		if s.at('+') || s.at('-') {
			s.pos++
		}
		if !s.digits() {
			return nil, errJSON
		}
	}
	text := s.text[start:s.pos]
	if whole {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n, nil
		}
	}
	if !whole {
		if f, err := strconv.ParseFloat(text, 64); err == nil && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
			return int64(f), nil
		}
	}
	return json.Number(text), nil
}

func (s *scanner) at(c byte) bool { return s.pos < len(s.text) && s.text[s.pos] == c }

// digits consumes at least one digit.
func (s *scanner) digits() bool {
	start := s.pos
	for s.pos < len(s.text) && s.text[s.pos] >= '0' && s.text[s.pos] <= '9' {
		s.pos++
	}
	return s.pos > start
}

// str reads a string; the next byte is its quote.
func (s *scanner) str() (string, error) {
	s.pos++
	start := s.pos
	for ; s.pos < len(s.text); s.pos++ {
		switch c := s.text[s.pos]; {
		case c == '"':
			out := s.text[start:s.pos]
			s.pos++
			return out, nil
		case c == '\\':
			return s.escaped(start)
		case c < 0x20:
			return "", errJSON
		}
	}
	return "", errJSON
}

// escaped reads the rest of a string that started at start, from its first escape.
func (s *scanner) escaped(start int) (string, error) {
	end, err := s.closingQuote()
	if err != nil {
		return "", err
	}
	out := make([]byte, 0, end-start) // an escape is never shorter than its character
	out = append(out, s.text[start:s.pos]...)
	for s.pos < end {
		c := s.text[s.pos]
		s.pos++
		if c != '\\' {
			out = append(out, c)
			continue
		}
		r, err := s.escape()
		if err != nil {
			return "", err
		}
		out = utf8.AppendRune(out, r)
	}
	s.pos = end + 1
	return string(out), nil
}

// closingQuote returns the position of the closing quote of the string at pos.
func (s *scanner) closingQuote() (int, error) {
	for i := s.pos; i < len(s.text); i++ {
		switch c := s.text[i]; {
		case c == '"':
			return i, nil
		case c == '\\':
			i++
		case c < 0x20:
			return 0, errJSON
		}
	}
	return 0, errJSON
}

// escape reads an escape after its backslash. An unpaired surrogate becomes U+FFFD, as in
// encoding/json.
func (s *scanner) escape() (rune, error) {
	if s.pos >= len(s.text) {
		return 0, errJSON
	}
	c := s.text[s.pos]
	s.pos++
	switch c {
	case '"', '\\', '/':
		return rune(c), nil
	case 'b':
		return '\b', nil
	case 'f':
		return '\f', nil
	case 'n':
		return '\n', nil
	case 'r':
		return '\r', nil
	case 't':
		return '\t', nil
	case 'u':
		return s.unicode()
	}
	return 0, errJSON
}

func (s *scanner) unicode() (rune, error) {
	r, ok := s.hex4(s.pos)
	if !ok {
		return 0, errJSON
	}
	s.pos += 4
	if !utf16.IsSurrogate(r) {
		return r, nil
	}
	if strings.HasPrefix(s.text[s.pos:], `\u`) {
		if low, ok := s.hex4(s.pos + 2); ok {
			if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
				s.pos += 6
				return pair, nil
			}
		}
	}
	return utf8.RuneError, nil
}

func (s *scanner) hex4(at int) (rune, bool) {
	if at+4 > len(s.text) {
		return 0, false
	}
	n, err := strconv.ParseUint(s.text[at:at+4], 16, 16)
	return rune(n), err == nil
}
