package system_test

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seckill/internal/ops/seed"
	"seckill/internal/testenv"
)

// balancer is the list of API processes that buyers use, as a load balancer has it.
type balancer struct {
	mu   sync.Mutex
	urls []string // guarded by mu
	next int      // guarded by mu
}

func (b *balancer) pick() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.next++
	return b.urls[b.next%len(b.urls)]
}

func (b *balancer) replace(old, by string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.urls[slices.Index(b.urls, old)] = by
}

// placeAnywhere calls placeOrder with one input, at another process after each answer that
// asks for a retry and after each lost connection.
func (s *site) placeAnywhere(b *balancer, token string, in map[string]any) (p placed, why string) {
	for range 200 {
		at := *s
		at.url = b.pick()
		out, err := at.try(token, placeOrder, map[string]any{"in": in})
		if err != nil {
			continue
		}
		switch code := out.code(); code {
		case "TIMEOUT", "OVERLOADED", "UNAVAILABLE":
			continue
		case "":
			p, err = out.placed()
			if err != nil {
				return p, err.Error()
			}
			return p, p.why()
		default:
			return p, code
		}
	}
	return p, "no answer"
}

// Every process of the sale is replaced while buyers order: for a time the old and the new
// one of each role run at once.
func TestARollingRestartUnderLoadLosesAndDoublesNoOrder(t *testing.T) {
	t.Parallel()
	const buyers, atOnce = 240, 8
	s := newSite(t)
	old := map[string]*process{"worker": s.launch("worker"), "scheduler": s.launch("scheduler"), "api": s.launch("api")}
	second := s.launch("api")
	b := &balancer{urls: []string{"http://" + old["api"].public, "http://" + second.public}}
	made := s.seed(seed.Input{Users: buyers, Stock: buyers, PathTTL: 10 * time.Minute})
	for _, url := range b.urls {
		at := *s
		at.url = url
		at.awaitSale(made.SaleID)
	}

	var answered atomic.Int64
	tasks := make([]string, buyers)
	loaded := make(chan struct{})
	go func() {
		defer close(loaded)
		s.atOnce(buyers, atOnce, func(i int) {
			in := order(made.ItemID, made.Users[i].Path)
			p, why := s.placeAnywhere(b, made.Users[i].AccessToken, in)
			if why != "" || p.OrderTask == nil {
				t.Errorf("buyer %d: an error that is not retryable: %s", i, why)
				return
			}
			tasks[i] = p.OrderTask.ID
			answered.Add(1)
		})
	}()
	reached := func(share int64) {
		testenv.Eventually(t, testenv.Wait, func() bool { return answered.Load() >= share || t.Failed() }, "buyers are answered")
	}
	began := time.Now()
	roll := func(role string, former *process) {
		fresh := s.launch(role)
		if role == "api" {
			b.replace("http://"+former.public, "http://"+fresh.public)
		}
		former.terminate()
		if code := former.left(); code != 0 {
			t.Errorf("the old %s ended with %d:\n%s", role, code, former.said())
		}
	}
	reached(buyers / 6)
	roll("worker", old["worker"])
	reached(buyers / 4)
	roll("api", old["api"])
	reached(buyers / 3)
	roll("scheduler", old["scheduler"])
	roll("api", second)
	<-loaded
	took := time.Since(began)

	at := *s
	at.url = b.pick()
	report := at.drained(made.SaleID, buyers)
	distinct := map[string]bool{}
	for i, task := range tasks {
		if distinct[task] || task == "" {
			t.Errorf("buyer %d has task %q", i, task)
		}
		distinct[task] = true
		if got := at.taskStatus(made.Users[i].AccessToken, task); got != "SUCCEEDED" {
			t.Errorf("buyer %d sees %s", i, got)
		}
	}
	if report.Postgres.Orders != buyers || report.Redis.Stock != 0 || len(distinct) != buyers {
		t.Errorf("%d tasks, %+v", len(distinct), report)
	}
	testenv.RecordFault(t, testenv.FaultRow{
		Fault: "rolling restart of worker, API and scheduler under load", Accepted: len(distinct), Stored: report.Postgres.Orders,
		LostUnits: lostUnits(report), Recovery: took,
	})
}
