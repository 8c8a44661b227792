package system_test

import (
	"testing"
	"time"

	"seckill/internal/buy/reservation"
	"seckill/internal/ops/seed"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

// A scheduler that is killed while it rebuilds a gate. word is in the script call that
// writes the reservations, opening in the one that opens the gate.
func TestASchedulerKilledInsideARebuildLeavesNoGateShut(t *testing.T) {
	t.Parallel()
	for _, point := range atMost(killsPerTest, []struct {
		name string
		arm  func(gate *testenv.Proxy, word, opening string) <-chan struct{}
	}{
		{"before it has opened the gate", func(gate *testenv.Proxy, _, opening string) <-chan struct{} { return gate.HoldRequest(opening) }},
		{"after it has written the reservations", func(gate *testenv.Proxy, word, _ string) <-chan struct{} { return gate.HoldReplyTo(word) }},
		{"before it has written the reservations", func(gate *testenv.Proxy, word, _ string) <-chan struct{} { return gate.HoldRequest(word) }},
		{"after it has opened the gate", func(gate *testenv.Proxy, _, opening string) <-chan struct{} { return gate.HoldReplyTo(opening) }},
	}) {
		t.Run(point.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.launch("api")
			worker := s.launch("worker")
			made := s.seed(seed.Input{Users: 4, Stock: 3})
			task, err := id.ParseTask(s.bought(made.Users[0].AccessToken, made))
			if err != nil {
				t.Fatal(err)
			}
			s.drained(made.SaleID, 1)
			worker.kill()
			conn, _ := testenv.Redis(t)
			keys := reservation.Keys{Prefix: s.cfg.RedisPrefix}
			lost := gateOf(t, conn.Cmd, keys, made)
			gate, behind := s.throughProxy()
			scheduler := s.launch("scheduler", behind)
			caught := point.arm(gate, task.String(), lost["opens"])
			if err := conn.Cmd.Del(t.Context(), gateKey(t, keys, made)).Err(); err != nil {
				t.Fatal(err)
			}
			await(t, caught, "the scheduler does not come to this step")
			scheduler.kill()
			gate.Cut()
			gate.Release()
			killed := time.Now()
			s.launch("worker,scheduler")
			testenv.Eventually(t, testenv.Wait, func() bool {
				g := gateOf(t, conn.Cmd, keys, made)
				return g["gate"] == reservation.GateOpen && g["epoch"] > lost["epoch"]
			}, "the gate is open under a higher epoch")
			recovery := time.Since(killed)
			if n := s.buy(made, made.Users[1:]); n != 2 {
				t.Errorf("%d accepted afterwards, want the 2 that were left", n)
			}
			report := s.drained(made.SaleID, 3)
			testenv.RecordFault(t, testenv.FaultRow{
				Fault: "scheduler killed in a rebuild " + point.name, Accepted: 3, Stored: report.Postgres.Orders, LostUnits: lostUnits(report), Recovery: recovery,
			})
		})
	}
}
