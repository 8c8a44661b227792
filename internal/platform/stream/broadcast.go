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

	"seckill/internal/platform/periodic"
	"seckill/internal/platform/redisconn"
)

// Defaults and bounds of a Broadcast.
const (
	defaultKeep      = 10_000 // messages; a reader that is further behind misses some
	defaultTailBlock = defaultBlock
	tailBatch        = 256 // messages per read
)

// Publisher publishes messages; their topic is the key of the stream.
type Publisher = message.Publisher

// NewPublisher returns watermill's publisher for Redis Streams: one entry per message,
// without MAXLEN, which would drop unread entries. Close closes the client, so the
// publisher must be its only user. The messages' contexts bound each call.
func NewPublisher(client redis.UniversalClient, log *slog.Logger) (Publisher, error) {
	return redisstream.NewPublisher(redisstream.PublisherConfig{Client: client}, newLogger(log))
}

// BroadcastConfig configures a Broadcast. Zero numbers mean the default.
type BroadcastConfig struct {
	Publish redis.UniversalClient // used only by the broadcast; Close closes it
	Read    redis.UniversalClient // for blocking reads, used only by the broadcast; Close closes it
	Key     string                // of the stream

	Keep  int           // messages kept, approximately [10,000]
	Block time.Duration // timeout of one read; bounds how late the end of Tail is noticed [1 s]

	Log     *slog.Logger
	Metrics *Metrics
}

// Broadcast is a stream that every process may read from its end, without a consumer
// group. Messages may be lost: a reader receives what is sent while it reads.
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

// Send publishes one message, bounded by ctx and commandTimeout.
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

// Tail calls handle with every message sent from now on, sequentially, until ctx ends;
// it then returns nil. Failed reads are retried. ready, when not nil, is called once
// the end of the stream is known: messages sent after that are received.
func (b *Broadcast) Tail(ctx context.Context, ready func(), handle func(msg *Message)) error {
	retry := newBackoff()
	tail, atEnd := redisconn.NewTail(b.cfg.Read, b.cfg.Key, tailBatch), false
	for ctx.Err() == nil {
		var err error
		if !atEnd {
			if err = b.seekEnd(tail); err == nil {
				atEnd = true
				if ready != nil {
					ready()
				}
			}
		} else {
			err = b.read(tail, handle)
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
		_ = periodic.Sleep(ctx, retry.NextBackOff()) // the loop looks at ctx
	}
	return nil
}

// Close closes both clients. Call it after Send and Tail have returned.
func (b *Broadcast) Close() error { return errors.Join(b.pub.Close(), b.cfg.Read.Close()) }

func (b *Broadcast) seekEnd(tail *redisconn.Tail) error {
	ctx, cancel := command(0)
	defer cancel()
	return tail.SeekEnd(ctx)
}

// read passes the next messages to handle.
func (b *Broadcast) read(tail *redisconn.Tail, handle func(msg *Message)) error {
	block := untilTick(b.cfg.Block)
	ctx, cancel := command(block)
	defer cancel()
	entries, lost, err := tail.Next(ctx, block)
	if err != nil {
		return err
	}
	if lost {
		b.cfg.Metrics.count(BusReset, b.cfg.Key, 1)
	}
	for _, entry := range entries {
		msg := decode(entry)
		if _, bad := Malformed(msg); bad {
			b.cfg.Metrics.count(MalformedSeen, b.cfg.Key, 1)
			continue
		}
		handle(msg)
	}
	b.cfg.Metrics.count(Read, b.cfg.Key, len(entries))
	return nil
}
