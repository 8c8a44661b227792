package redisconn_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/internal/testenv"
)

// busyFor is the minimum time that a call must be able to wait for a connection: the
// calls in the first second of a sale keep all connections in use for about that long.
const busyFor = 300 * time.Millisecond

func TestACallWaitsForAConnectionThatIsInUse(t *testing.T) {
	t.Parallel()
	conn := open(t, "redis://"+testenv.RedisAddr(t)+"/0?dial_timeout=2m&read_timeout=2m&write_timeout=2m") // with the product's pool timeout
	client := conn.Script.(*redis.Client)                                                                  // one server
	for range client.Options().PoolSize {
		held := client.Conn()
		if err := held.Ping(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		defer held.Close()
	}
	began := time.Now()
	err := client.Ping(t.Context()).Err()
	if waited := time.Since(began); err == nil || waited < busyFor {
		t.Errorf("a call without a connection ended with %v after %s, want an error after %s at the earliest", err, waited, busyFor)
	}
}
