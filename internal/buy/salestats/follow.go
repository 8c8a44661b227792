package salestats

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/internal/platform/notifier"
)

// cursorFormat is the format of stream entry ids.
var cursorFormat = regexp.MustCompile(`^\d{1,15}-\d{1,15}$`)

func parseCursor(text string) (string, error) {
	if !cursorFormat.MatchString(text) {
		return "", errors.New("not the id of a stream entry")
	}
	return text, nil
}

// follower reads one log for one subscriber. It polls, unlike redisconn.Tail: a blocking
// read holds a connection, and it must see whether lines behind its cursor were trimmed.
type follower struct {
	feed   *Feed
	key    string
	cursor string // the last line sent
	out    chan notifier.State[FeedEvent]
}

func (c *follower) run(ctx context.Context) {
	defer close(c.out)
	if !c.send(ctx, FeedEvent{Kind: Snapshot, Cursor: c.cursor}) {
		return
	}
	ticker := time.NewTicker(followEvery)
	defer ticker.Stop()
	for {
		more, ok := c.look(ctx)
		if !ok {
			return
		}
		if more {
			continue
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// look sends the lines after the cursor. It reads from the line at the cursor: if that
// line still exists, no later line was trimmed. more reports that further lines may be
// available at once; ok is false when the subscriber is gone. After an error of Redis the
// next poll tries again.
func (c *follower) look(ctx context.Context) (more, ok bool) {
	entries, err := c.feed.cfg.Client.XRangeN(ctx, c.key, c.cursor, "+", followBatch).Result()
	if err != nil {
		return false, ctx.Err() == nil
	}
	full := len(entries) == followBatch
	switch {
	case len(entries) > 0 && entries[0].ID == c.cursor:
		entries = entries[1:]
	case c.cursor == start && !c.trimmed(ctx, entries):
	default:
		if len(entries) == 0 {
			c.cursor = start // the log was deleted, or begins after the cursor
		}
		if !c.send(ctx, FeedEvent{Kind: Gap, Cursor: c.cursor}) {
			return false, false
		}
	}
	for _, entry := range entries {
		c.cursor = entry.ID
		line, readable := lineOf(entry)
		if readable && !c.send(ctx, FeedEvent{Kind: Update, Cursor: entry.ID, Line: line}) {
			return false, false
		}
	}
	return full, true
}

// trimmed reports whether lines before the first entry may be missing, for a follower
// that has received none.
func (c *follower) trimmed(ctx context.Context, entries []redis.XMessage) bool {
	if len(entries) == 0 {
		return false
	}
	n, err := c.feed.cfg.Client.XLen(ctx, c.key).Result()
	return err == nil && n >= feedLength
}

func lineOf(entry redis.XMessage) (*Line, bool) {
	text, ok := entry.Values["line"].(string)
	if !ok {
		return nil, false
	}
	var line Line
	if err := json.Unmarshal([]byte(text), &line); err != nil {
		return nil, false
	}
	return &line, true
}

func (c *follower) send(ctx context.Context, e FeedEvent) bool {
	select {
	case c.out <- notifier.State[FeedEvent]{Value: e, Snapshot: e.Kind == Snapshot}:
		return true
	case <-ctx.Done():
		return false
	}
}
