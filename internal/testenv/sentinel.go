package testenv

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Settings of Sentinels.
const (
	sentinels = 3
	// sentinelMaster is the name of the master.
	sentinelMaster = "shop"
	// sentinelPatience is how long a master does not answer before it counts as down, in
	// milliseconds: long enough for a busy machine.
	sentinelPatience = 2000
)

// Sentinels are a master, its replica and three Sentinels that watch them.
type Sentinels struct {
	t     testing.TB
	nodes []*RedisProcess // the first was the master at the start
	addrs []string        // of the Sentinels
}

// RedisSentinels starts a master, a replica and three Sentinels, and waits until the
// replica follows the master and the Sentinels know each other. They are stopped when the
// test ends.
func RedisSentinels(t testing.TB) *Sentinels {
	t.Helper()
	master := RedisServer(t)
	host, port, err := net.SplitHostPort(master.Addr())
	if err != nil {
		t.Fatal(err)
	}
	s := &Sentinels{t: t, nodes: []*RedisProcess{master, RedisServer(t, "--replicaof", host+" "+port)}}
	Eventually(t, Wait, func() bool {
		return strings.Contains(s.nodes[1].Conn().Cmd.Info(t.Context(), "replication").Val(), "master_link_status:up")
	}, "the replica follows the master")
	caughtUp(t, master.Conn().Cmd)
	for range sentinels {
		s.startSentinel(host, port)
	}
	for _, addr := range s.addrs {
		Eventually(t, Wait, func() bool {
			known, err := s.ask(addr, "sentinels")
			replicas, err2 := s.ask(addr, "replicas")
			return err == nil && err2 == nil && len(known) == sentinels-1 && len(replicas) == len(s.nodes)-1
		}, "the sentinel knows the others and the replica")
	}
	return s
}

func (s *Sentinels) ask(addr, what string) ([]any, error) {
	client := redis.NewClient(patientOptions(addr))
	defer func() { _ = client.Close() }()
	return client.Do(s.t.Context(), "sentinel", what, sentinelMaster).Slice()
}

func (s *Sentinels) startSentinel(host, port string) {
	s.t.Helper()
	dir, addr := s.t.TempDir(), ReserveAddr(s.t)
	_, own, err := net.SplitHostPort(addr)
	if err != nil {
		s.t.Fatal(err)
	}
	conf := fmt.Sprintf("port %s\nbind 127.0.0.1\ndir %s\nlogfile %s\nsentinel monitor %[4]s %s %s 2\nsentinel down-after-milliseconds %[4]s %[7]d\n"+
		"sentinel failover-timeout %[4]s 10000\n", own, dir, filepath.Join(dir, "log"), sentinelMaster, host, port,
		sentinelPatience)
	path := filepath.Join(dir, "sentinel.conf")
	if err := os.WriteFile(path, []byte(conf), 0o600); err != nil {
		s.t.Fatal(err)
	}
	cmd := exec.CommandContext(context.Background(), "redis-server", path, "--sentinel")
	if err := cmd.Start(); err != nil {
		s.t.Fatalf("%v: run `make services`, which installs it", err)
	}
	s.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed
	})
	s.addrs = append(s.addrs, addr)
}

// URL returns the address for the product, with timeouts that a busy machine does not
// exceed.
func (s *Sentinels) URL() string {
	return "redis+sentinel://" + strings.Join(s.addrs, ",") + "/" + sentinelMaster + "?db=0&" + redisTimeouts().Encode()
}

// KillMaster kills the process that the Sentinels name as the master now.
func (s *Sentinels) KillMaster() {
	s.t.Helper()
	at, err := s.ask(s.addrs[0], "get-master-addr-by-name")
	if err != nil {
		s.t.Fatal(err)
	}
	for _, n := range s.nodes {
		if len(at) == 2 && n.Addr() == fmt.Sprintf("%v:%v", at[0], at[1]) {
			n.Kill()
			return
		}
	}
	s.t.Fatalf("no process is the master at %v", at)
}
