package main

import (
	"context"
	"fmt"
	"log/slog"
	"syscall"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-redisstream/pkg/redisstream"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/redis/go-redis/v9"

	"seckill/internal/platform/redisconn"
	"seckill/internal/platform/stream"
)

// fillBatch is the number of entries appended in one pipeline.
const fillBatch = 1000

// subscriberRound drains equal streams with watermill-redisstream's subscriber and with
// the product's. Every message is acknowledged where it is received.
func subscriberRound(ctx context.Context, conn *redisconn.Conn, key string, messages int) (stock, batch sample,
	err error) {
	theirs, err := redisstream.NewSubscriber(redisstream.SubscriberConfig{
		Client: conn.NewBlocking(), ConsumerGroup: "orders", Consumer: "bench", DisableIndefiniteInitialBlock: true,
	}, watermill.NopLogger{})
	if err != nil {
		return stock, batch, err
	}
	if stock, err = drain(ctx, conn, theirs, key+"stock", messages); err != nil {
		return stock, batch, err
	}
	ours, err := stream.NewSubscriber(stream.SubscriberConfig{
		Client: conn.NewBlocking(), Group: "orders", Consumer: "bench", Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return stock, batch, err
	}
	batch, err = drain(ctx, conn, ours, key+"batch", messages)
	return stock, batch, err
}

func drain(ctx context.Context, conn *redisconn.Conn, sub message.Subscriber, key string, messages int) (sample,
	error) {
	defer sub.Close()
	if err := fill(ctx, conn, key, messages); err != nil {
		return sample{}, err
	}
	cpuBefore := ownCPU()
	began := time.Now()
	in, err := sub.Subscribe(ctx, key)
	if err != nil {
		return sample{}, err
	}
	for range messages {
		select {
		case msg := <-in:
			msg.Ack()
		case <-ctx.Done():
			return sample{}, ctx.Err()
		}
	}
	return sample{n: messages, took: time.Since(began), cpu: ownCPU() - cpuBefore}, nil
}

// fill appends messages of the length of an order message.
func fill(ctx context.Context, conn *redisconn.Conn, key string, messages int) error {
	payload := make([]byte, 400)
	for i := range payload {
		payload[i] = 'x'
	}
	for done := 0; done < messages; {
		pipe := conn.Script.Pipeline()
		for n := 0; n < fillBatch && done < messages; n++ {
			fields, err := stream.Entry(stream.NewMessage(fmt.Sprintf("message-%d", done), payload))
			if err != nil {
				return err
			}
			pipe.XAdd(ctx, &redis.XAddArgs{Stream: key, Values: fields})
			done++
		}
		if _, err := pipe.Exec(ctx); err != nil {
			return fmt.Errorf("fill a stream: %w", err)
		}
	}
	return nil
}

// ownCPU returns the CPU time of this process.
func ownCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
