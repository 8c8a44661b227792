package salestats_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	entorder "seckill/ent/order"
	"seckill/internal/buy/salestats"
	"seckill/internal/platform/redisconn"
	"seckill/internal/testenv"
)

// between calls a function once, when the gates are about to be read.
type between struct {
	once sync.Once
	act  func()
}

func (b *between) DialHook(next redis.DialHook) redis.DialHook { return next }

func (b *between) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (b *between) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if cmds[0].Name() == "hmget" {
			b.once.Do(b.act)
		}
		return next(ctx, cmds)
	}
}

func TestUnitsWithdrawnDuringAReadingAreNotMissing(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.order("PAID", e.clock.Now())
	e.must(e.db.Ent.SaleItem.UpdateOneID(e.item).SetAvailable(99).SetSold(1).Exec(t.Context()))
	e.gate(100, 99, 1)
	conn, err := redisconn.Open(t.Context(), testenv.RedisURL(t))
	e.must(err)
	t.Cleanup(func() { _ = conn.Close() })
	conn.Cmd.AddHook(&between{act: func() { // a refund takes the sold unit off Postgres and then off the gate
		e.must(e.db.Ent.Order.Update().SetStatus(entorder.StatusREFUNDED).Exec(t.Context()))
		e.must(e.db.Ent.SaleItem.UpdateOneID(e.item).SetSold(0).SetTotal(99).Exec(t.Context()))
		e.gate(99, 99, 0)
	}})
	reader := salestats.NewReader(salestats.ReaderConfig{
		DB: e.db, Client: conn.Cmd, Keys: e.keys, Clock: e.clock, Timeout: testenv.Wait,
		Queue: queue{},
	})
	s, err := reader.Stats(t.Context(), e.sale)
	e.must(err)
	if u := s.Units; !u.Conserved || u.Total != 99 || u.Remaining != 99 || u.Sold != 0 || s.Refunded != 1 {
		t.Errorf("units %+v, %d refunded", u, s.Refunded)
	}
	e.clock.Advance(time.Second)
	e.gate(98, 98, 0) // and this unit is missing
	if s, err = reader.Stats(t.Context(), e.sale); err != nil || s.Units.Conserved {
		t.Errorf("a gate that lost a unit counts as conserved: %+v %v", s, err)
	}
}
