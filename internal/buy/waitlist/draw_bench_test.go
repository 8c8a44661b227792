package waitlist_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	"seckill/ent/waitlistentry"
	"seckill/internal/buy/waitlist"
	"seckill/internal/testdb"
)

// BenchmarkDraw draws among many entries:
//
//	go test -run '^$' -bench Draw -benchtime 1x ./internal/buy/waitlist
func BenchmarkDraw(b *testing.B) {
	for _, entries := range []int{1000, 10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(entries), func(b *testing.B) {
			for b.Loop() {
				drawAmong(b, entries, entries/100)
			}
		})
	}
}

// drawAmong measures the draw of entries, from the closing to the last offer of its units.
func drawAmong(b *testing.B, entries, units int) {
	b.StopTimer()
	l := newLottery(b, testdb.Postgres(b), units)
	l.crowd(entries)
	l.close()
	heap := peakHeap()
	b.StartTimer()
	phase := func(name string, do func()) {
		began := time.Now()
		do()
		b.ReportMetric(time.Since(began).Seconds(), name+"-s")
	}
	phase("root", func() { l.must(l.draws()) })
	l.state(waitlist.RootPublished)
	l.beacon()
	phase("numbers", func() { l.must(l.draws()) })
	l.state(waitlist.Drawn)
	phase("offers", func() {
		for offered := 0; offered < units; {
			counts, err := l.line.Step(b.Context())
			l.must(err)
			if counts["offered"] == 0 {
				b.Fatalf("%d of %d units were offered", offered, units)
			}
			offered += counts["offered"]
		}
	})
	b.StopTimer()
	b.ReportMetric(float64(heap())/1e6, "heap-MB")
	heap = peakHeap()
	phase("file", func() {
		w := &counter{}
		l.line.Records().ServeHTTP(w, httptest.NewRequestWithContext(b.Context(), http.MethodGet, waitlist.RecordPath(l.item), nil))
		b.ReportMetric(float64(w.bytes)/1e6, "file-MB")
	})
	b.ReportMetric(float64(heap())/1e6, "file-heap-MB")
	last, err := l.db.Ent.WaitlistEntry.Query().Where(waitlistentry.ItemID(l.item), waitlistentry.StatusEQ(waitlistentry.StatusOFFERED)).Count(b.Context())
	if l.must(err); last != units {
		b.Errorf("%d entries have an offer, want %d", last, units)
	}
	b.StartTimer()
}

// crowd writes entries of as many users into the database, as if they had entered.
func (l *lottery) crowd(entries int) {
	l.t.Helper()
	conn, err := l.db.SQL.Conn(l.t.Context())
	l.must(err)
	defer conn.Close()
	exec := func(query string, args ...any) {
		_, err := conn.ExecContext(context.WithoutCancel(l.t.Context()), query, args...)
		l.must(err)
	}
	exec(`SET statement_timeout = 0`)
	const some = 100_000 // rows of one statement, whose answer the connection awaits for seconds only
	for first := 1; first <= entries; first += some {
		exec(`INSERT INTO waitlist_entries (id, sale_id, item_id, user_id, quantity, status, version, return_due, nonce, line, skipped, created_at, updated_at)
			SELECT ('01931000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid, $1, $2, gen_random_uuid(), 1, 'ENTERED', 1, false, md5(i::text), 0, '', $3, $3
			FROM generate_series($4::int, $5::int) i`, l.sale, l.item, l.clock.Now(), first, min(first+some-1, entries))
	}
	exec(`INSERT INTO item_draws (id, sale_id, state, entries) VALUES ($1, $2, 'ENTRIES', $3)`, l.item, l.sale, entries)
}

// peakHeap measures the heap until the returned function is called, and returns its peak in bytes.
func peakHeap() func() uint64 {
	runtime.GC()
	stop, peak := make(chan struct{}), make(chan uint64)
	go func() {
		var most uint64
		var m runtime.MemStats
		for tick := time.NewTicker(100 * time.Millisecond); ; {
			select {
			case <-tick.C:
			case <-stop:
				tick.Stop()
				peak <- most
				return
			}
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapInuse)
		}
	}()
	return func() uint64 { close(stop); return <-peak }
}

// counter is a ResponseWriter that counts bytes.
type counter struct {
	header http.Header
	bytes  int
}

var _ io.Writer = (*counter)(nil)

func (c *counter) Header() http.Header {
	if c.header == nil {
		c.header = http.Header{}
	}
	return c.header
}
func (c *counter) WriteHeader(int) {}
func (c *counter) Write(p []byte) (int, error) {
	c.bytes += len(p)
	return len(p), nil
}
