package preload_test

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/ent"
	"seckill/internal/buy/order"
	"seckill/internal/buy/reservation"
	"seckill/internal/pay/payment"
	"seckill/internal/platform/id"
)

// meanwhile runs do once, between a build's read of Postgres and the step that opens
// its gate.
type meanwhile struct {
	redis.Hook
	once sync.Once
	do   func()
}

func (m *meanwhile) DialHook(next redis.DialHook) redis.DialHook { return next }

func (m *meanwhile) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (m *meanwhile) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if slices.Contains(cmd.Args(), any("srev")) {
			m.once.Do(m.do)
		}
		return next(ctx, cmd)
	}
}

func TestAUnitThatIsReturnedWhileItsGateIsBuiltComesBackOnceItStands(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.clock.Advance(6 * time.Second)
	f.step(t)
	task := f.sell(t)
	shard := id.ShardOf(f.sale)
	f.must(t, f.redis.Cmd.Del(t.Context(), f.keys.Item(shard, f.item), f.keys.Reservations(shard, f.item)).Err())
	f.clock.Advance(5 * time.Second)

	quiet := slog.New(slog.DiscardHandler)
	gate := payment.NewRedisGate(reservation.NewGate(reservation.GateConfig{Client: f.redis.Cmd, Keys: f.keys}), nil)
	returner := order.OrderReturns(f.db, gate.ReturnAll, f.clock, quiet)
	returned := func() int {
		counts, err := returner.Step(t.Context())
		f.must(t, err)
		return counts["orders"]
	}
	f.redis.Script.AddHook(&meanwhile{do: func() {
		o, err := order.NewStore(order.StoreConfig{DB: f.db, Clock: f.clock, Log: quiet}).Reload(t.Context(), task)
		f.must(t, err)
		f.must(t, f.db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) error {
			_, err := order.Apply(ctx, tx, order.Move{
				Order: o, To: order.Cancelled, At: f.clock.Now(),
				Entry: order.Entry{By: order.Actor{Kind: order.Buyer, User: o.User}, Code: order.CodeCancelled},
			})
			return err
		}))
		if n := returned(); n != 0 {
			t.Errorf("%d orders are noted as returned to a gate that is being built", n)
		}
	}})
	if counts := f.step(t); counts["rebuilt"] != 1 {
		t.Fatalf("step: %v", counts)
	}
	f.wantGate(t, "2", "9", "1")
	if n := returned(); n != 1 {
		t.Errorf("%d orders returned once the gate stands", n)
	}
	f.wantGate(t, "2", "10", "0")
}
