package order

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
	"seckill/internal/platform/redisconn"
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
type BucketKey func(shard int, task id.Task) string

// Cache holds copies of tasks and orders in Redis, so that lookups do not query the database.
// The reserve script of release 0.1 writes SUBMITTED tasks there, too. The revision of a
// record only grows. A record of an order means that its task succeeded, even if the record of
// the task says otherwise. An order that was not changed since its creation has a packed
// record of its own, which is read unless there is another.
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

// Fields of a bucket: the JSON of a task, the JSON of an order with the time of the
// copy, and the packed copy of a fresh order.
func taskField(task id.Task) string     { return "task:" + task.String() }
func orderField(order id.Order) string  { return "order:" + order.String() }
func packedField(order id.Order) string { return string(order[:]) }

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

type records struct {
	changed []record  // written unless Redis has a newer revision
	packed  []record  // of fresh orders: all have the same revision and content
	failed  []id.Task // without an order: a record of one is of an order that Postgres has lost
}

// Put copies failed tasks and orders, unless Redis has a newer revision. It takes one
// round trip: commands of at most recordsPerCall records in one pipeline.
func (c *Cache) Put(ctx context.Context, tasks []Task, orders []*Order) error {
	var shards [id.Shards]records
	for _, t := range tasks {
		if t.Status == Succeeded {
			continue // its order is the record
		}
		shard, err := id.TaskShard(t.ID)
		if err != nil {
			return fmt.Errorf("record task: %w", err)
		}
		r := &shards[shard]
		r.changed = append(r.changed, record{c.bucket(shard, t.ID), taskField(t.ID), t.Revision,
			t.appendRecord(make([]byte, 0, 320))})
		if t.Status == Failed {
			r.failed = append(r.failed, t.ID)
		}
	}
	now := c.clock.Now()
	for _, o := range orders {
		shard, err := id.TaskShard(o.ID)
		if err != nil {
			return fmt.Errorf("record order: %w", err)
		}
		r := &shards[shard]
		if bucket := c.bucket(shard, id.Task(o.ID)); o.fresh() {
			r.packed = append(r.packed, record{bucket, packedField(o.ID), o.Version, o.appendPacked(make([]byte, 0, 128), now)})
		} else {
			r.changed = append(r.changed, record{bucket, orderField(o.ID), o.Version,
				o.appendRecord(make([]byte, 0, 640), now.UnixMilli())})
		}
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

func (c *Cache) write(ctx context.Context, shards *[id.Shards]records) error {
	pipe := c.conn.Cmd.Pipeline() // writing a record twice is harmless
	for _, r := range shards {
		for part := range slices.Chunk(r.changed, recordsPerCall) {
			putNewer(ctx, pipe, part)
		}
		for part := range slices.Chunk(r.packed, recordsPerCall) {
			put(ctx, pipe, part)
		}
		c.remove(ctx, pipe, r.failed, fieldsOfOrder)
	}
	_, err := pipe.Exec(ctx)
	return err
}

// putNewer writes records of a shard unless Redis has a newer revision.
func putNewer(ctx context.Context, pipe redis.Pipeliner, part []record) {
	var buckets []string
	args := append(make([]any, 0, 4*len(part)+1), recordTTL.Milliseconds())
	for _, r := range part {
		n := slices.Index(buckets, r.bucket)
		if n < 0 {
			n = len(buckets)
			buckets = append(buckets, r.bucket)
		}
		args = append(args, n+1, r.field, r.revision, r.text)
	}
	newerScript.EvalSha(ctx, pipe, buckets, args...)
}

// put writes records of a shard.
func put(ctx context.Context, pipe redis.Pipeliner, part []record) {
	buckets := map[string][]any{}
	for _, r := range part {
		buckets[r.bucket] = append(buckets[r.bucket], r.field, r.text)
	}
	for bucket, values := range buckets {
		pipe.HSet(ctx, bucket, values...)
		pipe.PExpire(ctx, bucket, recordTTL)
	}
}

// task returns the record of a task, or nil.
func (c *Cache) task(ctx context.Context, task id.Task) (*Task, error) {
	shard, err := id.TaskShard(task)
	if err != nil {
		return nil, nil // such a task cannot exist
	}
	texts, err := c.conn.Cmd.HMGet(ctx, c.bucket(shard, task), orderField(id.Order(task)), packedField(id.Order(task)),
		taskField(task)).Result()
	if err != nil {
		return nil, fmt.Errorf("read task record: %w", err)
	}
	if o := newestOf(id.Order(task), texts[:2]); o.Order != nil {
		t := o.Task()
		return &t, nil
	}
	text, ok := texts[2].(string)
	if !ok {
		return nil, nil
	}
	var t Task
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return nil, err
	}
	return &t, nil
}

// orders returns the existing records with the time of their copy.
func (c *Cache) orders(ctx context.Context, ids []id.Task) (map[id.Task]orderRecord, error) {
	pipe := c.conn.Cmd.Pipeline()
	replies := make(map[id.Task]*redis.SliceCmd, len(ids))
	for _, o := range ids {
		if shard, err := id.TaskShard(o); err == nil {
			replies[o] = pipe.HMGet(ctx, c.bucket(shard, o), orderField(id.Order(o)), packedField(id.Order(o)))
		}
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, fmt.Errorf("read order records: %w", err)
	}
	found := make(map[id.Task]orderRecord, len(replies))
	for o, reply := range replies {
		if r := newestOf(id.Order(o), reply.Val()); r.Order != nil {
			found[o] = r
		}
	}
	return found, nil
}

// newestOf returns the newer of the two records of an order: JSON and packed. A record
// that is unreadable counts as missing; without any, the Order is nil.
func newestOf(order id.Order, texts []any) (newest orderRecord) {
	if text, ok := texts[1].(string); ok {
		if r, err := unpack(order, []byte(text)); err == nil {
			newest = r
		}
	}
	if text, ok := texts[0].(string); ok {
		r := orderRecord{Order: &Order{}}
		if err := json.Unmarshal([]byte(text), &r); err == nil &&
			(newest.Order == nil || r.Version > 1 || r.CopiedAtMs > newest.CopiedAtMs) {
			newest = r
		}
	}
	return newest
}
