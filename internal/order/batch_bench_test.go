package order_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"seckill/internal/order"
)

// BenchmarkBatch writes batches of one size, one after the other. Metrics: time
// of this process and processor time of the database's backends per order.
func BenchmarkBatch(b *testing.B) {
	for _, size := range []int{50, 170, 500} {
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			n := (b.N + size - 1) / size
			e := setup(b, stock{units: n*size + size, limit: 1})
			w := e.writer(nil)
			e.must(order.Persist(b.Context(), w, e.requests(size)))
			batches := make([][]order.Requested, n)
			for i := range batches {
				batches[i] = e.requests(size)
			}
			before := e.backends(b)
			b.ReportAllocs()
			b.ResetTimer()
			for _, requests := range batches {
				e.must(order.Persist(b.Context(), w, requests))
			}
			b.StopTimer()
			b.ReportMetric((e.backends(b)-before)/float64(n*size), "pg-us/order")
		})
	}
}

// backends is the processor time in microseconds that the processes serving this
// database have had. They are on this machine.
func (e *env) backends(b *testing.B) float64 {
	b.Helper()
	rows, err := e.db.SQL.QueryContext(b.Context(), "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'")
	e.must(err)
	defer rows.Close()
	var sum float64
	for rows.Next() {
		var pid int
		e.must(rows.Scan(&pid))
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
		e.must(err)
		ns, err := strconv.ParseFloat(strings.Fields(string(text))[0], 64)
		e.must(err)
		sum += ns / 1000
	}
	e.must(rows.Err())
	return sum
}
