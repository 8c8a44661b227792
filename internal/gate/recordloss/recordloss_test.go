package recordloss_test

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"seckill/ent/recordmark"
	"seckill/internal/buy/order"
	"seckill/internal/buy/reservation"
	"seckill/internal/buy/sale"
	"seckill/internal/gate/preload"
	"seckill/internal/gate/recordloss"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
	"seckill/internal/platform/redisconn"
	"seckill/internal/platform/stream"
	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Run(m)) }

// fixture is a database and a Redis with schedulers.
type fixture struct {
	t      *testing.T
	url    string
	db     *postgres.DB
	server *testenv.RedisProcess
	conn   *redisconn.Conn
	keys   reservation.Keys

	restarted bool // the scheduler that knew the mark has ended
}

func setup(t *testing.T) *fixture {
	t.Helper()
	url, server := testdb.UnflushedPostgresURL(t), testenv.RedisServer(t)
	return &fixture{t: t, url: url, db: testdb.Open(t, url), server: server, conn: server.Conn(), keys: reservation.Keys{Prefix: "sk:"}}
}

type noBacklog struct{}

func (noBacklog) Requests(context.Context, int) ([]order.Request, error)  { return nil, nil }
func (noBacklog) Unhandled(context.Context, int) ([]order.Request, error) { return nil, nil }

// scheduler returns the watch of a scheduler whose clock is off.
func (f *fixture) scheduler(off time.Duration) *recordloss.Watch {
	f.t.Helper()
	log := slog.New(slog.DiscardHandler)
	now := clock.NewFake(time.Now().Add(off))
	gate := reservation.NewGate(reservation.GateConfig{Client: f.conn.Script, ReadClient: f.conn.Cmd, Keys: f.keys})
	sales := sale.NewStore(f.db.Ent)
	cache := order.NewCache(f.conn, f.keys.Tasks, now)
	return recordloss.NewWatch(recordloss.Config{
		DB: f.db, Redis: f.conn, Keys: f.keys, Cache: cache,
		Orders: order.NewStore(order.StoreConfig{DB: f.db, Cache: cache, Clock: now, Log: log}),
		Writer: order.NewWriter(order.WriterConfig{DB: f.db, Clock: now}), Streams: stream.Appender{Client: f.conn.Script},
		Gate: gate, Gates: preload.New(preload.Config{DB: f.db, Gate: gate, Backlog: noBacklog{}, Clock: now, Log: log}),
		Sales: sales, Catalog: sale.NewCatalog(sales, now, log), Clock: now, Log: log,
	})
}

func (f *fixture) step(w *recordloss.Watch) {
	f.t.Helper()
	if _, err := w.Step(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
}

// lost returns the marks of the last loss and of the last recovery.
func (f *fixture) lost() (lost, recovered int64) {
	f.t.Helper()
	row, err := f.db.Ent.RecordMark.Query().Where(recordmark.ID(1)).Only(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	return row.Lost, row.Recovered
}

func (f *fixture) noLoss(when string) {
	f.t.Helper()
	if lost, _ := f.lost(); lost != 0 {
		f.t.Errorf("%s: a loss is found at mark %d", when, lost)
	}
}

func TestALossOfRedisAndTheClocksOfSchedulersAreNoLossOfPostgres(t *testing.T) {
	t.Parallel()
	f := setup(t)
	early, late := f.scheduler(-30*time.Second), f.scheduler(30*time.Second)
	f.step(early)
	f.noLoss("the first start")
	for range 3 {
		f.step(late)
		f.step(early)
	}
	var statement string // of its transaction, from 0
	if err := f.db.SQL.QueryRow(`SELECT cmin FROM record_marks`).Scan(&statement); err != nil || statement != "0" {
		t.Errorf("the mark is raised by statement %s, want one statement: %v", statement, err)
	}
	f.noLoss("two schedulers whose clocks differ by a minute")
	var both sync.WaitGroup
	for _, w := range []*recordloss.Watch{early, late} {
		both.Go(func() {
			for range 20 {
				if _, err := w.Step(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	both.Wait()
	f.noLoss("two schedulers at once")
	older := f.server.Backup()
	for range 5 {
		f.step(early)
	}
	older()
	f.step(late)
	f.step(early)
	f.noLoss("Redis goes back")
	f.server.FlushAll()
	f.step(late)
	f.noLoss("Redis is emptied")
	f.server.Kill()
	f.server.Restart()
	f.step(f.scheduler(0))
	f.noLoss("Redis and the scheduler restart")
}

// markOnly returns a function that takes only the mark back, in the same database of the
// same server: nothing else proves the loss.
func (f *fixture) markOnly() (goBack func()) {
	f.t.Helper()
	was := f.db.Ent.RecordMark.GetX(f.t.Context(), 1)
	return func() {
		f.t.Helper()
		f.db.Ent.RecordMark.UpdateOne(was).SetMark(was.Mark).SetMarkedAt(was.MarkedAt).ExecX(f.t.Context())
	}
}

func TestARecordThatGoesBackIsNoticedOnce(t *testing.T) {
	t.Parallel()
	nothing := func(*fixture) {}
	for name, how := range map[string]struct {
		snapshot func(f *fixture) (goBack func())
		forget   func(f *fixture)
	}{
		"Redis remembers":             {func(f *fixture) func() { return testdb.Snapshot(f.t, f.url) }, nothing},
		"the scheduler remembers":     {func(f *fixture) func() { return testdb.Snapshot(f.t, f.url) }, func(f *fixture) { f.server.FlushAll() }},
		"the mark alone":              {(*fixture).markOnly, nothing},
		"the mark of a scheduler":     {(*fixture).markOnly, func(f *fixture) { f.server.FlushAll() }},
		"the mark after a restart":    {(*fixture).markOnly, func(f *fixture) { f.restarted = true }},
		"the mark of another process": {(*fixture).markOnly, func(f *fixture) { f.server.Kill(); f.server.Restart(); f.restarted = true }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setup(t)
			one, other := f.scheduler(0), f.scheduler(time.Minute)
			f.step(one)
			goBack := how.snapshot(f)
			f.step(one)
			goBack()
			how.forget(f)
			if f.restarted {
				one = f.scheduler(0)
			}
			f.step(one)
			lost, recovered := f.lost()
			if lost == 0 || recovered != lost {
				t.Fatalf("after one step: found at %d, recovered at %d", lost, recovered)
			}
			for range 3 {
				f.step(other)
				f.step(one)
			}
			if again, _ := f.lost(); again != lost {
				t.Errorf("found again at %d", again)
			}
		})
	}
}

// What a loss concerns is listed before the recovery, and after it, when Redis and Postgres
// agree again.
func TestWhatALossConcernsIsListedBeforeAndAfterTheRecovery(t *testing.T) {
	t.Parallel()
	f := setup(t)
	w := f.scheduler(0)
	f.step(w)
	goBack := f.markOnly()
	f.step(w)
	goBack()
	saleID, now := id.New[id.Sale](), time.Now()
	gone := &order.Order{
		ID: id.Order(id.NewTask(id.ShardOf(saleID))), Sale: saleID, Item: id.New[id.Item](), User: id.New[id.User](), Kind: order.Seckill, Status: order.Paid,
		Quantity: 1, UnitPriceMinor: 100, Currency: "EUR", Version: 2, Epoch: 1, ReservedAt: now, CreatedAt: now, UpdatedAt: now,
	}
	failed := order.Task{
		ID: id.NewTask(id.ShardOf(saleID)), Sale: saleID, Item: gone.Item, User: id.New[id.User](), Quantity: 1, Status: order.Failed,
		Revision: order.RevisionEnded, Failure: "SOLD_OUT", CreatedAt: now,
	}
	cache := order.NewCache(f.conn, f.keys.Tasks, clock.System{})
	if err := cache.Put(t.Context(), []order.Task{failed}, []*order.Order{gone}); err != nil {
		t.Fatal(err)
	}
	reporter := recordloss.Reporter{
		DB: f.db, Redis: f.conn, Keys: f.keys, Cache: cache, Orders: order.NewStore(order.StoreConfig{DB: f.db, Log: slog.New(slog.DiscardHandler)}),
	}
	wants := func(when string, noticed, recorded bool) {
		t.Helper()
		report, err := reporter.Report(t.Context())
		if err != nil || (report.LostAt != nil) != noticed || len(report.Concerns) != 2 {
			t.Fatalf("%s: %+v, %v", when, report, err)
		}
		for _, c := range report.Concerns {
			order, failure := c.What == recordloss.OrderMissing && c.Order == gone.ID.Public() && c.Copy == "PAID", c.What == recordloss.FailureMissing && c.Task == failed.ID.Public() && c.Copy == "SOLD_OUT"
			if !order && !failure || (c.Record != "") != recorded {
				t.Errorf("%s: %+v", when, c)
			}
		}
	}
	wants("before", false, false)
	f.step(w)
	wants("after", true, true)
	f.step(f.scheduler(0))
	wants("later", true, true)
}

// A process that starts after the failover knows nothing itself.
func TestARecordThatWentBackIsNoticedAtTheStart(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.step(f.scheduler(0))
	goBack := testdb.Snapshot(t, f.url)
	f.step(f.scheduler(0))
	goBack()
	f.step(f.scheduler(0))
	if lost, recovered := f.lost(); lost == 0 || recovered != lost {
		t.Errorf("found at %d, recovered at %d", lost, recovered)
	}
}
