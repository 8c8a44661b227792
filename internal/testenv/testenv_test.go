package testenv_test

import (
	"context"
	"testing"
	"time"

	"seckill/internal/testenv"
)

func TestKeysAreDeletedWithTheTest(t *testing.T) {
	t.Parallel()
	conn, other := testenv.Redis(t)
	var prefix string
	t.Run("made", func(t *testing.T) {
		mine, p := testenv.Redis(t)
		prefix = p
		for _, key := range []string{p + "a", p + "{s07}:b"} {
			if err := mine.Cmd.Set(t.Context(), key, 1, 0).Err(); err != nil {
				t.Fatal(err)
			}
		}
	})
	if prefix == other {
		t.Error("two tests have the same prefix")
	}
	if n := conn.Cmd.Exists(t.Context(), prefix+"a", prefix+"{s07}:b").Val(); n != 0 {
		t.Errorf("%d keys are left", n)
	}
}

func TestAServerComesBackWithItsData(t *testing.T) {
	t.Parallel()
	server := testenv.RedisServer(t)
	conn := server.Conn()
	if err := conn.Cmd.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	server.Kill()
	if err := conn.Cmd.Get(t.Context(), "k").Err(); err == nil {
		t.Fatal("a killed server answers")
	}
	server.Restart()
	if v, err := conn.Cmd.Get(t.Context(), "k").Result(); err != nil || v != "v" {
		t.Errorf("after the restart: %q, %v", v, err)
	}
	server.FlushAll()
	if n := conn.Cmd.DBSize(t.Context()).Val(); n != 0 {
		t.Errorf("%d keys after FlushAll", n)
	}
}

func TestAPausedServerIsSilent(t *testing.T) {
	t.Parallel()
	server := testenv.RedisServer(t)
	conn := server.Conn()
	server.Pause()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := conn.Script.Ping(ctx).Err(); err == nil {
		t.Error("a paused server answers")
	}
	server.Resume()
	testenv.Eventually(t, testenv.Wait, func() bool { return conn.Cmd.Ping(t.Context()).Err() == nil }, "answers again")
}
