package redisconn

import (
	"context"
	"errors"
	"net"

	"github.com/redis/go-redis/v9"

	"seckill/internal/platform/priority"
	"seckill/internal/platform/tracing"
)

// reserveHook sends urgent commands of a client to the reserve while all connections of the
// client are in use. They are not retried there.
type reserveHook struct {
	client, reserve redis.UniversalClient
	size            int // connections of the client, in a Cluster to one master
}

// DialHook changes nothing.
func (reserveHook) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

// ProcessHook implements redis.Hook.
func (h reserveHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if priority.IsUrgent(ctx) && h.full() {
			return h.reserve.Process(ctx, cmd)
		}
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook implements redis.Hook.
func (h reserveHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if !priority.IsUrgent(ctx) || !h.full() {
			return next(ctx, cmds)
		}
		pipe := h.reserve.Pipeline()
		if n := len(cmds); cmds[0].Name() == "multi" { // go-redis adds MULTI and EXEC before the hooks of a transaction
			pipe, cmds = h.reserve.TxPipeline(), cmds[1:n-1]
		}
		for _, cmd := range cmds {
			_ = pipe.Process(ctx, cmd) // queues it
		}
		_, err := pipe.Exec(ctx)
		return err
	}
}

// full reports whether all connections of the client are in use. In a Cluster those of all
// masters count together, so that it is true as soon as one of them may be full.
func (h reserveHook) full() bool {
	s := h.client.PoolStats()
	return int(s.TotalConns)-int(s.IdleConns)+int(s.PendingRequests) >= h.size
}

// reloadOnDialErrors makes a Cluster client reload the cluster's state as soon as
// dialling a node fails. With a single attempt per command, go-redis reloads only every
// minute, and the shards of a dead master would be unavailable for that long, although
// its replica is elected within seconds. Requests during a reload are combined into one
// more reload.
func reloadOnDialErrors(client redis.UniversalClient) {
	cluster, ok := client.(*redis.ClusterClient)
	if !ok {
		return
	}
	cluster.OnNewNode(func(node *redis.Client) { node.AddHook(reloadHook{cluster}) })
}

type reloadHook struct{ cluster *redis.ClusterClient }

// DialHook reloads the cluster's state after a failed dial.
func (h reloadHook) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := next(ctx, network, addr)
		if err != nil {
			h.cluster.ReloadState(ctx)
		}
		return conn, err
	}
}

// ProcessHook changes nothing.
func (reloadHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

// ProcessPipelineHook changes nothing.
func (reloadHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

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
