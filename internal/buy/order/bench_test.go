package order_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"seckill/ent"
	"seckill/ent/saleitem"
	"seckill/internal/buy/order"
	"seckill/internal/platform/id"
)

// BenchmarkWrite compares the writer with the simple alternative in one run: one
// transaction per order with its own update of the stock row. Metric: orders/s,
// verified in the database afterwards.
func BenchmarkWrite(b *testing.B) {
	for _, callers := range []int{16, 256, 1024} {
		for _, way := range []string{"arrays", "portable"} {
			b.Run(fmt.Sprintf("%s/%d callers", way, callers), func(b *testing.B) {
				e := setup(b, stock{units: b.N, limit: 1})
				w := e.writer(nil)
				if way == "portable" {
					order.Portable(w)
				}
				e.race(b, callers, func(r order.Request) error {
					return w.Write(b.Context(), r)[0].Err
				})
			})
		}
	}
	b.Run("one by one/64 callers", func(b *testing.B) {
		e := setup(b, stock{units: b.N, limit: 1})
		e.race(b, 64, func(r order.Request) error { return e.writeAlone(b.Context(), r) })
	})
}

func BenchmarkWriteSQLite(b *testing.B) {
	e := setupSQLite(b, stock{units: b.N, limit: 1})
	w := e.writer(nil)
	e.race(b, 256, func(r order.Request) error {
		return w.Write(b.Context(), r)[0].Err
	})
}

// BenchmarkBatch writes batches of one size sequentially. Metrics: time of this process
// and CPU time of the database backends per order.
func BenchmarkBatch(b *testing.B) {
	for _, size := range []int{50, 170, 500} {
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			n := (b.N + size - 1) / size
			e := setup(b, stock{units: n*size + size, limit: 1})
			w := e.writer(nil)
			e.must(order.Persist(b.Context(), w, e.requests(size)))
			batches := make([][]order.Request, n)
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

// backends returns the CPU time in microseconds of the processes that serve this
// database. They run on this machine.
func (e *env) backends(b *testing.B) float64 {
	b.Helper()
	rows, err := e.db.SQL.QueryContext(b.Context(),
		"SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'")
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

// race writes b.N requests from this many concurrent callers.
func (e *env) race(b *testing.B, callers int, write func(order.Request) error) {
	b.Helper()
	requests := e.requests(b.N)
	b.ResetTimer()
	var g errgroup.Group
	g.SetLimit(callers)
	for _, r := range requests {
		g.Go(func() error { return write(r) })
	}
	err := g.Wait()
	b.StopTimer()
	e.must(err)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "orders/s")
	if e.orders() != b.N || e.figures().held != b.N {
		b.Fatalf("%d orders, %+v, want %d", e.orders(), e.figures(), b.N)
	}
}

// writeAlone writes one order, one ledger line and one update of the hot row, and
// commits.
func (e *env) writeAlone(ctx context.Context, r order.Request) error {
	return e.db.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		now := e.clock.Now()
		err := tx.Order.Create().SetID(id.Order(r.Task)).SetNumber(order.Number(id.Order(r.Task), now, 3)).SetSaleID(r.Sale).SetItemID(r.Item).
			SetUserID(r.User).SetQuantity(r.Quantity).SetUnitPriceMinor(r.UnitPriceMinor).
			SetCurrency(r.Currency).SetEpoch(r.Epoch).SetReservedAt(now).SetCreatedAt(now).SetUpdatedAt(now).Exec(ctx)
		if err != nil {
			return err
		}
		err = tx.StockMovement.Create().SetID(id.New[uuid.UUID]()).SetOrderID(r.Task.UUID()).SetItemID(r.Item).SetKind("HOLD").
			SetQuantity(r.Quantity).SetCreatedAt(now).Exec(ctx)
		if err != nil {
			return err
		}
		return tx.SaleItem.Update().Where(saleitem.ID(r.Item), saleitem.AvailableGTE(r.Quantity)).
			AddAvailable(-r.Quantity).AddHeld(r.Quantity).Exec(ctx)
	})
}
