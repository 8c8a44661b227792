package stream

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ThreeDotsLabs/watermill-redisstream/pkg/redisstream"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/redis/go-redis/v9"

	"seckill/internal/platform/fault"
	"seckill/internal/platform/redisconn"
)

// Message is watermill's message, under a name that other packages can use without
// importing watermill.
type Message = message.Message

// NewMessage returns a message with an id and a payload.
func NewMessage(id string, payload []byte) *Message { return message.NewMessage(id, payload) }

// Fields of an entry in watermill-redisstream's wire format. A script that appends
// messages without metadata needs only the first two, as Entry does.
const (
	FieldID       = redisstream.UUIDHeaderKey
	FieldPayload  = "payload"
	fieldMetadata = "metadata"
)

// Metadata that the subscriber adds. It is never encoded.
const (
	reserved       = "_stream_"
	metaEntry      = reserved + "entry"
	metaDeliveries = reserved + "deliveries"
	metaAttempt    = reserved + "attempt"
	metaFailures   = reserved + "failures"
	metaMalformed  = reserved + "malformed"
)

// Bounds of an entry that is decoded as a message.
const (
	MaxPayload  = 1 << 20  // bytes; an order is about 120
	maxIDLength = 128      // bytes; a UUID has 36
	maxMetadata = 64 << 10 // bytes of encoded metadata; ours is empty
	maxExtra    = 64       // fields in addition to watermill's own
)

// marshaller is watermill-redisstream's own, so that the wire formats cannot diverge.
var marshaller redisstream.DefaultMarshallerUnmarshaller

// Entry returns the fields of a message as field, value, field, value…, in
// watermill-redisstream's wire format, for an XADD inside a script. Fields appended
// after them reach the reader as metadata. The number of orders is not among them.
func Entry(msg *Message) ([]any, error) {
	if msg.UUID == "" || len(msg.UUID) > maxIDLength {
		return nil, fmt.Errorf("stream entry: id has %d bytes, want 1 to %d", len(msg.UUID), maxIDLength)
	}
	if len(msg.Payload) > MaxPayload {
		return nil, fmt.Errorf("stream entry %s: payload has %d bytes, more than %d", msg.UUID, len(msg.Payload), MaxPayload)
	}
	msg = outward(msg)
	if len(msg.Metadata) == 0 {
		// watermill-redisstream would write an empty metadata field, and reads a
		// missing one as empty. Orders have no metadata, and each field is processed by
		// script, stream and worker.
		return []any{FieldID, msg.UUID, FieldPayload, []byte(msg.Payload)}, nil
	}
	fields, err := marshaller.Marshal("", msg)
	if err != nil {
		return nil, fmt.Errorf("stream entry %s: %w", msg.UUID, err)
	}
	return []any{FieldID, fields[FieldID], fieldMetadata, fields[fieldMetadata], FieldPayload, fields[FieldPayload]}, nil
}

// internal reports whether a key of the metadata is of the entry, not of the message.
func internal(key string) bool {
	return strings.HasPrefix(key, reserved) || key == FieldCount || key == fieldSum
}

// outward returns the message without the metadata of its entry.
func outward(msg *Message) *Message {
	inward := false
	for key := range msg.Metadata {
		inward = inward || internal(key)
	}
	if !inward {
		return msg
	}
	clean := message.NewMessage(msg.UUID, msg.Payload)
	for key, value := range msg.Metadata {
		if !internal(key) {
			clean.Metadata.Set(key, value)
		}
	}
	return clean
}

// FromEntry returns the message of an entry, and whether it could be decoded.
func FromEntry(entry redis.XMessage) (*Message, bool) {
	msg, reason := unmarshal(entry.Values)
	return msg, reason == ""
}

// decode converts an entry to a message and never fails: an invalid entry becomes a
// message marked as malformed, with the reason, so that the router makes it a dead
// letter. watermill-redisstream's subscriber stops permanently in that case.
func decode(entry redis.XMessage) *Message {
	msg, reason := unmarshal(entry.Values)
	if reason != "" {
		msg = message.NewMessage("", nil)
		msg.Metadata.Set(metaMalformed, reason)
	}
	msg.Metadata.Set(metaEntry, entry.ID)
	return msg
}

// unmarshal returns a message, or the reason why it cannot be decoded. Metadata is
// untrusted msgpack: a panic of the decoder makes the entry malformed and must not stop
// the worker.
func unmarshal(values map[string]any) (msg *Message, reason string) {
	defer func() {
		if fault.Caught(recover(), fault.InEntry) != nil {
			msg, reason = nil, "metadata cannot be decoded"
		}
	}()
	id, _ := values[FieldID].(string)
	payload, hasPayload := values[FieldPayload].(string)
	switch {
	case id == "":
		return nil, "no message id"
	case len(id) > maxIDLength:
		return nil, "message id too long"
	case !hasPayload:
		return nil, "no payload"
	case len(payload) > MaxPayload:
		return nil, "payload too large"
	case tooLong(values[fieldMetadata], maxMetadata):
		return nil, "metadata too large"
	case len(values) > maxExtra+3:
		return nil, "too many fields"
	}
	msg, err := marshaller.Unmarshal(values)
	if err != nil {
		return nil, "metadata cannot be decoded"
	}
	if msg.Metadata == nil { // encoded as nil: watermill's Set would panic
		msg.Metadata = message.Metadata{}
	}
	for key := range msg.Metadata {
		if strings.HasPrefix(key, reserved) {
			delete(msg.Metadata, key)
		}
	}
	for name, value := range values {
		if name == FieldID || name == fieldMetadata || name == FieldPayload || strings.HasPrefix(name, reserved) {
			continue
		}
		if text, ok := value.(string); ok {
			msg.Metadata.Set(name, text)
		}
	}
	return msg, ""
}

func tooLong(value any, limit int) bool {
	text, _ := value.(string)
	return len(text) > limit
}

// EntryID returns the id of the stream entry of a message.
func EntryID(msg *Message) string { return msg.Metadata.Get(metaEntry) }

// Malformed reports whether the entry could not be decoded, and returns the reason.
func Malformed(msg *Message) (reason string, malformed bool) {
	reason = msg.Metadata.Get(metaMalformed)
	return reason, reason != ""
}

// Deliveries returns how many times the group has delivered the entry to a consumer,
// including this one: 1 at first, more after a worker was killed.
func Deliveries(msg *Message) int { return countIn(msg, metaDeliveries, 1) }

// Attempt returns the number of the attempt in this process: 1 at first, one more after
// each failure.
func Attempt(msg *Message) int { return countIn(msg, metaAttempt, 1) }

// failures returns how many attempts failed with an error that counts.
func failures(msg *Message) int { return countIn(msg, metaFailures, 0) }

func countIn(msg *Message, key string, absent int) int {
	text := msg.Metadata.Get(key)
	if text == "" { // the usual case; Atoi would allocate an error
		return absent
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return absent
	}
	return n
}

// nextID returns the id that follows. It replaces the exclusive form "(id", which not
// every supported Redis accepts.
func nextID(id string) string {
	ms, seq, err := redisconn.ParseEntryID(id)
	if err != nil {
		return id
	}
	if seq++; seq == 0 {
		ms++
	}
	return strconv.FormatUint(ms, 10) + "-" + strconv.FormatUint(seq, 10)
}
