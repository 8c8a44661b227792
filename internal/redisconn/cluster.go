package redisconn

import (
	"context"
	"net"

	"github.com/redis/go-redis/v9"
)

// reloadOnDialErrors lets a Cluster client read the cluster's state again as soon as a
// node cannot be dialled. With a single attempt per command go-redis does so only
// every minute, and the shards of a dead master would stand still for that long,
// although its replica is elected within seconds. Reloads that are asked for while one
// is under way become one more.
func reloadOnDialErrors(client redis.UniversalClient) {
	cluster, ok := client.(*redis.ClusterClient)
	if !ok {
		return
	}
	cluster.OnNewNode(func(node *redis.Client) { node.AddHook(reloadHook{cluster}) })
}

// reloadHook belongs to one node of a Cluster.
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
