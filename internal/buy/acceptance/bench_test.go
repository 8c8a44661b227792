package acceptance_test

import (
	"testing"

	"seckill/internal/testdb"
)

// BenchmarkLogger logs 4,000 orders a pass, as a second of a busy sale has, beside those of
// the passes before.
func BenchmarkLogger(b *testing.B) {
	const orders = 4000
	s := newShop(b, testdb.Postgres(b), 10_000_000)
	l := s.logger()
	s.step(l)
	for range b.N {
		b.StopTimer()
		s.accept(orders)
		b.StartTimer()
		if n := s.step(l); n != orders {
			b.Fatalf("%d entries", n)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/orders, "ns/order")
}
