package stream

import (
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"

	"seckill/internal/platform/redisconn"
)

//go:embed lua/dead_remove.lua
var deadRemove string

const (
	importPage  = 100      // letters that Import reads at once
	indexSuffix = ":index" // appended to the key of the letters in Redis
	maxMillis   = 1 << 47  // of the time in the id of a letter: the year 6429
)

// Import moves letters from Redis, where release 0.1 writes them, to the record. It may be
// repeated and called concurrently: a letter has the same id each time, and is removed from
// Redis after it was recorded. One that was replayed there and not removed yet is removed only.
func (d *DeadLetters) Import(ctx context.Context) error {
	for {
		entries, err := d.client.XRangeN(ctx, d.key, "-", "+", importPage).Result()
		if err != nil {
			return fmt.Errorf("read dead letters in Redis: %w", err)
		}
		for _, e := range entries {
			if err := d.importLetter(ctx, e.ID, e.Values); err != nil {
				return fmt.Errorf("import dead letter %s: %w", e.ID, err)
			}
		}
		if len(entries) < importPage {
			return nil
		}
	}
}

func (d *DeadLetters) importLetter(ctx context.Context, entry string, values map[string]any) error {
	l := readLetter(values)
	replayed, err := d.client.Exists(ctx, l.Stream+replayedSuffix+entry).Result()
	if err != nil {
		return err
	}
	if replayed == 0 {
		ms, _, err := redisconn.ParseEntryID(entry)
		if err != nil {
			return err
		}
		ms = min(ms, maxMillis)
		l.ID, l.At = importedID(d.key, entry, ms), time.UnixMilli(int64(ms)).UTC()
		l.Entry = cmp.Or(l.Entry, entry) // a damaged letter
		if _, err := d.record.Add(ctx, l); err != nil {
			return err
		}
	}
	return d.remove.Run(ctx, d.client, []string{d.key, d.key + indexSuffix}, entry, l.Stream, l.Entry).Err()
}

// importedID returns the id of an imported letter, a UUIDv7 of its time.
func importedID(key, entry string, ms uint64) string {
	sum := sha256.Sum256([]byte(key + "/" + entry))
	u := uuid.UUID(sum[:16])
	var at [8]byte
	binary.BigEndian.PutUint64(at[:], ms)
	copy(u[:6], at[2:])
	u[6], u[8] = u[6]&0x0f|0x70, u[8]&0x3f|0x80
	return u.String()
}

// readLetter returns a letter that was written to Redis. A damaged one has no fields.
func readLetter(values map[string]any) Letter {
	text := func(name string) string { s, _ := values[name].(string); return s }
	number := func(name string) int { n, _ := strconv.Atoi(text(name)); return n }
	l := Letter{
		Stream: text("stream"), Entry: text("entry"), MessageID: text("message"), Handler: text("handler"),
		Reason: text("reason"), Deliveries: number("deliveries"), Attempts: number("attempts"),
	}
	if err := json.Unmarshal([]byte(text("fields")), &l.Fields); err != nil {
		l.Fields, l.Reason = nil, "unreadable letter: "+l.Reason
	}
	return l
}
