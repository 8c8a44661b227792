package redisconn

import (
	"context"
	"errors"
	"net"

	"github.com/redis/go-redis/v9"

	"seckill/internal/platform/tracing"
)

// Trace makes spans of the commands of this Conn and of its later clients.
func (c *Conn) Trace() {
	c.traced = true
	c.Cmd.AddHook(traced{})
	c.Script.AddHook(traced{})
	c.reserve.AddHook(traced{})
}

// traced makes a span of each command within a span. Commands of loops have none.
type traced struct{}

func (traced) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (traced) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		ctx, span := tracing.Start(ctx, "redis "+cmd.Name())
		span.Text("db.system.name", "redis")
		err := next(ctx, cmd)
		span.End(failure(err))
		return err
	}
}

func (traced) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		ctx, span := tracing.Start(ctx, "redis pipeline")
		span.Text("db.system.name", "redis")
		span.Count("db.operation.batch.size", len(cmds))
		err := next(ctx, cmds)
		span.End(failure(err))
		return err
	}
}

// failure returns an error unless it says that a key is absent.
func failure(err error) error {
	if errors.Is(err, redis.Nil) {
		return nil
	}
	return err
}
