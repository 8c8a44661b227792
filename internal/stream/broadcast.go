package stream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/ThreeDotsLabs/watermill-redisstream/pkg/redisstream"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/redis/go-redis/v9"
)

// Defaults and bounds of a Broadcast.
const (
	defaultKeep      = 10_000 // messages; a reader that is further behind misses some
	defaultTailBlock = 200 * time.Millisecond
	tailBatch        = 256 // messages per read
)

// Publisher publishes messages to the streams that are their topics.
type Publisher = message.Publisher

// NewPublisher returns watermill's publisher of Redis Streams: one entry per
// message, no MAXLEN, which would drop what no consumer read. Close closes the
// client, so it must be the publisher's own. The messages' contexts bound it.
func NewPublisher(client redis.UniversalClient, log *slog.Logger) (Publisher, error) {
	return redisstream.NewPublisher(redisstream.PublisherConfig{Client: client}, newLogger(log))
}

// BroadcastConfig is where a Broadcast lies. Zero numbers take the default.
type BroadcastConfig struct {
	Publish redis.UniversalClient // of the broadcast's own; Close closes it
	Read    redis.UniversalClient // for blocking reads, of the broadcast's own; Close closes it
	Key     string                // of the stream

	Keep  int           // messages kept, about [10,000]
	Block time.Duration // how long a read waits; bounds how late the end of Tail is noticed [200 ms]

	Log     *slog.Logger
	Metrics *Metrics
}

// Broadcast is a stream that every process may read from its end, without a
// group. It may lose anything: a reader sees what is sent while it reads.
type Broadcast struct {
	cfg BroadcastConfig
	pub message.Publisher
}

// NewBroadcast returns a broadcast.
func NewBroadcast(cfg BroadcastConfig) (*Broadcast, error) {
	if cfg.Publish == nil || cfg.Read == nil || cfg.Key == "" || cfg.Log == nil {
		return nil, errors.New("broadcast: two clients, a key and a log are needed")
	}
	setDefault(&cfg.Keep, defaultKeep)
	setDefault(&cfg.Block, defaultTailBlock)
	pub, err := redisstream.NewPublisher(redisstream.PublisherConfig{
		Client: cfg.Publish, Maxlens: map[string]int64{cfg.Key: int64(cfg.Keep)},
	}, newLogger(cfg.Log))
	if err != nil {
		return nil, fmt.Errorf("broadcast: %w", err)
	}
	return &Broadcast{cfg: cfg, pub: pub}, nil
}

// Send publishes one message within ctx, for commandTimeout at most.
func (b *Broadcast) Send(ctx context.Context, msg *Message) error {
	if len(msg.Payload) > MaxPayload {
		return fmt.Errorf("broadcast: payload has %d bytes, more than %d", len(msg.Payload), MaxPayload)
	}
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	msg.SetContext(ctx)
	if err := b.pub.Publish(b.cfg.Key, msg); err != nil {
		return fmt.Errorf("broadcast: %w", err)
	}
	return nil
}

// Tail calls handle with every message sent from now on, one after the other,
// until ctx ends; it then returns nil. Failing reads are tried again. ready, when
// not nil, is called once the end of the stream is known: what is sent after
// that is seen.
func (b *Broadcast) Tail(ctx context.Context, ready func(), handle func(msg *Message)) error {
	retry := newBackoff()
	cursor := ""
	for ctx.Err() == nil {
		var err error
		if cursor == "" {
			if cursor, err = b.end(); err == nil && ready != nil {
				ready()
				ready = nil
			}
		} else {
			cursor, err = b.read(cursor, handle)
		}
		if err == nil {
			retry.Reset()
			continue
		}
		if ctx.Err() != nil {
			return nil
		}
		b.cfg.Metrics.count(ReadFailed, b.cfg.Key, 1)
		b.cfg.Log.Warn("read broadcast", slog.String("stream", b.cfg.Key), slog.Any("error", err))
		pause(ctx, retry.NextBackOff())
	}
	return nil
}

// Close closes both clients. Send and Tail must be over.
func (b *Broadcast) Close() error { return errors.Join(b.pub.Close(), b.cfg.Read.Close()) }

// end returns the id of the last message. Reading from "$" instead would miss
// what is sent between two reads, until the first message came.
func (b *Broadcast) end() (string, error) {
	ctx, cancel := command(0)
	defer cancel()
	last, err := b.cfg.Read.XRevRangeN(ctx, b.cfg.Key, "+", "-", 1).Result()
	if err != nil {
		return "", err
	}
	if len(last) == 0 {
		return "0-0", nil
	}
	return last[0].ID, nil
}

// read hands on what lies behind the cursor and returns where it stands then.
func (b *Broadcast) read(cursor string, handle func(msg *Message)) (string, error) {
	ctx, cancel := command(b.cfg.Block)
	defer cancel()
	streams, err := b.cfg.Read.XRead(ctx, &redis.XReadArgs{
		Streams: []string{b.cfg.Key, cursor}, Count: tailBatch, Block: b.cfg.Block,
	}).Result()
	if errors.Is(err, redis.Nil) {
		return b.check(cursor)
	}
	if err != nil {
		return cursor, err
	}
	for _, s := range streams {
		for _, entry := range s.Messages {
			cursor = entry.ID
			msg := decode(entry)
			if _, bad := Malformed(msg); bad {
				b.cfg.Metrics.count(MalformedSeen, b.cfg.Key, 1)
				continue
			}
			handle(msg)
		}
		b.cfg.Metrics.count(Read, b.cfg.Key, len(s.Messages))
	}
	return cursor, nil
}

// check looks whether the stream ends before the cursor: Redis was emptied or
// replaced, and its clock is behind. Waiting at the cursor would then last until
// that clock has caught up.
func (b *Broadcast) check(cursor string) (string, error) {
	end, err := b.end()
	if err != nil {
		return cursor, err
	}
	if end != "0-0" && beforeID(end, cursor) {
		b.cfg.Metrics.count(BusReset, b.cfg.Key, 1)
		return "0-0", nil
	}
	return cursor, nil
}

// beforeID reports whether one stream id is lower than another.
func beforeID(a, b string) bool {
	ams, aseq, errA := splitID(a)
	bms, bseq, errB := splitID(b)
	if errA != nil || errB != nil {
		return false
	}
	return ams < bms || (ams == bms && aseq < bseq)
}
