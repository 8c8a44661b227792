package app_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seckill/internal/seed"
)

func TestFiveThousandRequestsOfTwoThousandBuyersSellTwoHundredUnits(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	made := s.seed(seed.Input{Users: 2000, Stock: 200, PathTTL: 10 * time.Minute})

	const requests = 5000
	codes, tasks := sync.Map{}, sync.Map{}
	var accepted atomic.Int64
	slots := make(chan struct{}, 256) // concurrent requests of one generator
	var wg sync.WaitGroup
	for i := range requests {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			u := made.Users[i%len(made.Users)]
			p, err := s.insist(u.AccessToken, order(made.ItemID, u.Path))
			if err != nil {
				t.Error(err)
				return
			}
			if p.why() == "" {
				accepted.Add(1)
				tasks.Store(p.OrderTask.ID, true)
			} else {
				n, _ := codes.LoadOrStore(p.why(), new(atomic.Int64))
				n.(*atomic.Int64).Add(1) //nolint:forcetypeassert // only counters are stored
			}
		})
	}
	wg.Wait()
	codes.Range(func(code, n any) bool {
		if code != "SOLD_OUT" && code != "PATH_INVALID" {
			t.Errorf("%v refusals with %v", n.(*atomic.Int64).Load(), code) //nolint:forcetypeassert // as above
		}
		return true
	})
	if accepted.Load() != 200 {
		t.Errorf("%d accepted, want 200", accepted.Load())
	}
	report := s.drained(made.SaleID, 200)
	if report.Postgres.Orders != 200 || report.Postgres.Available != 0 || report.Redis.Stock != 0 || report.Redis.Reserved != 200 {
		t.Errorf("report %+v", report)
	}
}

func TestTenThousandRequestsOfOneBuyerMakeOneOrder(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	made := s.seed(seed.Input{Users: 1, Stock: 50, PathTTL: 10 * time.Minute})
	u := made.Users[0]

	var accepted atomic.Int64
	tasks := sync.Map{}
	slots := make(chan struct{}, 256)
	var wg sync.WaitGroup
	for range 10_000 {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			p, err := s.insist(u.AccessToken, order(made.ItemID, u.Path))
			if err != nil {
				t.Error(err)
				return
			}
			if p.why() == "" {
				accepted.Add(1)
			}
			if p.OrderTask == nil {
				t.Errorf("refused with %s and no task named", p.why())
				return
			}
			tasks.Store(p.OrderTask.ID, true)
		})
	}
	wg.Wait()
	different := 0
	tasks.Range(func(any, any) bool { different++; return true })
	if accepted.Load() != 1 || different != 1 {
		t.Errorf("%d accepted, %d different tasks; want 1 and 1", accepted.Load(), different)
	}
	report := s.drained(made.SaleID, 1)
	if report.Postgres.Orders != 1 || report.Redis.Stock != 49 {
		t.Errorf("report %+v", report)
	}
}
