package stream

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/ThreeDotsLabs/watermill/message/router/middleware"
	"github.com/redis/go-redis/v9"

	"seckill/internal/platform/fault"
)

//go:embed lua/replay.lua
var replay string

// Bounds of the dead letters.
const (
	maxReplay      = 1000           // fields of a replayable entry; a script can pass only some thousands
	replayMemory   = 24 * time.Hour // how long a replay is remembered, so that it is not repeated
	replayedSuffix = ":replayed:"   // appended to the key of a stream, followed by the id of a letter
)

// Record keeps dead letters until an operator decides about them. It outlives Redis;
// package deadletter implements it.
type Record interface {
	// Add stores a letter, unless one with its id was stored before or its entry has an
	// undecided one, and reports whether it did. A letter without an id is new.
	Add(ctx context.Context, l Letter) (bool, error)
}

// DeadLetters moves messages that cannot be handled to the record, and from there back to
// their streams. It implements watermill's message.Publisher for the poison middleware, and
// Close of that publisher does not end it.
//
// A letter holds the raw fields of the stream entry, not a new encoding of the decoded
// message: a replay is the same message.
type DeadLetters struct {
	client  redis.UniversalClient
	record  Record
	key     string
	log     *slog.Logger
	metrics *Metrics

	replay, remove *redis.Script
}

// DeadLettersConfig configures DeadLetters.
type DeadLettersConfig struct {
	Client  redis.UniversalClient // shared; sending a command twice is harmless
	Record  Record
	Key     string // where release 0.1 keeps letters, see Import
	Log     *slog.Logger
	Metrics *Metrics
}

// NewDeadLetters returns DeadLetters.
func NewDeadLetters(cfg DeadLettersConfig) *DeadLetters {
	return &DeadLetters{
		client: cfg.Client, record: cfg.Record, key: cfg.Key, log: cfg.Log, metrics: cfg.Metrics,
		replay: redis.NewScript(AppendLua + replay),
		remove: redis.NewScript(deadRemove),
	}
}

// Publish records messages that watermill's poison middleware gave up. It ignores the
// topic. The context of a message may be done; the letter must be recorded before the entry
// is acknowledged. After an error the entry stays pending and is delivered again.
func (d *DeadLetters) Publish(_ string, messages ...*Message) error {
	for _, msg := range messages {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(msg.Context()), commandTimeout)
		err := d.setAside(ctx, msg)
		cancel()
		if err != nil {
			d.metrics.count(DeadFailed, msg.Metadata.Get(middleware.PoisonedTopicKey), 1)
			return err
		}
	}
	return nil
}

// Close does nothing: the client belongs to the caller of NewDeadLetters.
func (d *DeadLetters) Close() error { return nil }

func (d *DeadLetters) setAside(ctx context.Context, msg *Message) error {
	letter := Letter{
		Stream:     msg.Metadata.Get(middleware.PoisonedTopicKey),
		Entry:      EntryID(msg),
		MessageID:  msg.UUID,
		Handler:    msg.Metadata.Get(middleware.PoisonedHandlerKey),
		Reason:     fault.Shorten(msg.Metadata.Get(middleware.ReasonForPoisonedKey), maxReason),
		Deliveries: Deliveries(msg),
		Attempts:   Attempt(msg),
	}
	if letter.Stream == "" || letter.Entry == "" {
		return errors.New("set aside: the message came from no stream")
	}
	var err error
	if letter.Fields, err = d.original(ctx, letter.Stream, letter.Entry); err != nil {
		return fmt.Errorf("set aside %s/%s: %w", letter.Stream, letter.Entry, err)
	}
	if letter.Fields == nil { // Redis was emptied: only the decoded message is left
		letter.Fields = fieldsOf(msg)
	}
	fresh, err := d.record.Add(ctx, letter)
	if err != nil {
		return fmt.Errorf("set aside %s/%s: %w", letter.Stream, letter.Entry, err)
	}
	if fresh {
		d.metrics.count(DeadLettered, letter.Stream, 1)
		d.log.Error("message set aside", slog.String("stream", letter.Stream), slog.String("entry", letter.Entry),
			slog.String("message_id", letter.MessageID), slog.String("reason", letter.Reason))
	}
	return nil
}

// original returns the raw fields of an entry in their order, including repeated names,
// which go-redis' map would merge; nil when the entry does not exist.
func (d *DeadLetters) original(ctx context.Context, stream, entry string) ([]Field, error) {
	reply, err := d.client.Do(ctx, "xrange", stream, entry, entry).Slice()
	if err != nil || len(reply) == 0 {
		return nil, err
	}
	pair, _ := reply[0].([]any)
	if len(pair) != 2 {
		return nil, fmt.Errorf("entry %s: unexpected reply", entry)
	}
	flat, _ := pair[1].([]any)
	fields := make([]Field, 0, len(flat)/2)
	for i := 0; i+1 < len(flat); i += 2 {
		name, _ := flat[i].(string)
		value, _ := flat[i+1].(string)
		fields = append(fields, Field{Name: []byte(name), Value: []byte(value)})
	}
	return fields, nil
}

// fieldsOf encodes a message again, without the metadata of the poison middleware; nil
// when the entry could not be decoded.
func fieldsOf(msg *Message) []Field {
	clean := msg.Copy()
	for _, key := range []string{
		middleware.ReasonForPoisonedKey, middleware.PoisonedTopicKey,
		middleware.PoisonedHandlerKey, middleware.PoisonedSubscriberKey,
	} {
		delete(clean.Metadata, key)
	}
	flat, err := Entry(clean)
	if err != nil {
		return nil
	}
	var fields []Field
	for i := 0; i+1 < len(flat); i += 2 {
		fields = append(fields, Field{Name: bytesOf(flat[i]), Value: bytesOf(flat[i+1])})
	}
	return fields
}

func bytesOf(v any) []byte {
	switch v := v.(type) {
	case []byte:
		return v
	case string:
		return []byte(v)
	}
	return nil
}

// Replay appends the fields of a letter to their original stream, at most once in 24 hours
// even for repeated and concurrent calls, and reports whether they can be appended: a letter
// may have no fields, or too many. The caller ends the letter afterwards; a crash in between
// leaves a letter that may be replayed again.
func (d *DeadLetters) Replay(ctx context.Context, l Letter) (bool, error) {
	if l.Stream == "" || len(l.Fields) == 0 || len(l.Fields) > maxReplay {
		return false, nil
	}
	orders := 1
	if msg, ok := l.Message(); ok {
		orders = Count(msg)
	}
	args := []any{replayMemory.Milliseconds(), orders}
	for _, f := range l.Fields {
		if name := string(f.Name); name != FieldCount && name != fieldSum {
			args = append(args, f.Name, f.Value)
		}
	}
	keys := []string{l.Stream, SumKey(l.Stream), l.Stream + replayedSuffix + l.ID}
	if err := d.replay.Run(ctx, d.client, keys, args...).Err(); err != nil {
		return false, fmt.Errorf("replay dead letter %s: %w", l.ID, err)
	}
	return true, nil
}

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
