package stream

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/ThreeDotsLabs/watermill/message/router/middleware"
	"github.com/redis/go-redis/v9"

	"seckill/internal/fault"
	"seckill/internal/redisconn"
)

//go:embed lua/dead_append.lua
var deadAppend string

//go:embed lua/dead_remove.lua
var deadRemove string

//go:embed lua/replay.lua
var replay string

// Bounds of the dead letters.
const (
	maxLetters     = 500            // letters per List
	maxReplay      = 1000           // fields of a replayable entry; a script can pass only some thousands
	replayMemory   = 24 * time.Hour // how long a replay is remembered, so that it is not repeated
	indexSuffix    = ":index"       // appended to the key of the letters
	replayedSuffix = ":replayed:"   // appended to the key of a stream, followed by the id of a letter
	retriedSuffix  = ":retried:"    // appended to the key of the letters, followed by the id of a message
)

// DeadLetters keeps dead letters until an operator replays or drops them. It implements
// watermill's message.Publisher for the poison middleware, and Close of that publisher
// does not end it.
//
// A letter holds the raw fields of the stream entry, not a new encoding of the decoded
// message: a replay is the same message.
type DeadLetters struct {
	client  redis.UniversalClient
	key     string
	log     *slog.Logger
	metrics *Metrics
	inbox   Inbox

	append, remove, replay *redis.Script
}

// DeadLettersConfig configures DeadLetters.
type DeadLettersConfig struct {
	Client  redis.UniversalClient // shared; sending a command twice is harmless
	Key     string                // with a hash tag, so that the index shares its slot
	Log     *slog.Logger
	Metrics *Metrics
	Inbox   Inbox // nil = changes are not reported
}

// Inbox learns that a letter is new or gone; inbox.Reporter implements it.
type Inbox interface {
	Changed(ctx context.Context)
}

// NewDeadLetters returns the dead letters under a key.
func NewDeadLetters(cfg DeadLettersConfig) *DeadLetters {
	return &DeadLetters{
		client: cfg.Client, key: cfg.Key, log: cfg.Log, metrics: cfg.Metrics, inbox: cfg.Inbox,
		append: redis.NewScript(deadAppend),
		remove: redis.NewScript(deadRemove),
		replay: redis.NewScript(AppendLua + replay),
	}
}

// reportChange reports to the inbox that a letter is new or gone.
func (d *DeadLetters) reportChange(ctx context.Context) {
	if d.inbox != nil {
		d.inbox.Changed(ctx)
	}
}

// Key returns the key of the stream of letters.
func (d *DeadLetters) Key() string { return d.key }

// Publish stores messages that watermill's poison middleware gave up. It ignores the
// topic and uses its own key. The context of a message may be done; the letter must be
// written before the entry is acknowledged.
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
	args, err := letter.args()
	if err != nil {
		return fmt.Errorf("set aside %s/%s: %w", letter.Stream, letter.Entry, err)
	}
	args = append([]any{letter.Stream, letter.Entry}, args...)
	reply, err := d.append.Run(ctx, d.client, []string{d.key, d.key + indexSuffix}, args...).Slice()
	if err != nil {
		return fmt.Errorf("set aside %s/%s: %w", letter.Stream, letter.Entry, err)
	}
	if len(reply) == 2 && reply[1] == int64(1) {
		d.metrics.count(DeadLettered, letter.Stream, 1)
		d.log.Error("message set aside", slog.String("stream", letter.Stream), slog.String("entry", letter.Entry),
			slog.String("message_id", letter.MessageID), slog.String("reason", letter.Reason))
		d.reportChange(ctx)
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

// Len returns the number of letters.
func (d *DeadLetters) Len(ctx context.Context) (int64, error) {
	n, err := d.client.XLen(ctx, d.key).Result()
	if err != nil {
		return 0, fmt.Errorf("count dead letters: %w", err)
	}
	return n, nil
}

// LenOf returns the number of letters from one stream.
func (d *DeadLetters) LenOf(ctx context.Context, stream string) (int64, error) {
	text, err := d.client.HGet(ctx, d.key+indexSuffix, "n:"+stream).Result()
	if errors.Is(err, redis.Nil) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("count dead letters of %s: %w", stream, err)
	}
	return strconv.ParseInt(text, 10, 64)
}

// List returns up to limit letters (at most 500) after the letter with id after, oldest
// first; "" starts at the first. Their Fields are nil.
func (d *DeadLetters) List(ctx context.Context, after string, limit int) ([]Letter, error) {
	from := "-"
	if after != "" {
		if _, _, err := redisconn.ParseEntryID(after); err != nil {
			return nil, fault.Wrap(fault.BadInput, "Invalid cursor.", err)
		}
		from = nextID(after)
	}
	entries, err := d.client.XRangeN(ctx, d.key, from, "+", int64(min(max(limit, 1), maxLetters))).Result()
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", err)
	}
	letters := make([]Letter, 0, len(entries))
	for _, e := range entries {
		l, err := readLetter(e.ID, e.Values)
		if err != nil {
			l.Reason, l.Unreadable = "unreadable letter: "+l.Reason, true
		}
		l.Fields = nil
		letters = append(letters, l)
	}
	return letters, nil
}

// Inspect returns one letter with its fields, or nil when no letter has that id.
func (d *DeadLetters) Inspect(ctx context.Context, id string) (*Letter, error) {
	if _, _, err := redisconn.ParseEntryID(id); err != nil {
		return nil, nil // no letter has such an id
	}
	entries, err := d.client.XRangeN(ctx, d.key, id, id, 1).Result()
	if err != nil {
		return nil, fmt.Errorf("inspect dead letter %s: %w", id, err)
	}
	if len(entries) == 0 {
		return nil, nil
	}
	l, err := readLetter(entries[0].ID, entries[0].Values)
	return &l, err
}

// Replay is the outcome of replaying a letter.
type Replay string

// Outcomes of a replay.
const (
	Replayed      Replay = "replayed"       // the entry was appended to its stream
	NoLetter      Replay = "no_letter"      // no letter has that id: replayed or dropped before, or never existed
	NotReplayable Replay = "not_replayable" // the entry has no fields, or too many
)

// Replay appends the fields of a letter to their original stream and removes the
// letter. It appends at most once, even for repeated and concurrent calls. Each step
// may be repeated: a crash between them leaves a letter that the next replay removes.
func (d *DeadLetters) Replay(ctx context.Context, id string) (Replay, error) {
	letter, err := d.Inspect(ctx, id)
	if err != nil {
		return "", err
	}
	if letter == nil {
		return NoLetter, nil
	}
	if len(letter.Fields) == 0 || len(letter.Fields) > maxReplay {
		return NotReplayable, nil
	}
	orders := 1
	if msg, ok := letter.Message(); ok {
		orders = Count(msg)
	}
	args := []any{replayMemory.Milliseconds(), orders}
	for _, f := range letter.Fields {
		if name := string(f.Name); name != FieldCount && name != fieldSum {
			args = append(args, f.Name, f.Value)
		}
	}
	keys := []string{letter.Stream, SumKey(letter.Stream), letter.Stream + replayedSuffix + id}
	if err := d.replay.Run(ctx, d.client, keys, args...).Err(); err != nil {
		return "", fmt.Errorf("replay dead letter %s: %w", id, err)
	}
	if _, err := d.delete(ctx, *letter); err != nil {
		return "", fmt.Errorf("replay dead letter %s: %w", id, err)
	}
	return Replayed, nil
}

// RetryOnce replays a letter unless a letter of the same message was retried in the last
// 24 hours. It reports whether it did.
func (d *DeadLetters) RetryOnce(ctx context.Context, l Letter) (bool, error) {
	if l.MessageID == "" {
		return false, nil
	}
	key := d.key + retriedSuffix + l.MessageID
	first, err := d.client.SetNX(ctx, key, l.ID, replayMemory).Result()
	if err != nil {
		return false, err
	}
	if !first {
		// The same letter: a process ended before the replay, or the reply was lost.
		if of, err := d.client.Get(ctx, key).Result(); err != nil || of != l.ID {
			return false, err
		}
	}
	done, err := d.Replay(ctx, l.ID)
	return done == Replayed, err
}

// Drop removes a letter permanently and reports whether it existed.
func (d *DeadLetters) Drop(ctx context.Context, id string) (bool, error) {
	letter, err := d.Inspect(ctx, id)
	if letter == nil {
		return false, err
	}
	return d.delete(ctx, *letter)
}

func (d *DeadLetters) delete(ctx context.Context, l Letter) (bool, error) {
	n, err := d.remove.Run(ctx, d.client, []string{d.key, d.key + indexSuffix}, l.ID, l.Stream, l.Entry).Int()
	if err != nil {
		return false, fmt.Errorf("remove dead letter %s: %w", l.ID, err)
	}
	d.reportChange(ctx)
	return n == 1, nil
}
