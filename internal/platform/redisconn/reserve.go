package redisconn

import (
	"context"
	"net"

	"github.com/redis/go-redis/v9"

	"seckill/internal/platform/priority"
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
