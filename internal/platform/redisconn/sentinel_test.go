package redisconn_test

import (
	"testing"

	"seckill/internal/platform/redisconn"
	"seckill/internal/testenv"
)

// The script client never retries, so only the next command can reach the new master. It
// takes the 2 s after which a master counts as down, and the election.
func TestTheMasterThatSentinelsNameIsFollowed(t *testing.T) {
	t.Parallel()
	servers := testenv.RedisSentinels(t)
	conn := open(t, servers.URL())
	write := func() error { return conn.Script.Incr(t.Context(), "k").Err() }
	for range 100 {
		if err := write(); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := conn.Cmd.Do(t.Context(), "WAIT", 1, 0).Int(); err != nil || n != 1 {
		t.Fatalf("%d replicas have the writes, %v", n, err)
	}
	before, err := conn.Servers(t.Context())
	if err != nil || len(before) != 1 || before[0].RunID == "" {
		t.Fatalf("servers %+v, %v", before, err)
	}
	servers.KillMaster()
	testenv.Eventually(t, testenv.Wait, func() bool { return write() == nil }, "the new master takes writes")
	if n, err := conn.Script.Get(t.Context(), "k").Int(); err != nil || n < 101 {
		t.Errorf("%d writes, %v, want 101", n, err)
	}
	testenv.Eventually(t, testenv.Wait, func() bool { // each client follows the sentinels by itself
		after, err := conn.Servers(t.Context())
		return err == nil && after[0].RunID != "" && after[0].RunID != before[0].RunID
	}, "the servers are those of another process")
}

func TestOpenRefusesWhatNamesNoMaster(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"redis+sentinel://127.0.0.1:1", "redis+sentinel://127.0.0.1:1,127.0.0.1:2/", "redis+sentinel:///shop",
		"redis+sentinel://127.0.0.1:1/shop?db=x", "redis+sentinel://127.0.0.1:1/shop?colour=red", "rediss://127.0.0.1:1?ca=/none",
	} {
		conn, err := redisconn.Open(t.Context(), url)
		if err == nil {
			t.Errorf("%q was opened", url)
			_ = conn.Close()
		}
	}
}
