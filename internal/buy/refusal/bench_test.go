package refusal_test

import (
	"encoding/binary"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"seckill/internal/buy/refusal"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

// BenchmarkNote records refusals of new buyers until the memory is full, and then drops them,
// and repeated refusals of a thousand buyers. Both are on the way of a refused request.
func BenchmarkNote(b *testing.B) {
	sale, item := id.Sale(uuid.New()), id.Item(uuid.New())
	for name, buyers := range map[string]uint64{"repeated": 1 << 10, "new": 1 << 62} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			log := refusal.NewLog(refusal.Config{Clock: clock.System{}})
			var n atomic.Uint64
			left := 0
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					var user id.User
					binary.BigEndian.PutUint64(user[8:], n.Add(1)%buyers)
					log.Note(refusal.Refused{User: user, Sale: sale, Item: item, Stage: "ORDER", Code: fault.SoldOut, Left: &left})
				}
			})
		})
	}
}
