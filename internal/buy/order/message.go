package order

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"seckill/internal/identity/person"
	"seckill/internal/platform/id"
	"seckill/internal/platform/stream"
	"seckill/internal/platform/tracing"
)

// Group is the consumer group of the order streams.
const Group = "orders"

// requestVersion is the only version of Request that this code accepts.
const requestVersion = 1

// Bounds of a request. They are far above what the gate accepts, and keep invalid
// values out of the database.
const (
	maxQuantity       = 1_000_000
	maxWindowSeconds  = 7 * 24 * 60 * 60
	maxIdempotencyKey = 64
	maxTimeMs         = 4_102_444_800_000 // the year 2100; databases have a maximum time
)

// ErrMalformed marks a message that can never be handled. It becomes a dead letter.
var ErrMalformed = errors.New("malformed order message")

// Request is one order in a message of the order stream: stock is reserved for a
// user, and an order must be written. It is a versioned fact, keyed by the task id. The
// writer takes price, currency and payment window from the item's row in Postgres; those
// of the message say what the buyer saw.
type Request struct {
	V                    int           `json:"v"`
	Task                 id.Task       `json:"task"`
	User                 id.User       `json:"user"`
	Sale                 id.Sale       `json:"sale"`
	Item                 id.Item       `json:"item"`
	Quantity             int           `json:"quantity"`
	UnitPriceMinor       int64         `json:"unitPriceMinor"`
	Currency             string        `json:"currency"`
	PaymentWindowSeconds int           `json:"paymentWindowSeconds"`
	IdempotencyKey       string        `json:"idempotencyKey"`
	Persons              person.Keys   `json:"persons,omitzero"`        // by which the limits of the sale count the buyer
	Origin               person.Origin `json:"origin,omitzero"`         // of the attempt
	Epoch                int64         `json:"epoch,omitempty"`         // of the gate
	SubmittedAtMs        int64         `json:"submittedAtMs,omitempty"` // Redis time of the reservation
}

// The payload of a message has lines, separated by "\n". The reserve script appends
// the same lines (reservation/lua/append_orders.lua):
//
//	v2
//	@sale|item|epoch|price|currency|window   one per item, before its orders; price in
//	                                         minor units, window in seconds
//	user|task|quantity|at|key                one per order; at in Unix milliseconds, with the
//	                                         person keys of the buyer behind it (person.MarkTime)
const (
	payloadVersion = "v2"
	itemMark       = '@'
	separator      = '|'
	itemFields     = 6
	orderFields    = 5
	reservedBytes  = "|\n" // not part of any field
)

// MetaOrigins is the field of a message with the origins of its orders, one behind the other
// (person.Origin). It is left out when none is known; a release that does not know it ignores it.
const MetaOrigins = "origins"

func originAt(msg *stream.Message, position int) string {
	origins := msg.Metadata.Get(MetaOrigins)
	from := position * person.OriginChars
	if len(origins) < from+person.OriginChars {
		return ""
	}
	return origins[from : from+person.OriginChars]
}

// ItemTerms returns the last fields of an item's line, which the reserve script appends
// for an attempt to take stock. It rejects what can never become an order.
func (r Request) ItemTerms() (string, error) {
	if err := r.validateFields(); err != nil {
		return "", err
	}
	return r.terms(), nil
}

func (r Request) terms() string {
	dst := strconv.AppendInt(make([]byte, 0, 32), r.UnitPriceMinor, 10)
	dst = append(append(append(dst, separator), r.Currency...), separator)
	return string(strconv.AppendInt(dst, int64(r.PaymentWindowSeconds), 10))
}

func (r Request) itemLine() string {
	return fmt.Sprintf("%c%s|%s|%d|%s", itemMark, r.Sale, r.Item, r.Epoch, r.terms())
}

// NewMessage returns the message of some orders. Its id is the task of the first. It
// rejects what Decode would reject.
func NewMessage(requests ...Request) (*stream.Message, error) {
	if len(requests) == 0 {
		return nil, fmt.Errorf("%w: no orders", ErrMalformed)
	}
	payload := []byte(payloadVersion)
	item, origins := "", ""
	for _, r := range requests {
		origins += r.Origin.String()
		if err := r.validate(); err != nil {
			return nil, err
		}
		if line := r.itemLine(); line != item {
			item = line
			payload = append(append(payload, '\n'), line...)
		}
		payload = fmt.Appendf(payload, "\n%s|%s|%d|%s|%s", r.User, r.Task, r.Quantity,
			person.MarkTime(r.SubmittedAtMs, r.Persons), r.IdempotencyKey)
	}
	msg := newMessage(requests[0].Task.String(), payload, len(requests))
	if slices.ContainsFunc(requests, func(r Request) bool { return !r.Origin.IsZero() }) {
		msg.Metadata.Set(MetaOrigins, origins)
	}
	return msg, nil
}

func newMessage(messageID string, payload []byte, orders int) *stream.Message {
	msg := stream.NewMessage(messageID, payload)
	if orders > 1 {
		msg.Metadata.Set(stream.FieldCount, strconv.Itoa(orders))
	}
	return msg
}

// Message returns the message of one order.
func (r Request) Message() (*stream.Message, error) { return NewMessage(r) }

// Decode decodes a message of the order stream, in either form. With an error, which
// wraps ErrMalformed, it also returns the orders that are valid.
func Decode(msg *stream.Message) ([]Request, error) {
	if len(msg.Payload) > 0 && msg.Payload[0] == '{' {
		return decodeSingle(msg)
	}
	var requests []Request
	var failed error
	position := -1
	err := eachLine(msg.Payload, func(item, line []byte) {
		position++
		r, err := parseOrder(item, line)
		r.Origin = person.ParseOrigin(originAt(msg, position))
		if err != nil {
			failed = errors.Join(failed, err)
			return
		}
		requests = append(requests, r)
	})
	if err = errors.Join(err, failed); err == nil && msg.UUID != "" && msg.UUID != requests[0].Task.String() {
		err = fmt.Errorf("%w: message id is not the first task's", ErrMalformed)
	}
	return requests, err
}

// Split returns a message for each order of a message, valid or not; nil when the
// message has fewer than two. Each has the order's task as its id.
func Split(msg *stream.Message) []*stream.Message {
	var parts []*stream.Message
	err := eachLine(msg.Payload, func(item, line []byte) {
		payload := append([]byte(payloadVersion), '\n')
		payload = append(append(payload, item...), '\n')
		_, rest, _ := bytes.Cut(line, []byte{separator})
		task, _, _ := bytes.Cut(rest, []byte{separator})
		part := newMessage(string(task), append(payload, line...), 1)
		if _, err := uuid.ParseBytes(task); err != nil {
			part.UUID = fmt.Sprintf("%s/%d", msg.UUID, len(parts))
		} else if traces := msg.Metadata.Get(tracing.Field); traces != "" {
			part.Metadata.Set(tracing.Field, traces)
		}
		if origin := originAt(msg, len(parts)); origin != "" {
			part.Metadata.Set(MetaOrigins, origin)
		}
		parts = append(parts, part)
	})
	if err != nil || len(parts) < 2 {
		return nil
	}
	return parts
}

// eachLine visits the orders of a payload: the line of their item, and their own.
func eachLine(payload []byte, visit func(item, line []byte)) error {
	version, rest, more := bytes.Cut(payload, []byte{'\n'})
	if string(version) != payloadVersion {
		return fmt.Errorf("%w: another version", ErrMalformed)
	}
	var item, line []byte
	orders := 0
	for more {
		line, rest, more = bytes.Cut(rest, []byte{'\n'})
		if len(line) > 0 && line[0] == itemMark {
			item = line
			continue
		}
		if item == nil {
			return fmt.Errorf("%w: an order without an item", ErrMalformed)
		}
		visit(item, line)
		orders++
	}
	if orders == 0 {
		return fmt.Errorf("%w: no orders", ErrMalformed)
	}
	return nil
}

// fieldReader reads the fields of a line from left to right.
type fieldReader struct {
	rest []byte
	err  error
}

func (f *fieldReader) next() (field []byte) {
	field, f.rest, _ = bytes.Cut(f.rest, []byte{separator})
	return field
}

func readID[T ~[16]byte](f *fieldReader) T {
	u, err := uuid.ParseBytes(f.next())
	f.err = errors.Join(f.err, err)
	return T(u)
}

func (f *fieldReader) number() int64 {
	n, err := strconv.ParseInt(string(f.next()), 10, 64)
	f.err = errors.Join(f.err, err)
	return n
}

// parseOrder reads an order from the line of its item and its own.
func parseOrder(item, line []byte) (Request, error) {
	if bytes.Count(item, []byte{separator}) != itemFields-1 || bytes.Count(line, []byte{separator}) != orderFields-1 {
		return Request{}, fmt.Errorf("%w: wrong number of fields", ErrMalformed)
	}
	terms, fields := fieldReader{rest: item[1:]}, fieldReader{rest: line}
	r := Request{
		V: requestVersion, Sale: readID[id.Sale](&terms), Item: readID[id.Item](&terms), Epoch: terms.number(),
		UnitPriceMinor: terms.number(),
		Currency:       string(terms.next()), PaymentWindowSeconds: int(terms.number()),
		User: readID[id.User](&fields), Task: readID[id.Task](&fields), Quantity: int(fields.number()),
	}
	var err error
	r.SubmittedAtMs, r.Persons, err = person.ParseTime(string(fields.next()))
	fields.err = errors.Join(fields.err, err)
	r.IdempotencyKey = string(fields.rest)
	if err := errors.Join(terms.err, fields.err); err != nil {
		return r, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return r, r.validate()
}

// validate reports why a request can never become an order. Its errors wrap
// ErrMalformed.
func (r Request) validate() error {
	if err := r.validateFields(); err != nil {
		return err
	}
	if r.Epoch <= 0 || r.SubmittedAtMs <= 0 || r.SubmittedAtMs > maxTimeMs {
		return fmt.Errorf("%w: reservation of epoch %d at %d ms", ErrMalformed, r.Epoch, r.SubmittedAtMs)
	}
	return nil
}

// validateFields is validate without the epoch and the time of the reservation.
func (r Request) validateFields() error {
	if r.V != requestVersion {
		return fmt.Errorf("%w: version %d, not %d", ErrMalformed, r.V, requestVersion)
	}
	if r.Task.IsZero() || r.User.IsZero() || r.Sale.IsZero() || r.Item.IsZero() {
		return fmt.Errorf("%w: task %s, user %s, sale %s or item %s is missing", ErrMalformed, r.Task, r.User, r.Sale, r.Item)
	}
	shard, err := id.TaskShard(r.Task)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	switch {
	case shard != id.ShardOf(r.Sale):
		return fmt.Errorf("%w: task of shard %d for a sale of shard %d", ErrMalformed, shard, id.ShardOf(r.Sale))
	case r.Quantity < 1 || r.Quantity > maxQuantity:
		return fmt.Errorf("%w: quantity %d", ErrMalformed, r.Quantity)
	case r.UnitPriceMinor < 0:
		return fmt.Errorf("%w: price %d", ErrMalformed, r.UnitPriceMinor)
	case len(r.Currency) != 3 || strings.ContainsAny(r.Currency, reservedBytes):
		return fmt.Errorf("%w: currency of %d letters", ErrMalformed, len(r.Currency))
	case r.PaymentWindowSeconds < 1 || r.PaymentWindowSeconds > maxWindowSeconds:
		return fmt.Errorf("%w: payment window of %d s", ErrMalformed, r.PaymentWindowSeconds)
	case len(r.IdempotencyKey) > maxIdempotencyKey || strings.ContainsAny(r.IdempotencyKey, reservedBytes):
		return fmt.Errorf("%w: idempotency key of %d bytes", ErrMalformed, len(r.IdempotencyKey))
	}
	return nil
}

// submittedAt is when stock was reserved.
func (r Request) submittedAt() time.Time { return time.UnixMilli(r.SubmittedAtMs).UTC() }

// In release 0.1, each order had a message of its own: Request as JSON, with the epoch
// of the gate and the time of the reservation in these fields of the entry. Messages of
// that form are read for one minor release.
const (
	MetaEpoch = "epoch"
	MetaAt    = "at" // Unix milliseconds
)

// decodeSingle decodes a message of the former form.
func decodeSingle(msg *stream.Message) ([]Request, error) {
	var r Request
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
	return []Request{r}, nil
}
