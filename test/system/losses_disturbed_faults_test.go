//go:build faults

package system_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/internal/ops/seed"
	"seckill/internal/platform/config"
	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

// disturbedFor is how long a store is disturbed, from the first buyer on.
const disturbedFor = 5 * time.Second

// disturbance keeps a store from working properly until ctx ends, and then lets it work.
type disturbance struct {
	name string
	do   func(ctx context.Context, s *site, conn redis.UniversalClient) error
}

// disturbances are faults in which a store is never away for long, but refuses or breaks off
// a part of what it is asked.
var disturbances = []disturbance{
	{"Redis ends all connections, again and again", func(ctx context.Context, _ *site, conn redis.UniversalClient) error {
		return repeatedly(ctx, 20*time.Millisecond, func() error { return conn.Do(ctx, "CLIENT", "KILL", "TYPE", "normal").Err() })
	}},
	{"Postgres ends all connections, again and again", func(ctx context.Context, s *site, _ redis.UniversalClient) error {
		db := s.database()
		return repeatedly(ctx, 50*time.Millisecond, func() error {
			_, err := db.SQL.ExecContext(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)
			return err
		})
	}},
	{"Redis is out of memory, again and again", func(ctx context.Context, _ *site, conn redis.UniversalClient) error {
		limit := func(ctx context.Context, bytes string) error { return conn.ConfigSet(ctx, "maxmemory", bytes).Err() }
		full := false
		err := repeatedly(ctx, 40*time.Millisecond, func() error {
			if full = !full; full {
				return limit(ctx, "1")
			}
			return limit(ctx, "0")
		})
		return errors.Join(err, limit(context.WithoutCancel(ctx), "0"))
	}},
	// Commands wait longer than the clients do, and run after those have given up.
	{"Redis lets writes wait, again and again", func(ctx context.Context, _ *site, conn redis.UniversalClient) error {
		err := repeatedly(ctx, time.Second, func() error { return conn.Do(ctx, "CLIENT", "PAUSE", "800", "WRITE").Err() })
		return errors.Join(err, conn.ClientUnpause(context.WithoutCancel(ctx)).Err())
	}},
	{"Redis follows a master that is dead", func(ctx context.Context, _ *site, conn redis.UniversalClient) error {
		err := conn.Do(ctx, "REPLICAOF", "127.0.0.1", "1").Err()
		<-ctx.Done()
		return errors.Join(err, conn.Do(context.WithoutCancel(ctx), "REPLICAOF", "NO", "ONE").Err())
	}},
}

// repeatedly calls do until ctx ends. Errors count only when no call succeeded: the
// connection of the test may be ended as well.
func repeatedly(ctx context.Context, every time.Duration, do func() error) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	var failed error
	for succeeded := false; ; {
		if err := do(); err == nil {
			succeeded = true
		} else if ctx.Err() == nil {
			failed = err
		}
		select {
		case <-ctx.Done():
			if succeeded {
				return nil
			}
			return errors.Join(errors.New("no call succeeded"), failed)
		case <-tick.C:
		}
	}
}

func TestAllIsSoldOnceWhileAStoreRefusesConnectionsOrCommandsForMoments(t *testing.T) {
	t.Parallel()
	const buyers, stock, atOnce = 66, 60, 8
	for _, d := range disturbances {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			server := testenv.RedisServer(t)
			s := newSite(t, func(c *config.Config) {
				c.RedisURL = config.Secret(server.ShortURL() + "?dial_timeout=5s") // as in production, on a busy machine
				c.DatabaseURL = config.Secret(testdb.ShortPostgresURL(t))
			})
			processes := []*process{s.launch("worker"), s.launch("scheduler"), s.launch("api")}
			made := s.seed(seed.Input{Users: buyers, Stock: stock, PermitRatio: 10})
			ctx, cancel := context.WithTimeout(t.Context(), disturbedFor)
			defer cancel()
			var ended time.Time // set before disturbed is closed
			disturbed := make(chan struct{})
			conn := server.Conn().Cmd
			go func() {
				defer close(disturbed)
				if err := d.do(ctx, s, conn); err != nil {
					t.Error(err)
				}
				ended = time.Now()
			}()
			var meanwhile int
			var next time.Time // first acceptance afterwards
			tasks := s.allBuy(made, atOnce, func() string { return s.url }, func(n int) {
				select {
				case <-disturbed:
					if next.IsZero() {
						next = time.Now()
					}
				default:
					meanwhile = n
				}
			})
			<-disturbed
			report := s.drained(made.SaleID, stock)
			t.Logf("%d of %d were accepted meanwhile, the rest took %s", meanwhile, len(tasks), time.Since(ended).Round(time.Millisecond))
			if next.IsZero() {
				t.Error("all were sold before the disturbance ended")
			}
			for _, p := range processes {
				if n, err := p.metric("seckill_fault_panics_total"); err != nil || n != 0 {
					t.Errorf("%v panics, %v", n, err)
				}
			}
			s.recordSold(d.name, made, tasks, stock, next.Sub(ended))
			s.oneOrder(s.seen, stock, buyers)
			if report.Postgres.Orders != stock {
				t.Errorf("%+v", report.Postgres)
			}
		})
	}
}

// recordSold requires that all units are sold, and that all buyers who were accepted have
// their order.
func (s *site) recordSold(fault string, made *seed.Result, tasks map[int]string, stock int, recovery time.Duration) {
	s.t.Helper()
	report := s.audit(made.SaleID)
	distinct := map[string]bool{}
	for i, task := range tasks {
		distinct[task] = true
		if got := s.taskStatus(made.Users[i].AccessToken, task); got != "SUCCEEDED" {
			s.t.Errorf("buyer %d sees %s", i, got)
		}
	}
	if len(distinct) != stock || report.Redis.Stock != 0 {
		s.t.Errorf("%d of %d units are sold, %+v", len(distinct), stock, report)
	}
	testenv.RecordFault(s.t, testenv.FaultRow{
		Fault: fault, Accepted: len(distinct), Stored: report.Postgres.Orders, LostUnits: lostUnits(report), Recovery: recovery,
	})
}

// allBuy lets all buyers buy, from the captcha on, until each has an order or the sale is
// sold out, and returns the tasks by buyer. pick returns the address of a process for each
// step. accepted is called with the number of tasks after each, one call at a time.
func (s *site) allBuy(made *seed.Result, atOnce int, pick func() string, accepted func(n int)) map[int]string {
	s.t.Helper()
	var mu sync.Mutex
	tasks := map[int]string{} // guarded by mu
	s.atOnce(len(made.Users), atOnce, func(i int) {
		task, why := s.buysInTheEnd(made, i, pick)
		if task == "" {
			if why != "SOLD_OUT" {
				s.t.Errorf("buyer %d: %s", i, why)
			}
			return
		}
		mu.Lock()
		defer mu.Unlock()
		tasks[i] = task
		accepted(len(tasks))
	})
	return tasks
}

// buysInTheEnd repeats the purchase until it has an order task or a refusal that stays. It
// pauses before another captcha, as a person does: each adds to the next one's work.
func (s *site) buysInTheEnd(made *seed.Result, buyer int, pick func() string) (task, why string) {
	token := made.Users[buyer].AccessToken
	of := ofBuyer{buyer: buyer, token: token, began: time.Now()}
	for began := of.began; time.Since(began) < testenv.Wait; <-time.After(500 * time.Millisecond) {
		at := *s
		at.url = pick()
		asked := time.Now()
		path, refusal := at.tryToPath(token, made)
		if path == "" {
			why = refusal
			s.seen.refused(of, why, asked)
			if task = at.ownTask(token, made.SaleID); task != "" { // the reply of a call was lost
				of.task = task
				s.seen.took(of)
			}
			if task != "" || why == "SOLD_OUT" {
				return task, why
			}
			continue
		}
		for in := order(made.ItemID, path); time.Since(began) < testenv.Wait; <-time.After(20 * time.Millisecond) {
			at.url = pick()
			out, err := at.try(token, placeOrder, map[string]any{"in": in})
			if err != nil || slices.Contains(tryAgain, out.code()) {
				continue
			}
			p, err := out.placed()
			s.seen.placed(of, p, err)
			switch {
			case err != nil:
				return "", err.Error()
			case p.OrderTask != nil:
				return p.OrderTask.ID, ""
			case p.why() == "SOLD_OUT":
				return "", p.why()
			}
			why = p.why()
			break // with another path
		}
	}
	return "", "no answer but " + why
}

// ownTask returns the task of a buyer's order, "" without one.
func (s *site) ownTask(token, saleID string) string {
	out, err := s.try(token, `query($i: ID!) { sale(by: {id: $i}) { viewer { order { id } } } }`, map[string]any{"i": saleID})
	if err != nil || out.code() != "" {
		return ""
	}
	var data struct {
		Sale struct {
			Viewer struct{ Order *struct{ ID string } }
		}
	}
	out.into(s.t, &data)
	if data.Sale.Viewer.Order == nil {
		return ""
	}
	return "tsk_" + strings.TrimPrefix(data.Sale.Viewer.Order.ID, "ord_")
}

// The passwords of Redis and Postgres are changed while buyers buy, and Redis ends the
// connections. Each process is then replaced by one with the new passwords, without kill -9.
func TestNoOrderIsLostWhileThePasswordsOfTheStoresAreRotated(t *testing.T) {
	t.Parallel()
	const buyers, stock, atOnce = 66, 60, 6
	server, postgres := testenv.RedisServer(t), testdb.StartAlone(t)
	s := newSite(t, func(c *config.Config) {
		c.RedisURL, c.DatabaseURL = config.Secret(testenv.LockableURL(t, server)), config.Secret(postgres.WithPassword("old"))
	})
	former := []*process{s.launch("worker"), s.launch("api"), s.launch("api"), s.launch("scheduler")}
	roles := []string{"worker", "api", "api", "scheduler"}
	b := &balancer{urls: []string{"http://" + former[1].public, "http://" + former[2].public}}
	made := s.seed(seed.Input{Users: buyers, Stock: stock, PermitRatio: 10})
	var accepted atomic.Int64
	var tasks map[int]string
	bought := make(chan struct{})
	go func() {
		defer close(bought)
		tasks = s.allBuy(made, atOnce, b.pick, func(n int) { accepted.Store(int64(n)) })
	}()
	testenv.Eventually(t, testenv.Wait, func() bool { return accepted.Load() >= stock/4 }, "a quarter is sold")

	renewed := *s
	cfg := *s.cfg
	cfg.DatabaseURL = config.Secret(postgres.WithPassword("new"))
	cfg.RedisURL = config.Secret(testenv.RotatePassword(t, server))
	renewed.cfg = &cfg
	rotated := time.Now()
	for i, old := range former {
		fresh := renewed.launch(roles[i])
		if roles[i] == "api" {
			b.replace("http://"+old.public, "http://"+fresh.public)
		}
		old.terminate()
		began := time.Now()
		if code := old.left(); code != 0 {
			t.Errorf("the old %s ended with %d:\n%s", roles[i], code, old.said())
		}
		t.Logf("the old %s ended after %s", roles[i], time.Since(began).Round(time.Millisecond))
	}
	recovery := time.Since(rotated)
	<-bought
	renewed.drained(made.SaleID, stock)
	renewed.recordSold("passwords of Redis and Postgres rotated", made, tasks, stock, recovery)
	renewed.oneOrder(s.seen, stock, buyers)
}
