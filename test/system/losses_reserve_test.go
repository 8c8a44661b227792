package system_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/internal/app"
	"seckill/internal/ops/seed"
	"seckill/internal/platform/config"
	"seckill/internal/testenv"
)

// TestStaffActWhileBuyersUseAllConnectionsToPostgres: a sale that overwhelms Postgres is the
// one that must be paused.
func TestStaffActWhileBuyersUseAllConnectionsToPostgres(t *testing.T) {
	t.Parallel()
	const buyers = 12
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	ann := s.staff("ann@example.com", "OPERATOR")
	made := s.seed(seed.Input{Users: buyers, Stock: buyers + 1, PathTTL: 10 * time.Minute})
	tasks := make([]string, buyers)
	for i, u := range made.Users {
		p, err := s.insist(u.AccessToken, order(made.ItemID, u.Path))
		if err != nil || p.why() != "" {
			t.Fatalf("buyer %d: %+v %v", i, p, err)
		}
		tasks[i] = p.OrderTask.ID
	}
	s.drained(made.SaleID, buyers)

	db := s.database()
	locks, err := db.SQL.BeginTx(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := locks.ExecContext(t.Context(), "SELECT FROM orders FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	var cancels sync.WaitGroup
	for i, u := range made.Users {
		cancels.Go(func() {
			out, err := s.try(u.AccessToken, `mutation($o: ID!) { cancelOrder(input: {orderId: $o}) { userErrors { code } } }`,
				map[string]any{"o": "ord_" + strings.TrimPrefix(tasks[i], "tsk_")})
			if string(out.Data) != `{"cancelOrder":{"userErrors":[]}}` || err != nil {
				t.Errorf("cancel: %s %+v %v", out.Data, out.Errors, err)
			}
		})
	}
	testenv.Eventually(t, testenv.Wait, func() bool {
		waiting := 0
		err := db.SQL.QueryRowContext(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&waiting)
		return err == nil && waiting >= s.cfg.DatabasePool
	}, "buyers use all connections")
	took := map[string]time.Duration{}
	timed := func(what string, do func()) {
		began := time.Now()
		do()
		took[what] = time.Since(began)
	}
	timed("pause", func() { s.onSale(ann, "pauseSale", made.SaleID, "too much", "PAUSED") })
	timed("read", func() {
		if status := s.statusOf(ann, made.SaleID); status != "PAUSED" {
			t.Errorf("the sale is %s", status)
		}
	})
	timed("audit", func() { s.audit(made.SaleID) })
	if err := locks.Rollback(); err != nil {
		t.Error(err)
	}
	cancels.Wait()
	t.Log(fmt.Sprint(took))
	for what, d := range took {
		if d > 10*time.Second { // of the minute that a request may take
			t.Errorf("%s took %s", what, d)
		}
	}
}

// TestStaffActWhileBuyersUseAllConnectionsToRedis: every connection that requests share is
// in use and stays so, as with a Redis that does not keep up, and buyers queue for them.
func TestStaffActWhileBuyersUseAllConnectionsToRedis(t *testing.T) {
	t.Parallel()
	const queued = 16
	s := newSite(t, func(c *config.Config) { // keeps the production timeout for a connection
		c.RedisURL = config.Secret("redis://" + testenv.RedisAddr(t) + "/0?dial_timeout=2m&read_timeout=2m&write_timeout=2m")
		c.Limits = config.SwitchOn
	})
	a, _ := s.open("api", "worker", "scheduler")
	ann := s.staff("ann@example.com", "OPERATOR")
	made := s.seed(seed.Input{Users: 1, Stock: 3, PathTTL: 10 * time.Minute})
	buyer := made.Users[0]
	p, err := s.insist(buyer.AccessToken, order(made.ItemID, buyer.Path))
	if err != nil || p.why() != "" {
		t.Fatalf("%+v %v", p, err)
	}
	s.drained(made.SaleID, 1)
	release, err := holdRedis(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var buyers sync.WaitGroup
	t.Cleanup(func() { stop(); buyers.Wait() })
	for range queued {
		buyers.Go(func() {
			for ctx.Err() == nil {
				_, _ = s.try(buyer.AccessToken, `query($i: ID!) { orderTask(id: $i) { status } }`, map[string]any{"i": p.OrderTask.ID})
			}
		})
	}
	took := map[string]time.Duration{}
	timed := func(what string, do func()) {
		began := time.Now()
		do()
		took[what] = time.Since(began)
	}
	timed("adjust", func() {
		adjust := map[string]any{"itemId": made.ItemID, "units": 2, "note": "more came", "idempotencyKey": "0123456789abcdef"}
		if p := s.mutate(ann, "adjustStock", "intervention { state }", adjust); p.why() != "" || p.Intervention["state"] != "DONE" {
			t.Errorf("adjustStock: %+v", p)
		}
	})
	timed("pause", func() { s.onSale(ann, "pauseSale", made.SaleID, "too much", "PAUSED") })
	timed("read", func() {
		if status := s.statusOf(ann, made.SaleID); status != "PAUSED" {
			t.Errorf("the sale is %s", status)
		}
	})
	timed("audit", func() { s.audit(made.SaleID) })
	stop()
	buyers.Wait()
	if err := release(); err != nil {
		t.Error(err)
	}
	t.Log(fmt.Sprint(took))
	for what, d := range took {
		if d > 10*time.Second { // of the minute that a request may take
			t.Errorf("%s took %s", what, d)
		}
	}
}

// holdRedis takes every connection of the pools that requests share and returns a function
// that gives them back.
func holdRedis(ctx context.Context, a *app.App) (release func() error, err error) {
	var held []*redis.Conn
	for _, shared := range a.SharedRedis() {
		client, ok := shared.(*redis.Client)
		if !ok {
			return nil, errors.New("not one server")
		}
		for range client.Options().PoolSize {
			conn := client.Conn()
			held = append(held, conn)
			if err := conn.Ping(ctx).Err(); err != nil {
				return nil, err
			}
		}
	}
	return func() (err error) {
		for _, conn := range held {
			err = errors.Join(err, conn.Close())
		}
		return err
	}, nil
}
