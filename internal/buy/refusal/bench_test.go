package refusal_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"seckill/internal/buy/refusal"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/testdb"
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

// BenchmarkFlush writes refusals of new buyers who have accounts. It reports the processor
// time of the backend of Postgres per row.
func BenchmarkFlush(b *testing.B) {
	db := testdb.Postgres(b)
	db.SQL.SetMaxOpenConns(1)
	const buyers = 20_000
	users := make([]id.User, buyers)
	ids := make([]string, buyers)
	for i := range users {
		users[i] = id.New[id.User]()
		ids[i] = uuid.UUID(users[i]).String()
	}
	if _, err := db.SQL.ExecContext(b.Context(), `INSERT INTO users (id, account, display_name, password_hash, created_at)
		SELECT u, u::text, '', '', now() FROM unnest($1::uuid[]) u`, pq.Array(ids)); err != nil {
		b.Fatal(err)
	}
	var backend int
	if err := db.SQL.QueryRowContext(b.Context(), "SELECT pg_backend_pid()").Scan(&backend); err != nil {
		b.Fatal(err)
	}
	log := refusal.NewLog(refusal.Config{DB: db, Clock: clock.System{}})
	var spent time.Duration
	rows, left := 0, 0
	for b.Loop() {
		b.StopTimer()
		sale, item := id.New[id.Sale](), id.New[id.Item]()
		for _, user := range users {
			log.Note(refusal.Refused{User: user, Sale: sale, Item: item, Stage: "ORDER", Code: fault.SoldOut, Left: &left})
		}
		b.StartTimer()
		before := processorTime(b, backend)
		for log.Waiting() > 0 {
			if _, err := log.Flush(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
		spent, rows = spent+processorTime(b, backend)-before, rows+buyers
	}
	b.ReportMetric(float64(spent.Microseconds())/float64(rows), "pg-us/row")
}

// processorTime returns the processor time that a process has used.
func processorTime(b *testing.B, pid int) time.Duration {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	ticks := 0
	for _, field := range fields[11:13] { // user and system time
		n, err := strconv.Atoi(field)
		if err != nil {
			b.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(10*ticks) * time.Millisecond
}
