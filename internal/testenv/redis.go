package testenv

import (
	"context"
	"encoding/hex"
	"testing"

	"github.com/google/uuid"

	"seckill/internal/platform/id"
	"seckill/internal/platform/redisconn"
)

// cleanupTimeout bounds the deletion of one test's keys, which scans the keys of all
// tests, possibly on a busy machine.
const cleanupTimeout = Wait

// scanCount is the COUNT of one SCAN.
const scanCount = 5000

// Redis returns connections to the shared private Redis and a new key prefix for the
// test, for example "t3f9a0c11:". Keys under it are deleted when the test ends.
func Redis(t testing.TB) (*redisconn.Conn, string) {
	t.Helper()
	conn, err := redisconn.Open(t.Context(), RedisURL(t))
	if err != nil {
		t.Fatal(err)
	}
	prefix := "t" + hex.EncodeToString(RandomBytes()[:5]) + ":"
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

// RandomBytes returns 8 bytes for a unique name.
func RandomBytes() []byte {
	u := id.New[uuid.UUID]()
	return u[8:]
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
