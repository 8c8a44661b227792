package stream

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/internal/platform/redisconn"
)

// AppendLua defines the Lua function that appends an entry; lua/append.lua documents
// it. Every script that appends messages with orders includes it.
//
//go:embed lua/append.lua
var AppendLua string

//go:embed lua/append_all.lua
var appendAll string

var appendScript = redis.NewScript(AppendLua + appendAll)

// Fields of an entry that count its orders. An entry without them has one order.
const (
	FieldCount = "orders"     // orders in the message
	fieldSum   = "orders_sum" // orders appended to the stream so far, including these
)

// SumKey returns the key that counts the orders appended to a stream. It has the slot
// of the stream.
func SumKey(stream string) string { return stream + ":sum" }

// Count returns the number of orders in a message.
func Count(msg *Message) int { return max(1, countIn(msg, FieldCount, 1)) }

const (
	splitSuffix = ":split:"      // appended to the key of a stream, followed by the id of an entry
	splitMemory = 24 * time.Hour // how long a split is remembered, so that it is not repeated
)

// Appender appends messages with orders to streams.
type Appender struct {
	Client redis.UniversalClient
}

// Append appends messages to a stream, all or none.
func (a Appender) Append(ctx context.Context, key string, messages ...*Message) error {
	return appendTo(ctx, a.Client, []string{key, SumKey(key)}, messages)
}

// appendSplit appends the parts of an entry, once.
func appendSplit(ctx context.Context, client redis.UniversalClient, key, entry string, parts []*Message) error {
	return appendTo(ctx, client, []string{key, SumKey(key), key + splitSuffix + entry}, parts)
}

func appendTo(ctx context.Context, client redis.UniversalClient, keys []string, messages []*Message) error {
	args := []any{splitMemory.Milliseconds()}
	for _, msg := range messages {
		fields, err := Entry(msg)
		if err != nil {
			return err
		}
		args = append(append(args, Count(msg), len(fields)), fields...)
	}
	if err := appendScript.Run(ctx, client, keys, args...).Err(); err != nil {
		return fmt.Errorf("append %d messages to %s: %w", len(messages), keys[0], err)
	}
	return nil
}

//go:embed lua/trim.lua
var trim string

// Trimmer removes finished entries, which watermill never does: those that every group
// of a stream has read and acknowledged. MAXLEN would remove unread ones.
type Trimmer struct {
	client  redis.UniversalClient
	keys    []string
	script  *redis.Script
	metrics *Metrics
}

// NewTrimmer returns a trimmer of the streams under keys.
func NewTrimmer(client redis.UniversalClient, keys []string, metrics *Metrics) *Trimmer {
	return &Trimmer{client: client, keys: keys, script: redis.NewScript(trim), metrics: metrics}
}

// Step trims every stream once. It is a periodic.Step and may run on all processes
// concurrently. A stream that fails does not prevent the others.
func (t *Trimmer) Step(ctx context.Context) (counts map[string]int, err error) {
	total := 0
	var failed []error
	runs := make([]redisconn.Run, len(t.keys))
	for i, key := range t.keys {
		runs[i].Keys = []string{key}
	}
	for i, reply := range redisconn.RunEach(ctx, t.client, t.script, runs) {
		key := t.keys[i]
		n, err := reply.Int()
		if err != nil {
			failed = append(failed, fmt.Errorf("trim %s: %w", key, err))
			continue
		}
		t.metrics.count(Trimmed, key, n)
		total += n
	}
	return map[string]int{"trimmed": total}, errors.Join(failed...)
}
