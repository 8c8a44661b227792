package stream

import "time"

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
	Fields     []Field   // the original entry, in its order
}

// Field is one field of an entry, with arbitrary bytes.
type Field struct {
	Name  []byte `json:"n"`
	Value []byte `json:"v"`
}

// Message returns the decoded message of the letter, and whether it could be decoded.
// It needs the fields.
func (l Letter) Message() (*Message, bool) {
	values := make(map[string]any, len(l.Fields))
	for _, f := range l.Fields {
		values[string(f.Name)] = string(f.Value)
	}
	msg, reason := unmarshal(values)
	return msg, reason == ""
}
