package redisconn

import (
	"context"
	"net"

	"github.com/redis/go-redis/v9"
)

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
