package stream

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/internal/platform/redisconn"
	"seckill/internal/testenv"
)

// cluster returns connections to a Redis Cluster of one node that owns all slots: like
// a larger cluster, it rejects commands across two slots.
func cluster(t *testing.T) *redisconn.Conn {
	t.Helper()
	addr := testenv.RedisServer(t, "--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(testenv.ReservePort(t))).Addr()
	single := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, DialTimeout: testenv.Wait, ReadTimeout: testenv.Wait, WriteTimeout: testenv.Wait})
	defer single.Close()
	ctx := context.Background()
	if err := single.ClusterAddSlotsRange(ctx, 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, patience, func() bool {
		info, err := single.ClusterInfo(ctx).Result()
		return err == nil && len(info) > 16 && info[:16] == "cluster_state:ok"
	}, "the cluster does not come up")
	conn, err := redisconn.Open(ctx, testenv.RedisURLAt(addr)+","+addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, ok := conn.Cmd.(*redis.ClusterClient); !ok {
		t.Fatalf("%T", conn.Cmd)
	}
	return conn
}

func TestEverythingWorksOnACluster(t *testing.T) {
	t.Parallel()
	r := newRig(t, cluster(t), "sk:")
	ctx := t.Context()
	r.publish(0, 500)
	r.read("dead", 200)
	r.add("not", "a message")
	r.route(func(msg *Message) error {
		if msg.UUID == name(42) && len(msg.Metadata.Get("cured")) == 0 {
			return Permanent(errors.New("no"))
		}
		return nil
	}, func(c *RouterConfig) {
		c.NewSubscriber = func() (*Subscriber, error) {
			return r.subscriber("one", func(c *SubscriberConfig) { c.ClaimIdle = 300 * time.Millisecond }), nil
		}
	})
	r.settled()
	letters := r.letters()
	if len(letters) != 2 {
		t.Fatalf("letters: %+v", letters)
	}
	for _, l := range letters {
		if l.MessageID == name(42) {
			if ok, err := r.dead.Replay(ctx, l); !ok || err != nil {
				t.Error(ok, err)
			}
		}
	}
	r.settled()
	if n := len(r.letters()); n != 3 {
		t.Errorf("%d letters", n)
	}
	if err := r.dead.Import(ctx); err != nil {
		t.Error(err)
	}
	if _, err := NewTrimmer(r.redis, []string{r.topic, "sk:{s08}:orders"}, r.tally.metrics()).Step(ctx); err != nil {
		t.Error(err)
	}
	if s := r.stats(); s.Length != 1 {
		t.Errorf("%+v", s)
	}
	if err := r.redis.XGroupDestroy(ctx, r.topic, "orders").Err(); err != nil {
		t.Fatal(err)
	}
	r.publish(500, 1)
	testenv.Eventually(t, patience, func() bool { return r.tally.of(GroupLost) == 1 }, "the lost group was not noticed")
	r.settled()
	b := broadcast(t, r.conn, "sk:{bus}:status", r.tally)
	h := follow(t, b)
	send(t, b, "hello")
	testenv.Eventually(t, patience, func() bool { return h.has("hello") }, "not seen")
}
