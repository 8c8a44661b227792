package redisconn_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/internal/testenv"
)

// busyFor is longer than it is wise to refuse a crowd after, and well below what a
// caller waits.
const busyFor = 300 * time.Millisecond

// The crowd of an opening second waits its turn for a connection. A busy machine may
// need a second look.
func TestACrowdWaitsForConnectionsThatAreInUse(t *testing.T) {
	t.Parallel()
	conn := open(t, testenv.RedisURL(t))
	var err error
	for range 5 {
		if err = crowd(t, conn.Script.(*redis.Client)); err == nil { //nolint:forcetypeassert // one server
			return
		}
	}
	t.Errorf("who waited for a connection was told %v", err)
}

// crowd lets two hundred ask while every connection is in use, and returns what went
// wrong for the last of them.
func crowd(t *testing.T, client *redis.Client) (failed error) {
	t.Helper()
	held := make([]*redis.Conn, client.Options().PoolSize)
	for i := range held {
		held[i] = client.Conn()
		if err := held[i].Ping(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
	}
	answers := make(chan error, 200)
	var wg sync.WaitGroup
	for range cap(answers) {
		wg.Go(func() { answers <- client.Ping(t.Context()).Err() })
	}
	<-time.After(busyFor)
	for _, c := range held {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	wg.Wait()
	close(answers)
	for err := range answers {
		failed = errors.Join(failed, err)
	}
	return failed
}
