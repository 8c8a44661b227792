package redisconn_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"seckill/internal/platform/redisconn"
	"seckill/internal/testenv"
)

// The script client never retries, so only the next command can reach the promoted
// replica. That takes the node timeout, the election of the replica and one reload.
func TestADeadMasterStopsItsSlotsForSeconds(t *testing.T) {
	t.Parallel()
	cluster := testenv.RedisCluster(t)
	conn, err := redisconn.Open(t.Context(), cluster.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	address, _, _ := strings.Cut(cluster.URL(), "?")
	urgentCommandsPass(t, open(t, address+impatient))
	const key = "k"
	write := func(ctx context.Context) error { return conn.Script.Incr(ctx, key).Err() }
	for range 100 {
		if err := write(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	cluster.AwaitReplicaOf(key)
	cluster.KillMasterOf(key)
	killed := time.Now()
	testenv.Eventually(t, testenv.Wait, func() bool { return write(t.Context()) == nil }, "the slots of a dead master stay unreachable")
	recovery := time.Since(killed)
	n := 0
	testenv.Eventually(t, testenv.Wait, func() bool {
		n, err = conn.Script.Get(t.Context(), key).Int()
		return err == nil
	}, "the writes are read")
	if n < 101 { // more after a write whose answer was lost
		t.Errorf("%d writes, want 101", n)
	}
	testenv.RecordFault(t, testenv.FaultRow{
		Fault: "Redis Cluster master killed (writes, not orders)", Accepted: 101, Stored: n, Recovery: recovery, MaxRecovery: testenv.MaxDeadMasterRecovery,
	})
}
