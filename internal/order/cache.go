package order

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"seckill/internal/clock"
	"seckill/internal/id"
	"seckill/internal/redisconn"
)

const (
	// recordTTL is how long Redis keeps tasks and orders.
	recordTTL = 24 * time.Hour
	// recordsPerCall bounds one script call, which blocks Redis for well under a
	// millisecond.
	recordsPerCall = 128
)

//go:embed lua/newer.lua
var newerLua string

var newerScript = redis.NewScript(newerLua)

// BucketKey returns the key of the hash with the records of a task and of its order:
// reservation.Keys.Tasks.
type BucketKey func(shard int, task uuid.UUID) string

// Cache holds copies of tasks and orders in Redis, so that lookups do not query the
// database. The reserve script of release 0.1 writes SUBMITTED tasks there, too.
// The revision of a record only grows. The record of an order implies that its task
// succeeded, whatever the task's own record says.
type Cache struct {
	conn   *redisconn.Conn
	bucket BucketKey
	clock  clock.Clock
}

// NewCache returns a cache. A nil clock means clock.System.
func NewCache(conn *redisconn.Conn, bucket BucketKey, c clock.Clock) *Cache {
	if c == nil {
		c = clock.System{}
	}
	return &Cache{conn: conn, bucket: bucket, clock: c}
}

// Fields of a bucket: the JSON of a task, and the JSON of an order with the time of the
// copy.
func taskField(task uuid.UUID) string   { return "task:" + task.String() }
func orderField(order uuid.UUID) string { return "order:" + order.String() }

// orderRecord is an order with the time of the copy.
type orderRecord struct {
	*Order
	CopiedAtMs int64 `json:"copiedAtMs"`
}

type record struct {
	bucket   string
	field    string
	revision int64
	text     []byte
}

// Put copies failed tasks and orders, unless Redis has a newer revision. It takes one
// round trip: scripts of at most recordsPerCall records in one pipeline.
func (c *Cache) Put(ctx context.Context, tasks []Task, orders []*Order) error {
	var shards [id.Shards][]record
	for _, t := range tasks {
		if t.Status == Succeeded {
			continue // its order is the record
		}
		shard, err := id.TaskShard(t.ID)
		if err != nil {
			return fmt.Errorf("record task: %w", err)
		}
		shards[shard] = append(shards[shard], record{c.bucket(shard, t.ID), taskField(t.ID), t.Revision, t.appendRecord(make([]byte, 0, 320))})
	}
	now := c.clock.Now().UnixMilli()
	for _, o := range orders {
		shard, err := id.TaskShard(o.ID)
		if err != nil {
			return fmt.Errorf("record order: %w", err)
		}
		shards[shard] = append(shards[shard], record{c.bucket(shard, o.ID), orderField(o.ID), o.Version, o.appendRecord(make([]byte, 0, 640), now)})
	}
	err := c.write(ctx, &shards)
	if err != nil && strings.HasPrefix(err.Error(), "NOSCRIPT") {
		// A pipeline does not load scripts on demand.
		if err := newerScript.Load(ctx, c.conn.Cmd).Err(); err != nil {
			return fmt.Errorf("load script: %w", err)
		}
		err = c.write(ctx, &shards)
	}
	if err != nil {
		return fmt.Errorf("record %d tasks and %d orders: %w", len(tasks), len(orders), err)
	}
	return nil
}

func (c *Cache) write(ctx context.Context, shards *[id.Shards][]record) error {
	pipe := c.conn.Cmd.Pipeline() // writing a record twice is harmless
	for _, records := range shards {
		for part := range slices.Chunk(records, recordsPerCall) {
			buckets := map[string]int{}
			keys := make([]string, 0, 4)
			args := append(make([]any, 0, 4*len(part)+1), recordTTL.Milliseconds())
			for _, r := range part {
				n, ok := buckets[r.bucket]
				if !ok {
					keys = append(keys, r.bucket)
					n = len(keys)
					buckets[r.bucket] = n
				}
				args = append(args, n, r.field, r.revision, r.text)
			}
			newerScript.EvalSha(ctx, pipe, keys, args...)
		}
	}
	_, err := pipe.Exec(ctx)
	return err
}

// task returns the record of a task, or nil.
func (c *Cache) task(ctx context.Context, task uuid.UUID) (*Task, error) {
	shard, err := id.TaskShard(task)
	if err != nil {
		return nil, nil //nolint:nilnil,nilerr // such a task cannot exist
	}
	texts, err := c.conn.Cmd.HMGet(ctx, c.bucket(shard, task), orderField(task), taskField(task)).Result()
	if err != nil {
		return nil, fmt.Errorf("read task record: %w", err)
	}
	if text, ok := texts[0].(string); ok {
		var o Order
		if err := json.Unmarshal([]byte(text), &o); err == nil { // an unreadable record counts as missing
			t := o.Task()
			return &t, nil
		}
	}
	text, ok := texts[1].(string)
	if !ok {
		return nil, nil //nolint:nilnil // no record is an answer
	}
	var t Task
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return nil, err
	}
	return &t, nil
}

// orders returns the existing records with the time of their copy.
func (c *Cache) orders(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]orderRecord, error) {
	pipe := c.conn.Cmd.Pipeline()
	replies := make([]*redis.StringCmd, 0, len(ids))
	for _, o := range ids {
		if shard, err := id.TaskShard(o); err == nil {
			replies = append(replies, pipe.HGet(ctx, c.bucket(shard, o), orderField(o)))
		}
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return nil, fmt.Errorf("read order records: %w", err)
	}
	found := make(map[uuid.UUID]orderRecord, len(replies))
	for _, reply := range replies {
		text, err := reply.Bytes()
		if err != nil {
			continue // missing
		}
		r := orderRecord{Order: &Order{}}
		if err := json.Unmarshal(text, &r); err != nil {
			continue // an unreadable record counts as missing
		}
		found[r.Order.ID] = r
	}
	return found, nil
}
