package redisconn_test

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/internal/redisconn"
	"seckill/internal/testenv"
)

const (
	masters = 3
	slots   = 16384
)

// clusterNode is a test server with its own client.
type clusterNode struct {
	*testenv.RedisProcess
	client *redis.Client
	bus    int
	id     string
}

// startCluster starts three masters with a replica each and returns them, masters
// first; node i+3 replicates node i.
func startCluster(t *testing.T) []*clusterNode {
	t.Helper()
	ctx := t.Context()
	nodes := make([]*clusterNode, 2*masters)
	for i := range nodes {
		bus := testenv.ReservePort(t)
		n := &clusterNode{bus: bus, RedisProcess: testenv.RedisServer(t,
			"--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(bus), "--cluster-node-timeout", "2000")}
		n.client = redis.NewClient(&redis.Options{Addr: n.Addr(), MaxRetries: -1})
		t.Cleanup(func() { _ = n.client.Close() })
		var err error
		if n.id, err = n.client.ClusterMyID(ctx).Result(); err != nil {
			t.Fatal(err)
		}
		nodes[i] = n
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for i, n := range nodes {
		if i < masters {
			must(n.client.ClusterAddSlotsRange(ctx, i*slots/masters, (i+1)*slots/masters-1).Err())
			must(n.client.Do(ctx, "cluster", "set-config-epoch", i+1).Err())
		}
		if i > 0 {
			_, port, _ := net.SplitHostPort(nodes[0].Addr())
			must(n.client.Do(ctx, "cluster", "meet", "127.0.0.1", port, nodes[0].bus).Err())
		}
	}
	for i, n := range nodes[masters:] {
		testenv.Eventually(t, testenv.Wait, func() bool {
			return n.client.ClusterReplicate(ctx, nodes[i].id).Err() == nil
		}, "the replica does not know its master")
	}
	for i, n := range nodes {
		testenv.Eventually(t, testenv.Wait, func() bool {
			info, err := n.client.ClusterInfo(ctx).Result()
			return err == nil && strings.Contains(info, "cluster_state:ok") &&
				strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d", 2*masters))
		}, "the cluster does not come up")
		if i >= masters {
			testenv.Eventually(t, testenv.Wait, func() bool {
				info, err := n.client.Info(ctx, "replication").Result()
				return err == nil && strings.Contains(info, "master_link_status:up")
			}, "the replica does not follow its master")
		}
	}
	return nodes
}

// keyOf returns a key whose slot belongs to a master.
func keyOf(t *testing.T, nodes []*clusterNode, master int) string {
	t.Helper()
	for i := range slots {
		key := "k" + strconv.Itoa(i)
		slot, err := nodes[0].client.ClusterKeySlot(t.Context(), key).Result()
		if err != nil {
			t.Fatal(err)
		}
		if int(slot) >= master*slots/masters && int(slot) <= (master+1)*slots/masters-1 {
			return key
		}
	}
	t.Fatal("no key for the master")
	return ""
}

// The script client never retries, so only the next command can reach the promoted
// replica. That takes the node timeout, the election of the replica and one reload.
func TestADeadMasterStopsItsSlotsForSeconds(t *testing.T) {
	t.Parallel()
	nodes := startCluster(t)
	conn, err := redisconn.Open(t.Context(), "redis://"+nodes[0].Addr()+","+nodes[1].Addr()+","+nodes[2].Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	const dead = 1
	key := keyOf(t, nodes, dead)
	write := func(ctx context.Context) error { return conn.Script.Incr(ctx, key).Err() }
	for range 100 {
		if err := write(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	nodes[dead].Kill()
	killed := time.Now()
	testenv.Eventually(t, testenv.Wait, func() bool { return write(t.Context()) == nil }, "the slots of a dead master stay unreachable")
	recovery := time.Since(killed)
	n, err := conn.Script.Get(t.Context(), key).Int()
	if err != nil || n != 101 {
		t.Errorf("%d writes, %v, want 101", n, err)
	}
	testenv.RecordFault(t, testenv.FaultRow{
		Fault: "Redis Cluster master killed (writes, not orders)", Accepted: 101, Stored: n, Recovery: recovery, MaxRecovery: testenv.MaxDeadMasterRecovery,
	})
}
