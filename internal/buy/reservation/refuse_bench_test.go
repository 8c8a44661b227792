package reservation_test

import (
	"fmt"
	"testing"
	"time"

	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

// BenchmarkRefuseAttempt refuses buyers of a sold-out item of 20,000 reservations in memory.
func BenchmarkRefuseAttempt(b *testing.B) {
	f := newFixture(b, patient(b, testenv.RedisServer(b).URL()), "t:")
	f.open(0)
	holders := make([]any, 0, 40_000)
	for n := range 20_000 {
		holders = append(holders, id.New[id.User]().String(), fmt.Sprintf("%s|1|0|key-%d", id.NewTask(0), n))
	}
	shard := id.ShardOf(f.sale)
	f.must(f.client.HSet(b.Context(), f.keys.Reservations(shard, f.item), holders...).Err())
	cache := f.stockCache(clock.NewFake(time.Now()))
	f.must(cache.Refresh(b.Context()))
	began := time.Now()
	f.must(cache.RefreshAccepted(b.Context()))
	b.ReportMetric(float64(time.Since(began).Milliseconds()), "ms/read")
	a := f.bare(id.New[id.User]())
	b.ReportAllocs()
	for b.Loop() {
		if _, refused := cache.RefuseAttempt(f.item, a.User, "", a.IdempotencyKey); !refused {
			b.Fatal("not refused in memory")
		}
	}
}
