//go:build faults

package system_test

import (
	"testing"
	"time"

	"seckill/internal/buy/reservation"
	"seckill/internal/ops/seed"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

// The buyers wait for the decision, their units stay reserved, and the operator can still
// decide. A message becomes a dead letter after 20 attempts, which take half a minute.
func TestDeadLettersOutliveTheLossOfRedis(t *testing.T) {
	t.Parallel()
	s, server, client, keys := onOwnRedis(t)
	s.start("api", "worker", "scheduler")
	operator := s.staff("letters@example.com", "OPERATOR")
	made := s.seed(seed.Input{Users: 2, Stock: 3, PathTTL: 10 * time.Minute})
	kept, dropped := made.Users[0], made.Users[1]
	cure := s.poison(kept.Account, dropped.Account)
	tasks := map[string]string{} // by account
	for _, u := range made.Users {
		p, err := s.place(u.AccessToken, order(made.ItemID, u.Path))
		if err != nil || p.OrderTask == nil {
			t.Fatalf("placed %+v %v", p, err)
		}
		tasks[u.Account] = p.OrderTask.ID
	}
	var letters []deadLetter
	testenv.Eventually(t, testenv.Wait, func() bool {
		letters = s.deadLetters(operator)
		return len(letters) == 2
	}, "two messages are set aside")
	lost := time.Now()
	server.FlushAll()
	testenv.Eventually(t, testenv.Wait, func() bool {
		g := gateOf(t, client, keys, made)
		return g["epoch"] > "1" && g["gate"] == reservation.GateOpen
	}, "the gate is rebuilt under a higher epoch")
	recovery := time.Since(lost)
	if g := gateOf(t, client, keys, made); g["stock"] != "1" || g["reserved"] != "2" {
		t.Errorf("gate %v, want 1 left and 2 reserved", g)
	}
	after := s.deadLetters(operator)
	if len(after) != 2 || after[0].ID != letters[0].ID || after[1].ID != letters[1].ID {
		t.Fatalf("letters after the loss: %+v", after)
	}
	byTask := map[string]string{}
	for _, l := range after {
		if l.OrderTask == nil || l.OrderTask.Status != "SUBMITTED" {
			t.Fatalf("letter %+v", l)
		}
		byTask[l.OrderTask.ID] = l.ID
	}
	cure()
	if why := s.decide(operator, "replayDeadLetter", byTask[tasks[kept.Account]]); why != "" {
		t.Errorf("replay: %s", why)
	}
	if why := s.decide(operator, "dropDeadLetter", byTask[tasks[dropped.Account]]); why != "" {
		t.Errorf("drop: %s", why)
	}
	testenv.Eventually(t, testenv.Wait, func() bool { return s.taskStatus(kept.AccessToken, tasks[kept.Account]) == "SUCCEEDED" }, "the replayed order is written")
	if status := s.taskStatus(dropped.AccessToken, tasks[dropped.Account]); status != "FAILED" {
		t.Errorf("the dropped task is %s", status)
	}
	if left := s.deadLetters(operator); len(left) != 0 {
		t.Errorf("letters %+v", left)
	}
	saleID, err := id.ParseSale(made.SaleID)
	if err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, testenv.Wait, func() bool {
		report := s.look(saleID.Public())
		return report.OK && report.Postgres.Orders == 1 && report.Redis.Stock == 2 && report.Stream.Dead == 0
	}, "the unit of the dropped message is back")
	testenv.RecordFault(t, testenv.FaultRow{
		Fault: "Redis emptied while dead letters wait", Accepted: 2, Stored: 1, Failed: 1, LostUnits: lostUnits(s.audit(made.SaleID)), Recovery: recovery,
	})
}
