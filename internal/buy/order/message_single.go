package order

import (
	"encoding/json"
	"fmt"
	"strconv"

	"seckill/internal/platform/stream"
)

// In release 0.1, each order had a message of its own: Requested as JSON, with the epoch
// of the gate and the time of the reservation in these fields of the entry. Messages of
// that form are read for one minor release.
const (
	MetaEpoch = "epoch"
	MetaAt    = "at" // Unix milliseconds
)

// decodeSingle decodes a message of the former form.
func decodeSingle(msg *stream.Message) ([]Requested, error) {
	var r Requested
	if err := json.Unmarshal(msg.Payload, &r); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	for _, field := range []struct {
		name string
		into *int64
	}{{MetaEpoch, &r.Epoch}, {MetaAt, &r.SubmittedAtMs}} {
		text := msg.Metadata.Get(field.name)
		if text == "" {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%w: metadata %s is no number", ErrMalformed, field.name)
		}
		*field.into = n
	}
	if err := r.validate(); err != nil {
		return nil, err
	}
	if msg.UUID != "" && msg.UUID != r.Task.String() {
		return nil, fmt.Errorf("%w: message id is not the task's", ErrMalformed)
	}
	return []Requested{r}, nil
}
