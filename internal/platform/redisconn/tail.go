package redisconn

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// streamStart is the position before the first entry of a stream.
const streamStart = "0-0"

// Tail reads the entries of a stream without a consumer group, from the start or from
// the end. It is not safe for concurrent use.
type Tail struct {
	client redis.UniversalClient
	key    string
	batch  int64
	last   string // id of the last entry read
}

// NewTail returns a tail at the start of a stream. The client is for blocking reads; batch
// is the maximum number of entries per read.
func NewTail(client redis.UniversalClient, key string, batch int64) *Tail {
	return &Tail{client: client, key: key, batch: batch, last: streamStart}
}

// SeekEnd moves the tail behind the last entry. Reading from "$" instead would miss
// entries that are appended between two reads, until the first one is received.
func (t *Tail) SeekEnd(ctx context.Context) (err error) {
	t.last, err = t.end(ctx)
	return err
}

// Next returns the next entries. It waits for the first one at most for block; when block
// is negative, it does not wait.
//
// lost reports that the stream ends before the position of the tail: it expired, Redis was
// emptied, or an older replica was promoted. Reading from there would miss entries until
// the clock of Redis has caught up, so the tail has moved to the start of the stream.
func (t *Tail) Next(ctx context.Context, block time.Duration) (entries []redis.XMessage, lost bool, err error) {
	streams, err := t.client.XRead(ctx, &redis.XReadArgs{Streams: []string{t.key, t.last}, Count: t.batch, Block: block}).
		Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, false, err
	}
	if len(streams) > 0 && len(streams[0].Messages) > 0 {
		entries = streams[0].Messages
		t.last = entries[len(entries)-1].ID
		return entries, false, nil
	}
	if t.last == streamStart {
		return nil, false, nil
	}
	end, err := t.end(ctx)
	if err != nil {
		return nil, false, err
	}
	if lost = before(end, t.last); lost {
		t.last = streamStart
	}
	return nil, lost, nil
}

// end returns the id of the last entry.
func (t *Tail) end(ctx context.Context) (string, error) {
	last, err := t.client.XRevRangeN(ctx, t.key, "+", "-", 1).Result()
	if err != nil || len(last) == 0 {
		return streamStart, err
	}
	return last[0].ID, nil
}

// before reports whether entry a was appended before entry b.
func before(a, b string) bool {
	aMs, aSeq, errA := ParseEntryID(a)
	bMs, bSeq, errB := ParseEntryID(b)
	return errA == nil && errB == nil && (aMs < bMs || aMs == bMs && aSeq < bSeq)
}

// ParseEntryID parses the id of a stream entry, "milliseconds-sequence".
func ParseEntryID(id string) (ms, seq uint64, err error) {
	left, right, found := strings.Cut(id, "-")
	if !found {
		return 0, 0, fmt.Errorf("stream id %q has no sequence", id)
	}
	if ms, err = strconv.ParseUint(left, 10, 64); err != nil {
		return 0, 0, fmt.Errorf("stream id %q: %w", id, err)
	}
	if seq, err = strconv.ParseUint(right, 10, 64); err != nil {
		return 0, 0, fmt.Errorf("stream id %q: %w", id, err)
	}
	return ms, seq, nil
}
