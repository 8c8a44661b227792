package reservation_test

import (
	"net"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"seckill/internal/buy/reservation"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

func TestAGateFromBeforeARedisRestartIsClosedAtOnce(t *testing.T) {
	t.Parallel()
	server := testenv.RedisServer(t)
	f := newFixture(t, server.Conn().Script, "t:")
	f.open(5)
	a := f.attempt(id.New[id.User]())
	if st, err := f.gate.State(t.Context(), f.sale, f.item); err != nil || st.Stale || st.Gate != reservation.GateOpen {
		t.Fatalf("state %+v %v", st, err)
	}
	server.Kill()
	server.Restart()
	if o := f.reserve(a); o.Code != reservation.NotLoaded {
		t.Errorf("code %d: the gate from before the restart still sells", o.Code)
	}
	if st, err := f.gate.State(t.Context(), f.sale, f.item); err != nil || !st.Stale || st.Epoch != 1 {
		t.Errorf("state %+v %v, want a stale gate that is still there", st, err)
	}
	if got := f.adjust(id.New[id.Act](), -1); got.Code != reservation.AdjustBuilding {
		t.Errorf("its stock may be too high, and a unit was taken off: %+v", got)
	}
	f.open(5, func(g *reservation.Contents) { g.Epoch = 2 })
	a.Permit.Epoch = 2
	f.path(a.User)
	if o := f.reserve(a); o.Code != reservation.Accepted {
		t.Errorf("code %d after the rebuild", o.Code)
	}
}

// A server that replicated from another one and was promoted again has the data of the
// other, but its own run id.
func TestAGateIsStaleAfterAResynchronisationWithoutARestart(t *testing.T) {
	t.Parallel()
	server, other := testenv.RedisServer(t), testenv.RedisServer(t)
	f := newFixture(t, server.Conn().Script, "t:")
	ahead := newFixture(t, other.Conn().Script, "t:")
	ahead.sale, ahead.item = f.sale, f.item
	f.open(5)
	a := f.attempt(id.New[id.User]())
	copyOf(t, f.client, ahead.client, f.keys.Item(id.ShardOf(f.sale), f.item))
	host, port, err := net.SplitHostPort(other.Addr())
	if err != nil {
		t.Fatal(err)
	}
	f.must(f.client.SlaveOf(t.Context(), host, port).Err())
	testenv.Eventually(t, testenv.Wait, func() bool {
		return strings.Contains(f.client.Info(t.Context(), "replication").Val(), "master_link_status:up")
	}, "the server follows the other one")
	f.must(f.client.SlaveOf(t.Context(), "NO", "ONE").Err())
	f.path(a.User)
	if o := f.reserve(a); o.Code != reservation.NotLoaded {
		t.Errorf("code %d on data of another server", o.Code)
	}
	if st, err := f.gate.State(t.Context(), f.sale, f.item); err != nil || !st.Stale {
		t.Errorf("state %+v %v, want a stale gate", st, err)
	}
}

// copyOf copies a key from one server to another.
func copyOf(t *testing.T, from, to redis.UniversalClient, key string) {
	t.Helper()
	dump, err := from.Dump(t.Context(), key).Result()
	if err == nil {
		err = to.RestoreReplace(t.Context(), key, 0, dump).Err()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Without INFO a script cannot detect that Redis lost data since the gate was built.
func TestNoGateIsServedWhereINFOIsRefused(t *testing.T) {
	t.Parallel()
	server := testenv.RedisServer(t)
	f := newFixture(t, server.Conn().Script, "t:")
	f.open(5)
	a := f.attempt(id.New[id.User]())
	f.must(f.client.Do(t.Context(), "ACL", "SETUSER", "shop", "on", ">secret", "~*", "&*", "+@all", "-info").Err())
	url := strings.Replace(server.URL(), "redis://", "redis://shop:secret@", 1)
	shop := reservation.NewGate(reservation.GateConfig{Client: patient(t, url), Keys: f.keys, Timeout: testenv.Wait})
	if o, err := shop.Reserve(t.Context(), a); err != nil || o.Code != reservation.NotLoaded {
		t.Errorf("outcome %+v %v without INFO", o, err)
	}
	if begun, err := shop.Begin(t.Context(), f.sale, f.item, 2); err == nil || begun {
		t.Errorf("a gate is built without INFO: %v %v", begun, err)
	}
	f.want(figures{stock: 5})
}
