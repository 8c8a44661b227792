package system_test

import (
	"testing"
	"time"

	"seckill/internal/ops/seed"
	"seckill/internal/testenv"
)

func TestSIGTERMAnswersTheRequestsInFlight(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	gate, behind := s.throughProxy()
	p := s.launch("api,worker", behind)
	made := s.seed(seed.Input{Users: 1, Stock: 5, PathTTL: 10 * time.Minute})
	in := order(made.ItemID, made.Users[0].Path)
	word, _ := in["idempotencyKey"].(string)
	caught := gate.HoldRequest(word)
	var got placed
	answered := make(chan error, 1)
	go func() {
		var err error
		got, err = s.place(made.Users[0].AccessToken, in)
		answered <- err
	}()
	select {
	case <-caught:
	case err := <-answered:
		t.Fatalf("answered before it reached the gate: %v %+v", err, got)
	case <-time.After(testenv.Wait):
		t.Fatalf("the request does not reach the gate:\n%s", p.said())
	}
	p.terminate()
	gate.Release()
	if err := <-answered; err != nil || got.why() != "" || got.OrderTask == nil {
		t.Errorf("the request in flight: %v %+v", err, got)
	}
	if code := p.left(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, p.said())
	}
	s.launch("worker") // the next worker reads what this one left unread
	if report := s.drained(made.SaleID, 1); report.Redis.Stock != 4 {
		t.Errorf("report %+v", report)
	}
}

func TestSIGTERMWritesWhatTheWorkerHasRead(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	db := s.database()
	s.launch("api")
	made := s.seed(seed.Input{Users: 200, Stock: 200, PathTTL: 10 * time.Minute})
	release := holdStock(t, db)
	worker := s.launch("worker")
	s.buyAll(made, nil)
	inFlight := 0
	testenv.Eventually(t, testenv.Wait, func() bool {
		inFlight = s.look(made.SaleID).Stream.Pending
		return inFlight > 0
	}, "the worker has in-flight orders")
	worker.terminate()
	release()
	if code := worker.left(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, worker.said())
	}
	report := s.look(made.SaleID)
	if report.Stream.Pending != 0 || report.Postgres.Orders < inFlight || report.Postgres.Orders+report.Stream.Unread != 200 {
		t.Errorf("%d were in flight, after the drain %+v", inFlight, report)
	}
	s.launch("worker")
	if report := s.drained(made.SaleID, 200); report.Postgres.Orders != 200 {
		t.Errorf("report %+v", report)
	}
}
