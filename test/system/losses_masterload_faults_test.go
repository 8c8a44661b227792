//go:build faults

package system_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seckill/internal/buy/reservation"
	"seckill/internal/gate/audit"
	"seckill/internal/ops/seed"
	"seckill/internal/platform/config"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

// A master is killed by kill -9 while buyers order. The servers copy asynchronously: what the
// dead master had not copied ends as FAILED, which its buyers see. No buyer sees a success
// without an order, and nothing is sold twice.
func TestAMasterKilledUnderLoadShowsNoBuyerASuccessWithoutAnOrder(t *testing.T) {
	t.Parallel()
	t.Run("Cluster", func(t *testing.T) {
		t.Parallel()
		cluster := testenv.RedisCluster(t)
		underLoad(t, "Redis Cluster master killed under load", cluster.URL(), cluster.KillMasterOf)
	})
	t.Run("Sentinels", func(t *testing.T) {
		t.Parallel()
		servers := testenv.RedisSentinels(t)
		underLoad(t, "Redis master killed under load, Sentinels", servers.URL(), func(string) { servers.KillMaster() })
	})
}

const (
	loadBuyers  = 200
	loadParties = 16 // buyers at a time
	loadBefore  = 60 // accepted before the kill
)

// underLoad runs a sale, kills the master of its keys and checks what its buyers see.
func underLoad(t *testing.T, fault, url string, kill func(key string)) {
	s := newSite(t, func(c *config.Config) { c.RedisURL = config.Secret(url) })
	s.launch("api")
	s.launch("worker,scheduler")
	made := s.seed(seed.Input{Users: loadBuyers, Stock: loadBuyers + spare})
	sale, err := id.ParseSale(made.SaleID)
	if err != nil {
		t.Fatal(err)
	}
	item, err := id.ParseItem(made.ItemID)
	if err != nil {
		t.Fatal(err)
	}
	key := reservation.Keys{Prefix: s.cfg.RedisPrefix}.Item(id.ShardOf(sale), item)

	db := s.database()
	var answered, killed, recovered atomic.Int64 // the latter two in Unix nanoseconds
	tasks := make([]string, loadBuyers)          // "" = the answer was lost, and the buyer has an order
	var load sync.WaitGroup
	slots := make(chan struct{}, loadParties)
	for i, u := range made.Users {
		slots <- struct{}{}
		load.Go(func() {
			defer func() { <-slots }()
			testenv.Eventually(t, testenv.Wait, func() (done bool) {
				began := time.Now().UnixNano()
				tasks[i], done = s.tryToPlace(u.AccessToken, made)
				if at := killed.Load(); tasks[i] != "" && at != 0 && began > at {
					recovered.CompareAndSwap(0, time.Now().UnixNano())
				}
				return done
			}, "the buyer has an answer")
			if answered.Add(1) == loadBefore {
				kill(key)
				killed.Store(time.Now().UnixNano())
			}
		})
	}
	load.Wait()
	accepted, failed := 0, 0
	for i, u := range made.Users {
		if tasks[i] == "" {
			continue
		}
		accepted++
		var status string
		testenv.Eventually(t, testenv.Wait, func() bool {
			status = s.taskStatus(u.AccessToken, tasks[i])
			return status == "SUCCEEDED" || status == "FAILED"
		}, "the attempt ends")
		if status == "FAILED" {
			failed++
			continue
		}
		task, err := id.ParseTask(tasks[i])
		if there, err2 := db.Ent.Order.Get(t.Context(), id.Order(task)); err != nil || err2 != nil {
			t.Errorf("a success without an order: %v %v %v", there, err, err2)
		}
	}
	var report *audit.Report
	testenv.Eventually(t, testenv.Wait, func() bool {
		report = s.look(made.SaleID)
		return report.Stream.Unread+report.Stream.Pending == 0 && report.Postgres.Orders > 0 && report.Redis.Reserved == report.Postgres.Orders
	}, "gate and record agree")
	if report.Postgres.Available+report.Postgres.Orders != loadBuyers+spare {
		t.Errorf("%+v", report.Postgres)
	}
	t.Logf("%d of %d buyers had an answer, %d attempts failed", accepted, loadBuyers, failed)
	testenv.RecordFault(t, testenv.FaultRow{
		Fault: fault, Accepted: accepted, Stored: report.Postgres.Orders, Failed: failed, LostUnits: lostUnits(report),
		Recovery: time.Duration(recovered.Load() - killed.Load()), MaxRecovery: testenv.MaxDeadMasterRecovery,
	})
}

// tryToPlace runs the whole purchase once. A call without an answer is repeated with the
// same input; a buyer whose answer stays lost is refused because of the order.
func (s *site) tryToPlace(token string, made *seed.Result) (task string, done bool) {
	s.t.Helper()
	path, why := s.tryToPath(token, made)
	if path == "" {
		return "", why == "ALREADY_ORDERED"
	}
	in := order(made.ItemID, path)
	for range 20 {
		p, err := s.place(token, in)
		switch {
		case err != nil:
			continue
		case p.why() == "" && p.OrderTask != nil:
			return p.OrderTask.ID, true
		default:
			return "", p.why() == "ALREADY_ORDERED"
		}
	}
	return "", false
}
