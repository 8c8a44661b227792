package notifier

import (
	"encoding/json"
	"strconv"
)

// Entries are encoded by hand, and values in the form of this product's records are
// copied without a check by encoding/json, which parses and rewrites each value: two
// entries of every order of a sale pass here.

// encode returns the payloads of the messages that carry entries: JSON arrays.
func encode(entries []StatusEntry) [][]byte {
	var payloads [][]byte
	var array, one []byte
	n := 0
	flush := func() {
		if n > 0 {
			payloads = append(payloads, append(array, ']'))
		}
		array, n = nil, 0
	}
	for i, e := range entries {
		var ok bool
		if one, ok = appendEntry(one[:0], e); !ok {
			continue
		}
		if n == maxEntries || len(array)+len(one)+2 > maxEncoded {
			flush()
		}
		if n == 0 {
			array = append(make([]byte, 0, sizeOf(entries[i:])), '[')
		} else {
			array = append(array, ',')
		}
		array = append(array, one...)
		n++
	}
	flush()
	return payloads
}

// entrySize is the approximate size of an entry without its key and value.
const entrySize = 64

// sizeOf estimates the size of the first message.
func sizeOf(entries []StatusEntry) int {
	size := 0
	for _, e := range entries[:min(len(entries), maxEntries)] {
		size += entrySize + len(e.Key) + len(e.Value)
	}
	return min(size, maxEncoded+2)
}

// appendEntry appends the JSON of an entry and reports whether it can be sent. It
// leaves out a value that is invalid JSON or too large, so that the change itself is
// not lost.
func appendEntry(dst []byte, e StatusEntry) ([]byte, bool) {
	if !e.valid() {
		return dst, false
	}
	key, ok := appendText(append(dst, `{"key":`...), e.Key)
	if !ok {
		return dst, false
	}
	dst = strconv.AppendInt(append(key, `,"revision":`...), e.Revision, 10)
	if e.Terminal {
		dst = append(dst, `,"terminal":true`...)
	}
	if len(e.Value) > 0 && len(e.Value) <= maxValue && (isRecord(e.Value) || json.Valid(e.Value)) {
		dst = append(append(dst, `,"value":`...), e.Value...)
	}
	if e.Trace != "" {
		dst = append(append(append(dst, `,"trace":"`...), e.Trace...), '"')
	}
	dst = append(dst, '}')
	return dst, len(dst) <= maxEncoded/2
}

func appendText(dst []byte, text string) ([]byte, bool) {
	if textEnd(text) == len(text) {
		return append(append(append(dst, '"'), text...), '"'), true
	}
	quoted, err := json.Marshal(text)
	return append(dst, quoted...), err == nil
}

// isRecord reports whether a text is a JSON object of plain strings and integers,
// without spaces. Other texts may still be valid JSON.
func isRecord(text []byte) bool {
	for next := byte('{'); len(text) > 0 && text[0] == next; next = ',' {
		if text = afterText(text[1:]); len(text) < 2 || text[0] != ':' {
			return false
		}
		if text = text[1:]; text[0] == '"' {
			text = afterText(text)
		} else {
			text = afterNumber(text)
		}
		if len(text) == 1 && text[0] == '}' {
			return true
		}
	}
	return false
}

// afterText returns the rest after a plain JSON string; nil if there is none.
func afterText(text []byte) []byte {
	if len(text) == 0 || text[0] != '"' {
		return nil
	}
	end := textEnd(text[1:]) + 1
	if end == len(text) || text[end] != '"' {
		return nil
	}
	return text[end+1:]
}

// textEnd returns the index of the first byte that needs escaping in JSON.
func textEnd[T string | []byte](text T) int {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return i
		}
	}
	return len(text)
}

// afterNumber returns the rest after an integer; nil if there is none.
func afterNumber(text []byte) []byte {
	digits := 0
	for digits < len(text) && text[digits] >= '0' && text[digits] <= '9' {
		digits++
	}
	if digits == 0 || text[0] == '0' && digits > 1 {
		return nil
	}
	return text[digits:]
}
