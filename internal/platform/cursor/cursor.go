// Package cursor reads and writes the cursors of pages. It owns the format of a position
// in a list that is sorted by time; lists that are sorted by id use the public id of a row, which it does not own.
package cursor

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"seckill/internal/platform/fault"
)

// Position is a place in a list sorted by (time, id): the row with these.
type Position struct {
	At time.Time
	ID uuid.UUID
}

// Compare orders positions by time and id.
func (p Position) Compare(q Position) int {
	if c := p.At.Compare(q.At); c != 0 {
		return c
	}
	return bytes.Compare(p.ID[:], q.ID[:])
}

const (
	timeFormat   = "20060102150405.000000000"
	textLength   = len(timeFormat) + 36
	binaryLength = 8 + 16
)

var errFormat = errors.New("malformed cursor")

// String returns the opaque form: base64 of the time to the nanosecond and the id.
func (p Position) String() string {
	return base64.RawURLEncoding.EncodeToString([]byte(p.At.UTC().Format(timeFormat) + p.ID.String()))
}

// ParsePosition is the inverse of String. It also reads the cursors of orders of
// earlier releases: microseconds and id in binary.
func ParsePosition(text string) (*Position, error) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil, errFormat
	}
	switch len(raw) {
	case binaryLength:
		micros := int64(binary.BigEndian.Uint64(raw))
		return &Position{At: time.UnixMicro(micros).UTC(), ID: uuid.UUID(raw[8:])}, nil
	case textLength:
		at, err := time.Parse(timeFormat, string(raw[:len(timeFormat)]))
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errFormat, err)
		}
		u, err := uuid.ParseBytes(raw[len(timeFormat):])
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errFormat, err)
		}
		return &Position{At: at, ID: u}, nil
	default:
		return nil, errFormat
	}
}

// Parse parses a cursor that a client gave; nil is the zero value, which selects the whole
// list. Other errors than a fault BAD_USER_INPUT do not occur.
func Parse[C any](text *string, parse func(text string) (C, error)) (c C, err error) {
	if text == nil {
		return c, nil
	}
	if c, err = parse(*text); err != nil {
		return c, fault.Wrap(fault.BadInput, "Invalid cursor.", err)
	}
	return c, nil
}
