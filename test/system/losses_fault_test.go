package system_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"seckill/internal/app"
	"seckill/internal/buy/reservation"
	"seckill/internal/gate/audit"
	"seckill/internal/ops/seed"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
	"seckill/internal/platform/redisconn"
	"seckill/internal/testenv"
)

// database opens a connection of the test to the site's database.
func (s *site) database() *postgres.DB {
	s.t.Helper()
	db, err := postgres.Open(s.t.Context(), postgres.Options{URL: s.cfg.DatabaseURL.Reveal(), MaxConns: 2})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = db.Close() })
	return db
}

// holdStock blocks every order transaction on a lock until the returned function is
// called.
func holdStock(t testing.TB, db *postgres.DB) (release func()) {
	t.Helper()
	tx, err := db.SQL.BeginTx(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(context.Background(), "SET LOCAL idle_in_transaction_session_timeout = 0"); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(context.Background(), "SELECT 1 FROM sale_items FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	release = func() { once.Do(func() { _ = tx.Rollback() }) }
	t.Cleanup(release)
	return release
}

// look runs the audit without failing the test on its findings.
func (s *site) look(saleID string) *audit.Report {
	u, err := id.ParseSale(saleID)
	if err != nil {
		s.t.Fatal(err)
	}
	report, err := app.Audit(context.Background(), s.cfg, u)
	if err != nil {
		return &audit.Report{}
	}
	return report
}

// buyAll sends one placeOrder per buyer and counts the accepted ones. progress is called
// after each, from one goroutine at a time.
func (s *site) buyAll(made *seed.Result, progress func(accepted int)) int {
	s.t.Helper()
	var mu sync.Mutex
	accepted := 0
	slots := make(chan struct{}, 64)
	var wg sync.WaitGroup
	for i, u := range made.Users {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			of := ofBuyer{buyer: i, token: u.AccessToken, began: time.Now()}
			p, err := s.insist(u.AccessToken, order(made.ItemID, u.Path))
			s.seen.placed(of, p, err)
			if err != nil || p.why() != "" {
				s.t.Errorf("not taken in: %v %s", err, p.why())
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if accepted++; progress != nil {
				progress(accepted)
			}
		})
	}
	wg.Wait()
	return accepted
}

// spare is the number of units left at the end.
const spare = 1000

func TestAWorkerKilledInTheMiddleOfManyOrdersLeavesNoneBehind(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	db, port := s.database(), ownPort(t)
	s.launch("api")
	made := s.seed(seed.Input{Users: manyOrders, Stock: manyOrders + spare, PathTTL: 10 * time.Minute})
	worker := s.launch("worker,scheduler", port)

	next, kills := manyOrders/5, 0
	var release func()
	accepted := s.buyAll(made, func(n int) {
		switch n {
		case next:
			release = holdStock(t, db)
		case next + 100: // these were accepted after holdStock: no worker can have written them
			next += 3 * manyOrders / 10
			testenv.Eventually(t, testenv.Wait, func() bool { return s.look(made.SaleID).Stream.Pending > 0 }, "the worker has in-flight orders")
			worker.kill()
			release()
			worker = s.launch("worker,scheduler", port)
			kills++
		}
	})
	accepting := time.Now()
	report := s.drained(made.SaleID, manyOrders)
	if accepted != manyOrders || kills < 3 || report.Postgres.Orders != manyOrders || report.Postgres.Available != spare || report.Redis.Reserved != manyOrders || report.Stream.Dead != 0 {
		t.Errorf("%d accepted, %d kills, %+v", accepted, kills, report)
	}
	s.oneOrder(s.seen, manyOrders+spare, 2*manyOrders)
	testenv.RecordFault(t, testenv.FaultRow{
		Fault: "worker killed with in-flight orders, 3 times", Accepted: accepted, Stored: report.Postgres.Orders, LostUnits: lostUnits(report), Recovery: time.Since(accepting),
	})
}

func TestAnotherWorkerTakesOverWhatADeadOneHad(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	db := s.database()
	s.launch("api")
	made := s.seed(seed.Input{Users: 300, Stock: 300, PathTTL: 10 * time.Minute})
	dead := s.launch("worker", ownPort(t))

	release := holdStock(t, db)
	s.buyAll(made, nil)
	testenv.Eventually(t, testenv.Wait, func() bool { return s.look(made.SaleID).Stream.Pending > 0 }, "the worker has in-flight orders")
	dead.kill()
	heir := s.launch("worker", ownPort(t))
	release()
	testenv.Eventually(t, testenv.Wait, func() bool {
		var n int
		err := db.SQL.QueryRowContext(t.Context(), "SELECT count(*) FROM orders").Scan(&n)
		return err == nil && n == 300
	}, "another worker has written the orders")
	if report := s.drained(made.SaleID, 300); report.Postgres.Orders != 300 {
		t.Errorf("report %+v", report)
	}
	if n, err := heir.metric("seckill_stream_claimed_total"); err != nil || n == 0 {
		t.Errorf("%v messages counted as taken over (%v)", n, err)
	}
}

// A worker that is killed between the steps that follow a commit: the task record, the
// publication, the acknowledgement. The next worker receives the message again and
// repeats them.
func TestAWorkerKilledAfterItsCommitMakesNoSecondOrder(t *testing.T) {
	t.Parallel()
	for name, step := range map[string]string{"record": `"status":"SUCCEEDED"`, "publication": "xadd", "acknowledgement": "xack"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			db, port := s.database(), ownPort(t)
			s.launch("api")
			made := s.seed(seed.Input{Users: 1, Stock: 5, PathTTL: 10 * time.Minute})
			proxy, behind := s.throughProxy()
			worker := s.launch("worker", port, behind)
			caught := proxy.HoldRequest(step)
			placed, err := s.place(made.Users[0].AccessToken, order(made.ItemID, made.Users[0].Path))
			if err != nil || placed.OrderTask == nil {
				t.Fatalf("%+v %v", placed, err)
			}
			await(t, caught, "the worker does not come to its "+name)
			var n int
			if err := db.SQL.QueryRowContext(t.Context(), "SELECT count(*) FROM orders").Scan(&n); err != nil || n != 1 {
				t.Errorf("%d orders at the kill (%v)", n, err)
			}
			killed := time.Now()
			worker.kill()
			proxy.Cut()
			proxy.Release()
			s.launch("worker", port)
			report := s.drained(made.SaleID, 1)
			if report.Postgres.Orders != 1 || report.Redis.Stock != 4 {
				t.Errorf("report %+v", report)
			}
			testenv.RecordFault(t, testenv.FaultRow{
				Fault: "worker killed after its commit, before the " + name, Accepted: 1, Stored: report.Postgres.Orders, LostUnits: lostUnits(report), Recovery: time.Since(killed),
			})
			if got := s.taskStatus(made.Users[0].AccessToken, placed.OrderTask.ID); got != "SUCCEEDED" {
				t.Errorf("the task is %s", got)
			}
		})
	}
}

// taskStatus returns the status of a task from the poll query; "unknown" when the answer has none.
func (s *site) taskStatus(token, taskID string) string {
	s.t.Helper()
	out, err := s.try(token, `query($i: ID!) { orderTask(id: $i) { status } }`, map[string]any{"i": taskID})
	if err != nil {
		s.t.Fatal(err)
	}
	if code := out.code(); code != "" {
		s.t.Logf("task %s: %s", taskID, code)
		return "unknown"
	}
	var data struct{ OrderTask *struct{ Status string } }
	out.into(s.t, &data)
	if data.OrderTask == nil {
		return "unknown"
	}
	return data.OrderTask.Status
}

func await(t testing.TB, what <-chan struct{}, otherwise string) {
	t.Helper()
	deadline := time.NewTimer(testenv.Wait)
	defer deadline.Stop()
	select {
	case <-what:
	case <-deadline.C:
		t.Fatal(otherwise)
	}
}

// spoilt returns stream entries that are not valid order messages, each invalid in a
// different way.
func spoilt() [][]any {
	task := uuid.NewString()
	return [][]any{
		{"hello", "world"},
		{"_watermill_message_uuid", task, "metadata", "", "payload", "not JSON"},
		{"_watermill_message_uuid", task, "metadata", "\xff\xff\xff\xff", "payload", "{}"},
		{"_watermill_message_uuid", "", "metadata", "\x80", "payload", "{}"},
		{"_watermill_message_uuid", task, "metadata", "\x80", "payload", fmt.Sprintf(`{"v":2,"task":%q}`, task)},
		{"_watermill_message_uuid", task, "metadata", "\x80", "payload", fmt.Sprintf(`{"v":1,"task":%q,"quantity":-1}`, task)},
		{"_watermill_message_uuid", task, "metadata", "\x80"},
	}
}

func TestMalformedEntriesAreSetAsideAndCountedAndGoodOrdersAreWritten(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.launch("api")
	made := s.seed(seed.Input{Users: 200, Stock: 200, PathTTL: 10 * time.Minute})
	conn, err := redisconn.Open(t.Context(), s.cfg.RedisURL.Reveal())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	db := s.database()
	sale, err := id.ParseSale(made.SaleID)
	if err != nil {
		t.Fatal(err)
	}
	keys := reservation.Keys{Prefix: s.cfg.RedisPrefix}
	spoil := func() {
		for _, fields := range spoilt() {
			if err := conn.Cmd.XAdd(context.Background(), &redis.XAddArgs{Stream: keys.Orders(id.ShardOf(sale)), Values: fields}).Err(); err != nil {
				t.Error(err)
			}
		}
	}
	spoil() // before there is a worker, then between the orders, then after them
	worker := s.launch("worker")
	s.buyAll(made, func(n int) {
		if n%50 == 0 {
			spoil()
		}
	})
	bad := len(spoilt()) * 5
	if report := s.drained(made.SaleID, 200); report.Postgres.Orders != 200 || report.Stream.Unread+report.Stream.Pending != 0 {
		t.Errorf("report %+v", report)
	}
	testenv.Eventually(t, testenv.Wait, func() bool {
		n, err := db.Ent.DeadLetter.Query().Count(context.Background())
		return err == nil && n == bad
	}, fmt.Sprintf("%d entries are set aside", bad))
	testenv.Eventually(t, testenv.Wait, func() bool {
		n, err := worker.metric("seckill_stream_dead_letters_total")
		return err == nil && n == float64(bad)
	}, fmt.Sprintf("%d dead letters are counted", bad))
	if n, err := worker.metric("seckill_order_written_total"); err != nil || n != 200 {
		t.Errorf("%v orders counted, want 200 (%v)", n, err)
	}
}
