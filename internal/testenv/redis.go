package testenv

import (
	"context"
	"encoding/hex"
	"errors"
	"net"
	"testing"
	"time"

	"seckill/internal/redisconn"
)

// cleanupTimeout bounds deleting the keys of one test: a look at those of all
// tests, on a machine that may be busy.
const cleanupTimeout = time.Minute

// openTimeout bounds opening connections on a machine that is busy with other tests.
const openTimeout = 30 * time.Second

// scanCount is how many keys one SCAN looks at.
const scanCount = 5000

// Redis returns connections to the shared private Redis and a key prefix of the
// test's own, for example "t3f9a0c11:". Keys under it are deleted when the test
// ends.
func Redis(t testing.TB) (*redisconn.Conn, string) {
	t.Helper()
	conn := open(t)
	prefix := "t" + hex.EncodeToString(idBytes()[:5]) + ":"
	t.Cleanup(func() {
		if err := deleteKeys(conn, prefix); err != nil {
			t.Errorf("delete the test's keys: %v", err)
		}
		if err := conn.Close(); err != nil {
			t.Errorf("close the test's redis: %v", err)
		}
	})
	return conn, prefix
}

// open connects to the shared Redis, again where that took too long: many tests at
// once may keep it busy for longer than the product waits.
func open(t testing.TB) *redisconn.Conn {
	t.Helper()
	for began := time.Now(); ; {
		conn, err := redisconn.Open(t.Context(), RedisURL(t))
		if err == nil {
			return conn
		}
		if late, ok := errors.AsType[net.Error](err); !ok || !late.Timeout() || time.Since(began) > openTimeout {
			t.Fatal(err)
		}
	}
}

func deleteKeys(conn *redisconn.Conn, prefix string) error {
	ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
	defer cancel()
	var cursor uint64
	for {
		keys, next, err := conn.Cmd.Scan(ctx, cursor, prefix+"*", scanCount).Result()
		if err != nil {
			return err
		}
		if len(keys) > 0 {
			if err := conn.Cmd.Unlink(ctx, keys...).Err(); err != nil {
				return err
			}
		}
		if next == 0 {
			return nil
		}
		cursor = next
	}
}
