package stream

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"seckill/internal/redisconn"
)

// Letter is a dead letter: a stream entry that could not be handled.
type Letter struct {
	ID         string    // of the letter
	At         time.Time // when it became a dead letter
	Stream     string    // key of its original stream
	Entry      string    // its id in that stream
	MessageID  string    // "" when it could not be decoded
	Handler    string    // the handler that gave it up
	Reason     string    // at most 300 bytes
	Deliveries int       // number of deliveries to consumers
	Attempts   int       // attempts of the last consumer
	Unreadable bool      // the letter itself is damaged: it has no fields
	Fields     []Field   // the original entry, in its order; only from Inspect
}

// Field is one field of an entry, with arbitrary bytes.
type Field struct {
	Name  []byte `json:"n"`
	Value []byte `json:"v"`
}

// Names of the fields of a letter.
const (
	letterStream     = "stream"
	letterEntry      = "entry"
	letterMessage    = "message"
	letterHandler    = "handler"
	letterReason     = "reason"
	letterDeliveries = "deliveries"
	letterAttempts   = "attempts"
	letterFields     = "fields" // JSON: a single value, because a script cannot pass thousands
)

// args returns the letter as field, value, field, value….
func (l Letter) args() ([]any, error) {
	fields, err := json.Marshal(l.Fields)
	if err != nil {
		return nil, err
	}
	return []any{
		letterStream, l.Stream, letterEntry, l.Entry, letterMessage, l.MessageID,
		letterHandler, l.Handler, letterReason, l.Reason,
		letterDeliveries, l.Deliveries, letterAttempts, l.Attempts, letterFields, fields,
	}, nil
}

// readLetter is the inverse of args.
func readLetter(id string, values map[string]any) (Letter, error) {
	text := func(name string) string { s, _ := values[name].(string); return s }
	number := func(name string) int { n, _ := strconv.Atoi(text(name)); return n }
	l := Letter{
		ID: id, Stream: text(letterStream), Entry: text(letterEntry), MessageID: text(letterMessage),
		Handler: text(letterHandler), Reason: text(letterReason),
		Deliveries: number(letterDeliveries), Attempts: number(letterAttempts),
	}
	if ms, _, err := redisconn.ParseEntryID(id); err == nil {
		l.At = time.UnixMilli(int64(ms)).UTC() //nolint:gosec // a time, far below the border
	}
	if err := json.Unmarshal([]byte(text(letterFields)), &l.Fields); err != nil {
		return l, fmt.Errorf("dead letter %s: %w", id, err)
	}
	return l, nil
}

// Message returns the decoded message of the letter, and whether it could be decoded.
// It needs a letter from Inspect.
func (l Letter) Message() (*Message, bool) {
	values := make(map[string]any, len(l.Fields))
	for _, f := range l.Fields {
		values[string(f.Name)] = string(f.Value)
	}
	msg, reason := unmarshal(values)
	return msg, reason == ""
}
