package system_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seckill/internal/gate/audit"
	"seckill/internal/ops/seed"
	"seckill/internal/testenv"
)

// killPoint is a moment between two steps of placing an order at which the API process is
// killed.
type killPoint struct {
	name string
	// arm prepares the kill and returns a channel that is closed at the moment to kill.
	// The word occurs only in the request and in the script call.
	arm func(gate, door *testenv.Proxy, word string) <-chan struct{}
	// late forwards the held bytes after the kill, as a network may; otherwise they are
	// dropped.
	late bool
	// taken is the number of units reserved in the gate after the kill and before the
	// retry.
	taken int
}

// atMost returns the first n elements, or all if there are fewer.
func atMost[T any](n int, all []T) []T { return all[:min(n, len(all))] }

// killPoints lists the moments, the most revealing first. The proxy door is between the buyer and the API, gate is
// between the API and Redis.
func killPoints() []killPoint {
	holdScript := func(gate, _ *testenv.Proxy, word string) <-chan struct{} { return gate.HoldRequest(word) }
	return []killPoint{
		{name: "after the script, before its reply", taken: 1,
			arm: func(gate, _ *testenv.Proxy, word string) <-chan struct{} { return gate.HoldReplyTo(word) }},
		{name: "while the script is on its way", arm: holdScript, late: true, taken: 1},
		{name: "before the process has read the request", taken: 0,
			arm: func(_, door *testenv.Proxy, word string) <-chan struct{} { return door.HoldRequest(word) }},
		{name: "before the script has reached Redis", arm: holdScript, taken: 0},
		{name: "after the reply, before the answer is read", taken: 1,
			arm: func(_, door *testenv.Proxy, word string) <-chan struct{} { return door.HoldReplyTo(word) }},
	}
}

func TestAnAPIKilledBetweenAnyTwoStepsLosesNoUnitAndSellsNoneTwice(t *testing.T) {
	t.Parallel()
	for _, point := range atMost(killsPerTest, killPoints()) {
		t.Run(point.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			gate, behind := s.throughProxy()
			api := s.launch("api", behind)
			made := s.seed(seed.Input{Users: 2, Stock: 5, PathTTL: 10 * time.Minute})
			door := testenv.NewProxy(t, api.public)
			s.url = "http://" + door.Addr()

			buyer, in := made.Users[0], order(made.ItemID, made.Users[0].Path)
			word, _ := in["idempotencyKey"].(string)
			caught := point.arm(gate, door, word)
			lost := make(chan error, 1)
			go func() {
				_, err := s.place(buyer.AccessToken, in)
				lost <- err
			}()
			await(t, caught, "the moment of the kill does not come")
			api.kill()
			if !point.late {
				gate.Cut()
			}
			door.Cut()
			gate.Release()
			door.Release()
			if err := <-lost; err == nil {
				t.Error("the buyer had an answer of a process that was killed before it")
			}
			testenv.Eventually(t, testenv.Wait, func() bool {
				r := s.look(made.SaleID)
				return r.Redis.Reserved == point.taken && r.Redis.Stock == 5-point.taken && r.Stream.Unread+r.Stream.Pending == point.taken
			}, "the gate and the stream agree after the kill")
			began := time.Now()
			report := s.retryAfterTheKill(made, in, point.taken)
			testenv.RecordFault(t, testenv.FaultRow{
				Fault: "API killed " + point.name, Accepted: 2, Stored: report.Postgres.Orders, LostUnits: lostUnits(report), Recovery: time.Since(began),
			})
		})
	}
}

// lostUnits returns the units of a sale that the gate neither has in stock nor reserved.
func lostUnits(r *audit.Report) int { return r.Postgres.Total - r.Redis.Stock - r.Redis.Reserved }

// retryAfterTheKill repeats the call with the same idempotency key at a new process,
// checks the totals and returns them.
func (s *site) retryAfterTheKill(made *seed.Result, in map[string]any, taken int) *audit.Report {
	s.t.Helper()
	s.launch("api")
	s.awaitSale(made.SaleID)
	var first string
	for i := range 3 {
		p, err := s.place(made.Users[0].AccessToken, in)
		if err != nil || p.why() != "" || p.OrderTask == nil {
			s.t.Fatalf("asked again: %v %s %+v", err, p.why(), p)
		}
		if i == 0 {
			first = p.OrderTask.ID
		}
		if p.OrderTask.ID != first || p.Replayed != (i > 0 || taken > 0) {
			s.t.Errorf("asked again for the %d. time: %+v, want task %s", i+1, p, first)
		}
	}
	other, err := s.place(made.Users[1].AccessToken, order(made.ItemID, made.Users[1].Path))
	if err != nil || other.why() != "" {
		s.t.Errorf("another buyer: %v %s", err, other.why())
	}
	s.launch("worker")
	report := s.drained(made.SaleID, 2)
	if report.Postgres.Orders != 2 || report.Postgres.Available != 3 || report.Redis.Stock != 3 || report.Redis.Reserved != 2 {
		s.t.Errorf("report %+v", report)
	}
	if got := s.taskStatus(made.Users[0].AccessToken, first); got != "SUCCEEDED" {
		s.t.Errorf("the buyer's task is %s", got)
	}
	return report
}

// Covers what no single kill point does: many requests at different steps, killed several
// times in one run.
func TestAnAPIKilledUnderLoadSellsEachBuyerOneUnit(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	port := "SECKILL_HTTP_ADDR=" + testenv.ReserveAddr(t)
	api := s.launch("api", port)
	made := s.seed(seed.Input{Users: 600, Stock: 1000, PathTTL: 10 * time.Minute})
	s.launch("worker,scheduler")

	var answered, unanswered atomic.Int64
	die := make(chan struct{}, 1)
	var load sync.WaitGroup
	slots := make(chan struct{}, 32)
	load.Go(func() {
		for i, u := range made.Users {
			slots <- struct{}{}
			if i%150 == 100 {
				die <- struct{}{}
			}
			load.Go(func() {
				defer func() { <-slots }()
				in, of := order(made.ItemID, u.Path), ofBuyer{buyer: i, token: u.AccessToken, began: time.Now()}
				testenv.Eventually(t, testenv.Wait, func() bool { // the same input, until the call is answered
					p, err := s.place(u.AccessToken, in)
					if err != nil {
						unanswered.Add(1)
						return false
					}
					s.seen.placed(of, p, nil)
					if p.why() != "" {
						t.Errorf("refused: %s", p.why())
					}
					return true
				}, "the buyer has an answer")
				answered.Add(1)
			})
		}
		close(die)
	})
	kills := 0
	var recovery time.Duration // the longest time without a process
	for range die {
		killed := time.Now()
		api.kill()
		api = s.launch("api", port)
		recovery = max(recovery, time.Since(killed))
		kills++
	}
	load.Wait()
	report := s.drained(made.SaleID, 600)
	if answered.Load() != 600 || kills != 4 || unanswered.Load() == 0 {
		t.Errorf("%d answered, %d kills, %d requests without an answer", answered.Load(), kills, unanswered.Load())
	}
	s.oneOrder(s.seen, 1000, 1200)
	if report.Postgres.Orders != 600 || report.Postgres.Available != 400 || report.Redis.Stock != 400 || report.Redis.Reserved != 600 {
		t.Errorf("report %+v", report)
	}
	testenv.RecordFault(t, testenv.FaultRow{
		Fault: "API killed under load, 4 times", Accepted: int(answered.Load()), Stored: report.Postgres.Orders, LostUnits: lostUnits(report), Recovery: recovery,
	})
}
