package audit_test

import (
	"context"
	"net"
	"testing"

	"github.com/redis/go-redis/v9"

	"seckill/internal/buy/order"
	"seckill/internal/buy/reservation"
	"seckill/internal/platform/id"
	"seckill/internal/testdb"
)

// before is a hook that calls do before each command with a name.
type before struct {
	name string
	do   func()
}

func (b *before) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (b *before) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == b.name {
			b.do()
		}
		return next(ctx, cmd)
	}
}

func (b *before) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// giveBack releases the units in Redis that a user has reserved under an id.
func (w *world) giveBack(user id.User, name id.Task) {
	w.Helper()
	_, err := reservation.NewGate(reservation.GateConfig{Client: w.redis.Script, Keys: w.keys}).Release(w.Context(), reservation.Ref{
		Sale: w.sale, Item: w.item, User: user, Task: name,
	})
	w.must(err)
}

func TestAnOrderThatEndsDuringEveryReadingIsNoFinding(t *testing.T) {
	t.Parallel()
	w := setup(t, testdb.Postgres(t))
	w.buy(10)
	w.work(10)
	next := 0
	w.redis.Cmd.AddHook(&before{name: "xinfo", do: func() { // between the first reading of the gate and Postgres
		if next == 5 {
			return
		}
		w.moveOnly(next, order.Expired, nil, false)
		w.giveBack(w.users[next], w.tasks[next])
		w.returned()
		next++
	}})
	if r := w.audit(); !r.OK || r.Drift != 0 || len(r.Lost) != 0 {
		t.Errorf("report %+v", r)
	}
	next = 5
	w.moveOnly(next, order.Expired, nil, false)
	w.returned() // and Redis was not updated
	w.finds("1 reservations in Redis belong to tasks that have ended")
}

func TestAHoldThatIsGivenBackDuringAReadingIsNotLost(t *testing.T) {
	t.Parallel()
	w := setup(t, testdb.Postgres(t))
	users, names := w.users[:5], make([]id.Task, 5) // as many as there are readings
	for i, user := range users {
		names[i] = id.New[id.Task]()
		w.hold(user, names[i])
	}
	w.redis.Cmd.AddHook(&before{name: "xinfo", do: func() {
		w.giveBack(users[0], names[0])
		users, names = users[1:], names[1:]
	}})
	if r := w.audit(); len(users) > 0 || !r.OK || r.Drift != 0 || len(r.Lost) != 0 {
		t.Errorf("%d holds are left, report %+v", len(users), r)
	}
}
