package system_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/internal/buy/reservation"
	"seckill/internal/ops/seed"
	"seckill/internal/platform/config"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
	"seckill/internal/testenv"
)

// onOwnRedis returns an installation with its own Redis server.
func onOwnRedis(t *testing.T) (*site, *testenv.RedisProcess, redis.UniversalClient, reservation.Keys) {
	t.Helper()
	s, server := onRedisWith(t)
	return s, server, server.Conn().Cmd, reservation.Keys{Prefix: s.cfg.RedisPrefix}
}

// onRedisWith is onOwnRedis for a server with settings of the test.
func onRedisWith(t *testing.T, settings ...string) (*site, *testenv.RedisProcess) {
	t.Helper()
	server := testenv.RedisServer(t, settings...)
	return newSite(t, func(c *config.Config) { c.RedisURL = config.Secret(server.URL()) }), server
}

// buy runs the whole purchase for some of the buyers, from the captcha on, and returns
// how many were accepted.
func (s *site) buy(made *seed.Result, users []seed.LoadUser) int {
	s.t.Helper()
	accepted := 0
	for _, u := range users {
		challenge, right := s.captcha(u.AccessToken, made.SaleID)
		path, why := s.path(u.AccessToken, made.ItemID, challenge, right)
		if why != "" {
			s.t.Logf("no path: %s", why)
			continue
		}
		p, err := s.place(u.AccessToken, order(made.ItemID, path))
		if err != nil {
			s.t.Fatal(err)
		}
		if p.why() == "" {
			accepted++
		}
	}
	return accepted
}

// gateOf reads the gate of a sale's item.
func gateOf(t *testing.T, client redis.UniversalClient, keys reservation.Keys, made *seed.Result) map[string]string {
	t.Helper()
	return client.HGetAll(t.Context(), gateKey(t, keys, made)).Val()
}

func gateKey(t testing.TB, keys reservation.Keys, made *seed.Result) string {
	t.Helper()
	saleID, err1 := id.ParseSale(made.SaleID)
	itemID, err2 := id.ParseItem(made.ItemID)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	return keys.Item(id.ShardOf(saleID), itemID)
}

func TestRedisLostInMidSaleIsRebuiltAndNothingIsOversold(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(r *testenv.RedisProcess, restore func()){
		"emptied":   func(r *testenv.RedisProcess, _ func()) { r.FlushAll() },
		"restarted": func(r *testenv.RedisProcess, _ func()) { r.Kill(); r.Restart() },
		"restored":  func(_ *testenv.RedisProcess, restore func()) { restore() }, // a backup from before half of the orders
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, server, client, keys := onOwnRedis(t)
			s.start("api", "worker", "scheduler")
			made := s.seed(seed.Input{Users: 12, Stock: 10})
			if n := s.buy(made, made.Users[:2]); n != 2 {
				t.Fatalf("%d accepted at first", n)
			}
			s.drained(made.SaleID, 2)
			restore := server.Backup()
			if n := s.buy(made, made.Users[2:4]); n != 2 {
				t.Fatalf("%d accepted then", n)
			}
			s.drained(made.SaleID, 4)
			lost := time.Now()
			lose(server, restore)
			testenv.Eventually(t, testenv.Wait, func() bool {
				g := gateOf(t, client, keys, made)
				return g["epoch"] > "1" && g["gate"] == reservation.GateOpen
			}, "the gate is rebuilt under a higher epoch")
			if g := gateOf(t, client, keys, made); g["stock"] != "6" || g["reserved"] != "4" {
				t.Errorf("gate %v, want 6 left and 4 reserved", g)
			}
			if n := s.buy(made, made.Users[4:]); n != 6 {
				t.Errorf("%d accepted afterwards, want the 6 that were left", n)
			}
			recovery := time.Since(lost) // until all stock is sold
			report := s.drained(made.SaleID, 10)
			if report.Postgres.Orders != 10 {
				t.Errorf("report %+v", report)
			}
			testenv.RecordFault(t, testenv.FaultRow{
				Fault: "Redis " + name + " in mid-sale", Accepted: 10, Stored: report.Postgres.Orders, LostUnits: lostUnits(report), Recovery: recovery,
			})
		})
	}
}

func TestALostMessageIsSentAgainAndTheBuyerGetsTheOrder(t *testing.T) {
	t.Parallel()
	s, _, client, keys := onOwnRedis(t)
	s.start("api")
	made := s.seed(seed.Input{Users: 1, Stock: 3, PathTTL: 10 * time.Minute})
	saleID, err := id.ParseSale(made.SaleID)
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.place(made.Users[0].AccessToken, order(made.ItemID, made.Users[0].Path))
	if err != nil || p.why() != "" {
		t.Fatalf("placed: %+v %v", p, err)
	}
	stream := keys.Orders(id.ShardOf(saleID))
	if n := client.XTrimMaxLen(t.Context(), stream, 0).Val(); n != 1 {
		t.Fatalf("%d messages were there to lose", n)
	}
	lost, api := time.Now(), s.url
	s.start("worker", "scheduler")
	s.url = api
	testenv.Eventually(t, testenv.Wait, func() bool {
		var data struct{ OrderTask *struct{ Status string } }
		s.ask(made.Users[0].AccessToken, `query($t: ID!) { orderTask(id: $t) { status } }`, map[string]any{"t": p.OrderTask.ID}).into(t, &data)
		return data.OrderTask != nil && data.OrderTask.Status == "SUCCEEDED"
	}, "the task succeeds although its message was lost")
	recovery := time.Since(lost)
	report := s.drained(made.SaleID, 1)
	testenv.RecordFault(t, testenv.FaultRow{
		Fault: "order message lost", Accepted: 1, Stored: report.Postgres.Orders, LostUnits: lostUnits(report), Recovery: recovery,
	})
}

// A task lost from Redis entirely: no units, no message, no record. A subscription of its
// buyer receives FAILED with the reason.
func TestTheEndOfATaskThatWasLostIsPushed(t *testing.T) {
	t.Parallel()
	s, server, _, _ := onOwnRedis(t)
	s.start("api")
	made := s.seed(seed.Input{Users: 1, Stock: 3, PathTTL: 10 * time.Minute})
	p, err := s.place(made.Users[0].AccessToken, order(made.ItemID, made.Users[0].Path))
	if err != nil || p.why() != "" {
		t.Fatalf("placed: %+v %v", p, err)
	}
	k := s.dial(made.Users[0].AccessToken)
	k.follow("t", p.OrderTask.ID)
	if e, done := k.event(); done || e.Kind != "SNAPSHOT" || e.OrderTask.Status != "SUBMITTED" {
		t.Fatalf("at first: %+v", e)
	}
	server.FlushAll()
	e, done := k.event()
	for !done && e.OrderTask.Status == "SUBMITTED" && e.OrderTask.Delayed {
		e, done = k.event() // no worker runs
	}
	if done || e.Kind == "SNAPSHOT" || e.OrderTask.Status != "FAILED" || e.OrderTask.Failure == nil || e.OrderTask.Failure.Code == "" {
		t.Errorf("in the end: %+v", e)
	}
	if _, done := k.event(); !done {
		t.Error("the stream goes on after the end")
	}
}

// Redis fails over to a copy from before the order. No client has asked about the task, and
// the process that accepted it still runs.
func TestATaskAcceptedAfterTheCopyThatRedisFailsOverToIsFailedAndFound(t *testing.T) {
	t.Parallel()
	s, server, client, keys := onOwnRedis(t)
	s.start("api", "scheduler")
	made := s.seed(seed.Input{Users: 1, Stock: 3, PathTTL: 10 * time.Minute})
	restore := server.Backup()
	p, err := s.place(made.Users[0].AccessToken, order(made.ItemID, made.Users[0].Path))
	if err != nil || p.why() != "" {
		t.Fatalf("placed: %+v %v", p, err)
	}
	lost := time.Now()
	restore()
	testenv.Eventually(t, testenv.Wait, func() bool {
		g := gateOf(t, client, keys, made)
		return g["epoch"] > "1" && g["gate"] == reservation.GateOpen
	}, "the gate is rebuilt")
	recovery := time.Since(lost)
	testenv.Eventually(t, testenv.Wait, func() bool {
		return s.taskStatus(made.Users[0].AccessToken, p.OrderTask.ID) == "FAILED"
	}, "the buyer sees that the task failed")
	if findings := strings.Join(s.look(made.SaleID).Findings, " "); !strings.Contains(findings, "1 accepted tasks were lost by Redis") {
		t.Errorf("audit: %q", findings)
	}
	testenv.RecordFault(t, testenv.FaultRow{
		Fault: "failover to a copy without the order", Accepted: 1, Failed: 1, LostUnits: lostUnits(s.look(made.SaleID)), Recovery: recovery,
	})
}

// A worker has read orders, Postgres stalls, and Redis fails over to a copy from before
// those orders: only the worker still has their messages.
func TestInFlightOrdersOfAWorkerAreCountedByTheRebuildOfTheirGate(t *testing.T) {
	t.Parallel()
	const inFlight, stock = 20, 30
	s, server, client, keys := onOwnRedis(t)
	s.start("api", "worker", "scheduler")
	made := s.seed(seed.Input{Users: 40, Stock: stock, PathTTL: 10 * time.Minute})
	saleID, err := id.ParseSale(made.SaleID)
	if err != nil {
		t.Fatal(err)
	}
	waiting := func() int64 { return client.XLen(t.Context(), keys.Orders(id.ShardOf(saleID))).Val() }
	restore := server.Backup()
	db := s.database()
	release := holdStock(t, db)
	early := *made
	early.Users = made.Users[:inFlight]
	if n := s.buyAll(&early, nil); n != inFlight {
		t.Fatalf("%d accepted", n)
	}
	testenv.Eventually(t, testenv.Wait, func() bool { r := s.look(made.SaleID).Stream; return r.Pending == inFlight }, "the worker is handling all orders")
	testenv.Eventually(t, testenv.Wait, func() bool { return noting(t, db) }, "the scheduler waits for the stock as well")
	restore()
	testenv.Eventually(t, testenv.Wait, func() bool {
		return gateOf(t, client, keys, made)["gate"] == reservation.GateLoading && waiting() > 0
	}, "the gate is being rebuilt, and the worker has appended its in-flight orders")
	release()
	released := time.Now()
	testenv.Eventually(t, testenv.Wait, func() bool { return gateOf(t, client, keys, made)["gate"] == reservation.GateOpen }, "the gate is open again")
	recovery := time.Since(released)
	if n := s.buy(made, made.Users[inFlight:]); n != stock-inFlight {
		t.Errorf("%d accepted afterwards, want the %d that were left", n, stock-inFlight)
	}
	report := s.drained(made.SaleID, stock)
	if report.Postgres.Orders != stock {
		t.Errorf("report %+v", report)
	}
	testenv.RecordFault(t, testenv.FaultRow{
		Fault: "failover to a copy without the in-flight orders of a worker", Accepted: stock, Stored: report.Postgres.Orders, LostUnits: lostUnits(report), Recovery: recovery,
	})
}

// noting reports whether a statement that records the stock revision of a gate waits for a
// lock.
func noting(t *testing.T, db *postgres.DB) bool {
	t.Helper()
	var n int
	err := db.SQL.QueryRowContext(t.Context(), `SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE 'UPDATE "sale_items"%"gate_revision"%'`).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n > 0
}

func TestDriftIsRepairedTowardsTheRecord(t *testing.T) {
	t.Parallel()
	s, _, client, keys := onOwnRedis(t)
	s.start("api", "worker", "scheduler")
	made := s.seed(seed.Input{Users: 2, Stock: 5})
	if n := s.buy(made, made.Users[:1]); n != 1 {
		t.Fatalf("%d accepted", n)
	}
	s.drained(made.SaleID, 1)
	if err := client.HIncrBy(t.Context(), gateKey(t, keys, made), "stock", 3).Err(); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, testenv.Wait, func() bool {
		g := gateOf(t, client, keys, made)
		return g["stock"] == fmt.Sprint(4) && g["reserved"] == "1" && g["gate"] == reservation.GateOpen
	}, "the gate holds what the record says again")
	s.audit(made.SaleID)
}

// Redis is emptied while no worker runs. Two API processes are asked in turn, by query and
// by subscription, as behind a load balancer: the status of no task ever goes back, and all
// fail within 30 s after the gate is built again.
func TestAllProcessesAgreeOnLostTasks(t *testing.T) {
	t.Parallel()
	for name, acceptorCrashes := range map[string]bool{"the process that accepted them runs": false, "it has crashed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, server, client, keys := onOwnRedis(t)
			s.start("scheduler")
			first, crash := s.open("api")
			made := s.seed(seed.Input{Users: 30, Stock: 30, PathTTL: 10 * time.Minute})
			var tasks []string
			for _, u := range made.Users {
				p, err := s.place(u.AccessToken, order(made.ItemID, u.Path))
				if err != nil || p.why() != "" {
					t.Fatalf("placed: %+v %v", p, err)
				}
				tasks = append(tasks, p.OrderTask.ID)
			}
			second, _ := s.open("api")
			if acceptorCrashes {
				crash()
				first, _ = s.open("api")
			}
			processes := []string{"http://" + first.PublicAddr().String(), "http://" + second.PublicAddr().String()}
			server.FlushAll()
			testenv.Eventually(t, testenv.Wait, func() bool {
				g := gateOf(t, client, keys, made)
				return g["epoch"] > "1" && g["gate"] == reservation.GateOpen
			}, "the gate is built again")
			known := time.Now()
			var streams []*socket
			for _, s.url = range processes {
				k := s.dial(made.Users[0].AccessToken)
				k.follow("t", tasks[0])
				streams = append(streams, k)
			}
			failed := map[string]bool{}
			for round := 0; len(failed) < len(tasks) && time.Since(known) < testenv.Wait; round++ {
				for i, task := range tasks {
					s.url = processes[(round+i)%2]
					switch status := s.taskStatus(made.Users[i].AccessToken, task); {
					case status == "FAILED":
						failed[task] = true
					case status != "SUBMITTED" || failed[task]:
						t.Fatalf("after %v, task %d: %s, and failed before: %t", time.Since(known), i, status, failed[task])
					}
				}
			}
			for i, k := range streams {
				e, done := k.event()
				for !done && e.OrderTask.Status == "SUBMITTED" {
					e, done = k.event()
				}
				if done || e.OrderTask.Status != "FAILED" {
					t.Errorf("subscribed to process %d: %+v", i, e)
				}
			}
			if took := time.Since(known); took > 30*time.Second {
				t.Errorf("the last of %d tasks ended after %v", len(failed), took)
			}
		})
	}
}
