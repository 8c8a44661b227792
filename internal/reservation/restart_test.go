package reservation_test

import (
	"testing"

	"seckill/internal/id"
	"seckill/internal/reservation"
	"seckill/internal/testenv"
)

func TestAGateOfAnotherLifeOfTheServerIsClosedAtOnce(t *testing.T) {
	t.Parallel()
	server := testenv.RedisServer(t)
	f := newFixture(t, server.Conn().Script, "t:")
	f.open(5)
	a := f.attempt(id.New())
	if st, err := f.gate.State(t.Context(), f.sale, f.item); err != nil || st.Stale || st.Gate != reservation.GateOpen {
		t.Fatalf("state %+v %v", st, err)
	}
	server.Kill()
	server.Restart()
	if o := f.reserve(a); o.Code != reservation.NotLoaded {
		t.Errorf("code %d: the gate of before the restart still sells", o.Code)
	}
	if st, err := f.gate.State(t.Context(), f.sale, f.item); err != nil || !st.Stale || st.Epoch != 1 {
		t.Errorf("state %+v %v, want a foreign gate that is still there", st, err)
	}
	f.open(5, func(g *reservation.Contents) { g.Epoch = 2 })
	f.path(a.User, 2, "token")
	if o := f.reserve(a); o.Code != reservation.Accepted {
		t.Errorf("code %d after the gate was built anew", o.Code)
	}
}
