// Package scalar encodes and decodes the API's own scalars.
package scalar

import (
	"errors"
	"io"
	"time"

	"github.com/99designs/gqlgen/graphql"
)

// layout is RFC 3339 in UTC with milliseconds.
const layout = "2006-01-02T15:04:05.000Z"

// MarshalDateTime writes an instant as RFC 3339 in UTC with milliseconds.
func MarshalDateTime(t time.Time) graphql.Marshaler {
	return graphql.WriterFunc(func(w io.Writer) {
		buf := make([]byte, 0, len(layout)+2)
		buf = append(buf, '"')
		buf = t.UTC().AppendFormat(buf, layout)
		buf = append(buf, '"')
		_, _ = w.Write(buf) // the writer is a buffer of the executor
	})
}

// UnmarshalDateTime reads an RFC 3339 instant of any zone.
func UnmarshalDateTime(v any) (time.Time, error) {
	s, ok := v.(string)
	if !ok {
		return time.Time{}, errors.New("DateTime must be a string")
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return time.Time{}, errors.New("DateTime must be RFC 3339, for example 2026-11-20T12:00:00.000Z")
	}
	return t.UTC(), nil
}

// Good reports which strings are valid values of the API's own scalars. Scalars without
// an entry accept any string here; amounts and currencies are validated by their domains,
// which report details.
func Good() map[string]func(text string) bool {
	return map[string]func(string) bool{"DateTime": func(text string) bool {
		_, err := UnmarshalDateTime(text)
		return err == nil
	}}
}
