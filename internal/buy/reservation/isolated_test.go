package reservation_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

// A master that its replicas cannot reach accepts orders that the new master will not
// have. With min-replicas-to-write it refuses instead, before it takes a unit.
func TestAnIsolatedMasterWithMinReplicasToWriteReservesNothing(t *testing.T) {
	t.Parallel()
	server := testenv.RedisServer(t)
	client := patient(t, server.URL())
	f := newFixture(t, client, "isolated:")
	f.open(5)
	accepted, refused := f.attempt(id.New[id.User]()), f.attempt(id.New[id.User]())
	f.reserve(accepted)
	before := f.figures()
	f.must(client.ConfigSet(t.Context(), "min-replicas-to-write", "1").Err()) // it has no replica
	if out, err := f.gate.Reserve(t.Context(), refused); !redis.HasErrorPrefix(err, "NOREPLICAS") {
		t.Errorf("%+v, %v, want the refusal of the server", out, err)
	}
	f.want(before)
	if orders := f.orders(); len(orders) != 1 || orders[0].Task != accepted.Task {
		t.Errorf("messages %+v", orders)
	}
	f.must(client.ConfigSet(t.Context(), "min-replicas-to-write", "0").Err())
	f.reserve(refused)
}
