package testenv

import (
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

const (
	clusterMasters = 3
	clusterSlots   = 16384
)

// Cluster is a Redis Cluster of three masters with a replica each.
type Cluster struct {
	t     testing.TB
	nodes []*clusterNode // the masters first; node i+3 replicates node i
}

// clusterNode is a server of a Cluster with its own client.
type clusterNode struct {
	*RedisProcess
	client *redis.Client
	bus    int
	id     string
}

// RedisCluster starts three masters with a replica each, and waits until they serve. They
// are stopped when the test ends.
func RedisCluster(t testing.TB) *Cluster {
	t.Helper()
	c := &Cluster{t: t}
	for range 2 * clusterMasters {
		bus := ReservePort(t)
		n := &clusterNode{bus: bus, RedisProcess: RedisServer(t,
			"--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(bus), "--cluster-node-timeout", "15000")}
		n.client = redis.NewClient(patientOptions(n.Addr()))
		t.Cleanup(func() { _ = n.client.Close() })
		var err error
		n.id, err = n.client.ClusterMyID(t.Context()).Result()
		c.must(err)
		c.nodes = append(c.nodes, n)
	}
	c.meet()
	for i, n := range c.nodes[clusterMasters:] {
		Eventually(t, Wait, func() bool {
			return n.client.ClusterReplicate(t.Context(), c.nodes[i].id).Err() == nil
		}, "the replica does not know its master")
	}
	for i, n := range c.nodes {
		Eventually(t, Wait, func() bool {
			info, err := n.client.ClusterInfo(t.Context()).Result()
			return err == nil && strings.Contains(info, "cluster_state:ok") &&
				strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d", 2*clusterMasters))
		}, "the cluster does not come up")
		if i >= clusterMasters {
			Eventually(t, Wait, func() bool {
				info, err := n.client.Info(t.Context(), "replication").Result()
				return err == nil && strings.Contains(info, "master_link_status:up")
			}, "the replica does not follow its master")
			caughtUp(t, c.nodes[i-clusterMasters].client)
		}
	}
	return c
}

// meet assigns the slots to the masters, and introduces all nodes to the first one.
func (c *Cluster) meet() {
	c.t.Helper()
	ctx := c.t.Context()
	for i, n := range c.nodes {
		if i < clusterMasters {
			c.must(n.client.ClusterAddSlotsRange(ctx, i*clusterSlots/clusterMasters, (i+1)*clusterSlots/clusterMasters-1).Err())
			c.must(n.client.Do(ctx, "cluster", "set-config-epoch", i+1).Err())
		}
		if i > 0 {
			_, port, _ := net.SplitHostPort(c.nodes[0].Addr())
			c.must(n.client.Do(ctx, "cluster", "meet", "127.0.0.1", port, c.nodes[0].bus).Err())
		}
	}
}

func (c *Cluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// patientOptions returns the options of a client that does not retry, with timeouts that a
// busy machine does not exceed.
func patientOptions(addr string) *redis.Options {
	return &redis.Options{Addr: addr, MaxRetries: -1, DialTimeout: Wait, ReadTimeout: Wait, WriteTimeout: Wait}
}

// URL returns the URL of the masters, with timeouts that a busy machine does not exceed.
func (c *Cluster) URL() string {
	addrs := make([]string, clusterMasters)
	for i, n := range c.nodes[:clusterMasters] {
		addrs[i] = n.Addr()
	}
	return "redis://" + strings.Join(addrs, ",") + "?" + redisTimeouts().Encode()
}

// AwaitReplicaOf waits until the replica of a key's master has all writes acknowledged so far.
func (c *Cluster) AwaitReplicaOf(key string) {
	c.t.Helper()
	caughtUp(c.t, c.masterOf(key).client)
}

var masterOffset = regexp.MustCompile(`\bmaster_repl_offset:(\d+)`)

// caughtUp waits until the only replica of a master has its writes. A replica reports its link
// as up before the master sends it what was written during the first synchronization.
func caughtUp(t testing.TB, master redis.Cmdable) {
	t.Helper()
	Eventually(t, Wait, func() bool {
		info, err := master.Info(t.Context(), "replication").Result()
		written := masterOffset.FindStringSubmatch(info)
		return err == nil && written != nil && strings.Contains(info, "state=online,offset="+written[1]+",")
	}, "the replica has the writes of its master")
}

// KillMasterOf kills the server that was the master of a key at the start, by SIGKILL. It
// first shortens the node timeout: until then, a stall of the machine causes no failover.
func (c *Cluster) KillMasterOf(key string) {
	c.t.Helper()
	for _, n := range c.nodes {
		c.must(n.client.ConfigSet(c.t.Context(), "cluster-node-timeout", "2000").Err())
	}
	c.masterOf(key).Kill()
}

// masterOf returns the server that was the master of a key at the start.
func (c *Cluster) masterOf(key string) *clusterNode {
	c.t.Helper()
	slot, err := c.nodes[len(c.nodes)-1].client.ClusterKeySlot(c.t.Context(), key).Result()
	c.must(err)
	for i, n := range c.nodes[:clusterMasters] {
		if int(slot) < (i+1)*clusterSlots/clusterMasters {
			return n
		}
	}
	c.t.Fatalf("slot %d of %s", slot, key)
	return nil
}
