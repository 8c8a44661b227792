package system_test

import (
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seckill/internal/ops/seed"
	"seckill/internal/testenv"
)

// atOnce makes n calls, the first of which start at the same moment, each on its own
// connection: no call waits for another one, up to a number of calls in flight.
func (s *site) atOnce(n, inFlight int, call func(i int)) {
	s.t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: inFlight}
	s.t.Cleanup(transport.CloseIdleConnections)
	s.http = &http.Client{Transport: transport, Timeout: testenv.Wait}
	var next atomic.Int64
	var begun, done sync.WaitGroup
	begun.Add(inFlight)
	for range inFlight {
		done.Go(func() {
			begun.Done()
			begun.Wait()
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				call(i)
			}
		})
	}
	done.Wait()
}

// The tests of crowds run before the parallel ones: thousands of requests at once take all
// cores of this process, in which others measure how fast a dead master is replaced.

func TestFiveThousandRequestsOfTwoThousandBuyersSellTwoHundredUnits(t *testing.T) {
	s := newSite(t)
	s.launch("api,worker,scheduler") // another process: each has a limit of open files
	made := s.seed(seed.Input{Users: 2000, Stock: 200, PathTTL: 10 * time.Minute})

	const requests = 5000
	codes, tasks := sync.Map{}, sync.Map{}
	var accepted atomic.Int64
	s.atOnce(requests, requests, func(i int) {
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
			n.(*atomic.Int64).Add(1) // only counters are stored
		}
	})
	codes.Range(func(code, n any) bool {
		if code != "SOLD_OUT" && code != "PATH_INVALID" && code != "ALREADY_ORDERED" {
			t.Errorf("%v refusals with %v", n.(*atomic.Int64).Load(), code) // as above
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
	s := newSite(t)
	s.launch("api,worker,scheduler") // another process: each has a limit of open files
	made := s.seed(seed.Input{Users: 1, Stock: 50, PathTTL: 10 * time.Minute})
	u := made.Users[0]

	var accepted atomic.Int64
	tasks := sync.Map{}
	s.atOnce(10_000, callsInFlight, func(int) {
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
