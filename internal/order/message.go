package order

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"

	"seckill/internal/id"
	"seckill/internal/stream"
)

// messageVersion is the version of Requested that this code writes, and the only one
// that it accepts.
const messageVersion = 1

// Bounds of a request. They are far above what the gate accepts, and keep invalid
// values out of the database.
const (
	maxQuantity       = 1_000_000
	maxWindowSeconds  = 7 * 24 * 60 * 60
	maxIdempotencyKey = 64
	maxTimeMs         = 4_102_444_800_000 // the year 2100; databases have a maximum time
)

// Metadata that the reserve script appends to the message, because only the script
// knows it: the gate's epoch and the Redis time of the reservation (Unix milliseconds).
const (
	MetaEpoch = "epoch"
	MetaAt    = "at"
)

// ErrMalformed marks a message that can never be handled. It becomes a dead letter.
var ErrMalformed = errors.New("malformed order message")

// Requested is the message in the order stream: stock is reserved for a user, and an
// order must be written. It is a versioned fact, keyed by the task id.
type Requested struct {
	V                    int       `json:"v"`
	Task                 uuid.UUID `json:"task"`
	User                 uuid.UUID `json:"user"`
	Sale                 uuid.UUID `json:"sale"`
	Item                 uuid.UUID `json:"item"`
	Quantity             int       `json:"quantity"`
	UnitPriceMinor       int64     `json:"unitPriceMinor"`
	Currency             string    `json:"currency"`
	PaymentWindowSeconds int       `json:"paymentWindowSeconds"`
	IdempotencyKey       string    `json:"idempotencyKey"`
	Epoch                int64     `json:"epoch,omitempty"`         // filled in by the reserve script
	SubmittedAtMs        int64     `json:"submittedAtMs,omitempty"` // filled in by the reserve script
}

// Encode returns the payload. It rejects what Decode would reject, except that epoch
// and time may still be missing.
func (r Requested) Encode() ([]byte, error) {
	if err := r.validate(); err != nil {
		return nil, err
	}
	return r.marshal()
}

// Message returns the request as a message; its id is the task's id.
func (r Requested) Message() (*stream.Message, error) {
	payload, err := r.Encode()
	if err != nil {
		return nil, err
	}
	return stream.NewMessage(r.Task.String(), payload), nil
}

// Decode decodes a message of the order stream. Its errors wrap ErrMalformed.
func Decode(msg *stream.Message) (Requested, error) {
	var r Requested
	if err := r.unmarshal(msg.Payload); err != nil {
		return r, fmt.Errorf("%w: %w", ErrMalformed, err)
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
			return r, fmt.Errorf("%w: metadata %s is no number", ErrMalformed, field.name)
		}
		*field.into = n
	}
	if err := r.validate(); err != nil {
		return r, err
	}
	if r.Epoch <= 0 || r.SubmittedAtMs <= 0 || r.SubmittedAtMs > maxTimeMs {
		return r, fmt.Errorf("%w: reservation of epoch %d at %d ms", ErrMalformed, r.Epoch, r.SubmittedAtMs)
	}
	if msg.UUID != "" && msg.UUID != r.Task.String() {
		return r, fmt.Errorf("%w: message id is not the task's", ErrMalformed)
	}
	return r, nil
}

func (r Requested) validate() error {
	if r.V != messageVersion {
		return fmt.Errorf("%w: version %d, not %d", ErrMalformed, r.V, messageVersion)
	}
	if r.Task == uuid.Nil || r.User == uuid.Nil || r.Sale == uuid.Nil || r.Item == uuid.Nil {
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
	case len(r.Currency) != 3:
		return fmt.Errorf("%w: currency of %d letters", ErrMalformed, len(r.Currency))
	case r.PaymentWindowSeconds < 1 || r.PaymentWindowSeconds > maxWindowSeconds:
		return fmt.Errorf("%w: payment window of %d s", ErrMalformed, r.PaymentWindowSeconds)
	case len(r.IdempotencyKey) > maxIdempotencyKey:
		return fmt.Errorf("%w: idempotency key of %d bytes", ErrMalformed, len(r.IdempotencyKey))
	}
	return nil
}

// submittedAt is when stock was reserved.
func (r Requested) submittedAt() time.Time { return time.UnixMilli(r.SubmittedAtMs).UTC() }
