package redisconn_test

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"seckill/internal/platform/redisconn"
	"seckill/internal/testenv"
)

// A pool that failed to dial retries once per second, and notices its Close only after
// that pause.
func TestMain(m *testing.M) {
	testenv.Main(m, goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

func open(t *testing.T, url string) *redisconn.Conn {
	t.Helper()
	conn, err := redisconn.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // the server may be stopped
	return conn
}

func TestOpenRefusesWhatIsNoRedis(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"", "http://127.0.0.1:1", "redis://127.0.0.1:1/0", "redis://127.0.0.1:1/zero",
		"redis://127.0.0.1:1,nonsense", "redis://127.0.0.1:1/2,127.0.0.1:2",
		"redis://user:s3cret@127.0.0.1:1:1/0",
	} {
		conn, err := redisconn.Open(t.Context(), url)
		if err == nil {
			t.Errorf("%q was opened", url)
			_ = conn.Close()
			continue
		}
		if strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%q: the error shows the password: %v", url, err)
		}
	}
}

func TestASilentServerIsGivenUpAtTheDeadline(t *testing.T) {
	t.Parallel()
	server := testenv.RedisServer(t)
	conn := open(t, testenv.WithParameters(t, server.URL(), url.Values{"read_timeout": {"1h"}})) // the bound without a deadline
	server.Pause()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	for name, client := range map[string]redis.UniversalClient{"cmd": conn.Cmd, "script": conn.Script} {
		ended := make(chan error, 1)
		go func() { ended <- client.Ping(ctx).Err() }()
		select {
		case err := <-ended:
			if err == nil {
				t.Errorf("%s: a silent server answered", name)
			}
		case <-time.After(testenv.Wait):
			t.Errorf("%s: still waiting after the deadline", name)
			<-ended
		}
	}
}

func TestAScriptWhoseReplyIsLostIsNotRunTwice(t *testing.T) {
	t.Parallel()
	direct, prefix := testenv.Redis(t)
	proxy := testenv.NewProxy(t, testenv.RedisAddr(t))
	conn := open(t, testenv.RedisURLAt(proxy.Addr()))
	take := redis.NewScript(`return redis.call('INCR', KEYS[1])`)
	if err := take.Load(t.Context(), conn.Script).Err(); err != nil {
		t.Fatal(err)
	}
	for name, client := range map[string]redis.UniversalClient{"script": conn.Script, "new client": newClient(t, conn)} {
		key := prefix + name
		proxy.LoseReplyTo(key)
		if err := take.EvalSha(t.Context(), client, []string{key}).Err(); err == nil {
			t.Errorf("%s: no error although the reply was lost", name)
		}
		if n := direct.Cmd.Get(t.Context(), key).Val(); n != "1" {
			t.Errorf("%s: ran %s times", name, n)
		}
	}
}

func TestAPlainCommandSurvivesACutConnection(t *testing.T) {
	t.Parallel()
	_, prefix := testenv.Redis(t)
	proxy := testenv.NewProxy(t, testenv.RedisAddr(t))
	conn := open(t, testenv.RedisURLAt(proxy.Addr()))
	proxy.LoseReplyTo(prefix + "k")
	if err := conn.Cmd.Set(t.Context(), prefix+"k", "v", 0).Err(); err != nil {
		t.Errorf("not tried again: %v", err)
	}
}

func TestABlockingReadOutlastsTheOrdinaryTimeout(t *testing.T) {
	t.Parallel()
	conn, prefix := testenv.Redis(t)
	client := conn.NewBlocking()
	defer client.Close()
	streams := &redis.XReadArgs{Streams: []string{prefix + "s", "$"}, Block: 700 * time.Millisecond}
	if err := client.XRead(t.Context(), streams).Err(); !errors.Is(err, redis.Nil) {
		t.Errorf("ended with %v, want nothing read", err)
	}
}

func TestTheURLSetsTimeouts(t *testing.T) {
	t.Parallel()
	conn := open(t, "redis://"+testenv.RedisAddr(t)+"/0?dial_timeout=7s&read_timeout=8s&write_timeout=9s&pool_timeout=10s")
	for name, client := range map[string]redis.UniversalClient{"cmd": conn.Cmd, "script": conn.Script} {
		o := client.(*redis.Client).Options() // one server
		if o.DialTimeout != 7*time.Second || o.ReadTimeout != 8*time.Second || o.WriteTimeout != 9*time.Second || o.PoolTimeout != 10*time.Second {
			t.Errorf("%s: dial %s, read %s, write %s, pool %s", name, o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout)
		}
	}
}

func TestAServerThatEvictsIsRefused(t *testing.T) {
	t.Parallel()
	server := testenv.RedisServer(t)
	conn := open(t, server.URL())
	if err := conn.Check(t.Context()); err != nil {
		t.Errorf("noeviction is refused: %v", err)
	}
	if err := conn.Cmd.ConfigSet(t.Context(), "maxmemory-policy", "allkeys-lru").Err(); err != nil {
		t.Fatal(err)
	}
	if err := conn.Check(t.Context()); !errors.Is(err, redisconn.ErrEvicts) {
		t.Errorf("allkeys-lru: %v, want ErrEvicts", err)
	}
}

func TestAServerThatRefusesINFOIsRefused(t *testing.T) {
	t.Parallel()
	server := testenv.RedisServer(t)
	admin := open(t, server.URL())
	if err := admin.Cmd.Do(t.Context(), "ACL", "SETUSER", "app", "on", ">pw", "~*", "+@all", "-info").Err(); err != nil {
		t.Fatal(err)
	}
	conn := open(t, strings.Replace(server.URL(), "redis://", "redis://app:pw@", 1))
	if err := conn.Check(t.Context()); !errors.Is(err, redisconn.ErrNoInfo) || !strings.Contains(err.Error(), "ACL SETUSER app +info") {
		t.Errorf("check: %v", err)
	}
}

func TestAServerThatHidesItsPolicyIsReported(t *testing.T) {
	t.Parallel()
	server := testenv.RedisServer(t)
	admin := open(t, server.URL())
	if err := admin.Cmd.Do(t.Context(), "ACL", "SETUSER", "app", "on", ">pw", "~*", "+@all", "-config").Err(); err != nil {
		t.Fatal(err)
	}
	conn := open(t, strings.Replace(server.URL(), "redis://", "redis://app:pw@", 1))
	if err := conn.Check(t.Context()); err != nil {
		t.Errorf("refused: %v", err)
	}
	found, err := conn.Findings(t.Context())
	if err != nil || !slices.ContainsFunc(found, func(f string) bool { return strings.Contains(f, "policy is unknown") }) {
		t.Errorf("findings %q, %v; want that the policy is unknown", found, err)
	}
}

func TestServersReportVersionRunIDAndClock(t *testing.T) {
	t.Parallel()
	server := testenv.RedisServer(t)
	conn := open(t, server.URL())
	before, err := conn.Servers(t.Context())
	if err != nil || len(before) != 1 {
		t.Fatalf("%+v, %v", before, err)
	}
	s := before[0]
	if s.Addr != server.Addr() || s.Version == "" || s.RunID == "" || s.Policy != "noeviction" || s.AppendOnly != "yes" {
		t.Errorf("server says %+v", s)
	}
	if skew := time.Since(s.Now).Abs(); skew > time.Minute {
		t.Errorf("clock is %s away on one machine", skew)
	}
	server.Restart()
	after, err := conn.Servers(t.Context())
	if err != nil || after[0].RunID == s.RunID {
		t.Errorf("run id after a restart: %+v, %v", after, err)
	}
}

func TestAListOfAddressesIsACluster(t *testing.T) {
	t.Parallel()
	server := testenv.RedisServer(t, "--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(testenv.ReservePort(t)))
	admin := server.Conn().Cmd
	if err := admin.Do(t.Context(), "CLUSTER", "ADDSLOTSRANGE", 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, testenv.Wait, func() bool {
		return strings.Contains(admin.ClusterInfo(t.Context()).Val(), "cluster_state:ok")
	}, "the cluster is formed")
	conn := open(t, strings.Replace(server.URL(), "/0?", ","+server.Addr()+"?", 1))
	if err := conn.Check(t.Context()); err != nil {
		t.Errorf("check: %v", err)
	}
	if found, err := conn.Servers(t.Context()); err != nil || len(found) != 1 {
		t.Errorf("servers %+v, %v", found, err)
	}
	keys := []string{"{s07}:a", "{s07}:b"}
	if err := conn.Script.Eval(t.Context(), "return redis.call('MSET', KEYS[1], 1, KEYS[2], 2)", keys).Err(); err != nil {
		t.Errorf("script over one shard: %v", err)
	}
}

func TestTheEmbeddedServerWillDo(t *testing.T) {
	t.Parallel()
	server := miniredis.RunT(t)
	conn := open(t, testenv.RedisURLAt(server.Addr()))
	if err := conn.Check(t.Context()); err != nil {
		t.Errorf("check: %v", err)
	}
	if err := conn.Script.Eval(t.Context(), "return 1", nil).Err(); err != nil {
		t.Errorf("script: %v", err)
	}
}

func newClient(t *testing.T, conn *redisconn.Conn) redis.UniversalClient {
	t.Helper()
	client := conn.NewClient()
	t.Cleanup(func() { _ = client.Close() }) // its connections were cut
	return client
}
