package redisconn_test

import (
	"context"
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"

	"seckill/internal/platform/priority"
	"seckill/internal/platform/redisconn"
	"seckill/internal/testenv"
)

// impatient are timeouts that a busy machine does not exceed, except for a connection of the
// pool.
const impatient = "?dial_timeout=2m&read_timeout=2m&write_timeout=2m&pool_timeout=10ms"

func TestUrgentCommandsDoNotWaitForConnectionsThatOthersUse(t *testing.T) {
	t.Parallel()
	urgentCommandsPass(t, open(t, "redis://"+testenv.RedisServer(t).Addr()+"/0"+impatient))
}

// urgentCommandsPass takes all connections and requires that urgent commands pass.
func urgentCommandsPass(t *testing.T, conn *redisconn.Conn) {
	t.Helper()
	for _, client := range []redis.UniversalClient{conn.Cmd, conn.Script} {
		holdAll(t, client)
		const key = "urgent"
		usual, urgent := t.Context(), priority.Urgent(t.Context())
		if err := client.Set(usual, key, 1, 0).Err(); err == nil {
			t.Error("a command of buyers found a connection")
		}
		if err := client.Set(urgent, key, 1, 0).Err(); err != nil {
			t.Errorf("SET: %v", err)
		}
		pipe := client.Pipeline()
		got, wrong := pipe.Get(urgent, key), pipe.HGet(urgent, key, "field")
		if redisconn.ExecEach(urgent, pipe); got.Val() != "1" || !redis.HasErrorPrefix(wrong.Err(), "WRONGTYPE") {
			t.Errorf("a pipeline: %q %v, %v", got.Val(), got.Err(), wrong.Err())
		}
		var sum *redis.IntCmd
		if _, err := client.TxPipelined(urgent, func(tx redis.Pipeliner) error {
			tx.Incr(urgent, key)
			sum = tx.IncrBy(urgent, key, 2)
			return nil
		}); err != nil || sum.Val() != 4 {
			t.Errorf("a transaction: %d %v", sum.Val(), err)
		}
		if one, err := redis.NewScript("return 1").Run(urgent, client, []string{key}).Int(); one != 1 || err != nil {
			t.Errorf("a script: %d %v", one, err)
		}
	}
}

// holdAll takes all connections of a client, in a Cluster those to each master.
func holdAll(t *testing.T, client redis.UniversalClient) {
	t.Helper()
	hold := func(ctx context.Context, node *redis.Client) error {
		for range node.Options().PoolSize {
			conn := node.Conn()
			t.Cleanup(func() { _ = conn.Close() })
			if err := conn.Ping(ctx).Err(); err != nil {
				return err
			}
		}
		return nil
	}
	if err := client.Get(t.Context(), "k").Err(); err != nil && !errors.Is(err, redis.Nil) { // reads the state of a Cluster
		t.Fatal(err)
	}
	var err error
	switch c := client.(type) {
	case *redis.Client:
		err = hold(t.Context(), c)
	case *redis.ClusterClient:
		err = c.ForEachMaster(t.Context(), hold)
	}
	if err != nil {
		t.Fatal(err)
	}
}
