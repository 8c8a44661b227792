package system_test

import (
	"fmt"
	"testing"
	"time"

	"seckill/internal/ops/seed"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

// killedUse is a moment at which the process is killed between two steps of taking or returning
// the use of a code.
type killedUse struct {
	name string
	// returning is whether the process is killed while an order is cancelled; else while it is placed.
	returning bool
	// arm prepares the kill. The word of a placed order is its idempotency key, that of a cancelled
	// one are the arguments of its release.
	arm func(gate, record *testenv.Proxy, word string) <-chan struct{}
}

// killedUses lists the moments, the most revealing first.
func killedUses() []killedUse {
	return []killedUse{
		{"after the use of a code is taken, before its order is stored", false,
			func(_, record *testenv.Proxy, _ string) <-chan struct{} {
				return record.HoldRequest("INSERT INTO orders ")
			}},
		{"after the order is cancelled, before the use of its code returns", true,
			func(gate, _ *testenv.Proxy, word string) <-chan struct{} { return gate.HoldRequest(word) }},
		{"after the use of a code is taken, before it is known", false,
			func(gate, _ *testenv.Proxy, word string) <-chan struct{} { return gate.HoldReplyTo(word) }},
		{"after the use of a code has returned, before it is known", true,
			func(gate, _ *testenv.Proxy, word string) <-chan struct{} { return gate.HoldReplyTo(word) }},
		{"before the use of a code is taken", false,
			func(gate, _ *testenv.Proxy, word string) <-chan struct{} { return gate.HoldRequest(word) }},
		{"after the order of a code is stored, before its message is acknowledged", false,
			func(gate, _ *testenv.Proxy, _ string) <-chan struct{} { return gate.HoldRequest("xack") }},
		{"before the order of a code is cancelled", true,
			func(_, record *testenv.Proxy, _ string) <-chan struct{} { return record.HoldRequest(`UPDATE "orders"`) }},
	}
}

// The code has one use, which three buyers want.
func TestAProcessKilledInsideAUseOfACodeNeitherLosesNorRepeatsIt(t *testing.T) {
	t.Parallel()
	for _, point := range atMost(killsPerTest, killedUses()) {
		t.Run(point.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			gate, redis := s.throughProxy()
			record, postgres := s.databaseThroughProxy()
			settings := []string{"SECKILL_HTTP_ADDR=" + testenv.ReserveAddr(t), ownPort(t), redis, postgres}
			process := s.launch("api,worker,scheduler", settings...)
			made := s.seed(seed.Input{Users: 3, Stock: 5, PermitRatio: 10})
			s.rule(made, pressOnly)
			_, codes := s.codes(s.staff("ann@example.com", "OPERATOR"), made.SaleID, 1, 1)
			tokens := make([]string, len(made.Users))
			for i, u := range made.Users {
				tokens[i] = u.AccessToken
				testenv.Eventually(t, testenv.Wait, func() bool { return s.redeem(tokens[i], made, codes[0]) == "" }, "the code is redeemed")
			}
			var recovery time.Duration
			// step runs a step; when it is the one of the point, the process is killed inside.
			step := func(returning bool, word string, do func()) {
				t.Helper()
				if returning != point.returning {
					do()
					return
				}
				caught, ended := point.arm(gate, record, word), make(chan struct{})
				go func() { defer close(ended); do() }()
				await(t, caught, "the process does not come to this step")
				process.kill()
				for _, proxy := range []*testenv.Proxy{gate, record} {
					proxy.Cut()
					proxy.Release()
				}
				killed := time.Now()
				process = s.launch("api,worker,scheduler", settings...)
				await(t, ended, "the step does not end after the kill")
				recovery = time.Since(killed)
			}
			refused := func(token, when string) {
				t.Helper()
				testenv.Eventually(t, patience, func() bool { _, why := s.press(token, made); return why == "CODE_USED" }, "another buyer is refused "+when)
			}

			path, _, why := s.knock("issueSeckillPath", tokens[0], made)
			if why != "" {
				t.Fatal(why)
			}
			in := order(made.ItemID, path)
			var task string
			step(false, fmt.Sprint(in["idempotencyKey"]), func() {
				p, err := s.insist(tokens[0], in)
				if err != nil || p.OrderTask == nil {
					t.Errorf("placeOrder: %+v %v", p, err)
					return
				}
				task = p.OrderTask.ID
				s.drained(made.SaleID, 1)
			})
			refused(tokens[1], "after the use")
			s.audit(made.SaleID)

			user, err := id.ParseUser(s.userOf(tokens[0]))
			if err != nil {
				t.Fatal(err)
			}
			taken, err := id.ParseTask(task)
			if err != nil {
				t.Fatal(err)
			}
			step(true, fmt.Sprintf("%s\r\n$36\r\n%s", user, taken), func() {
				cancel := `mutation($o: ID!) { cancelOrder(input: {orderId: $o}) { order { status } userErrors { code } } }`
				testenv.Eventually(t, testenv.Wait, func() bool { // the same call, until it is answered
					out, err := s.try(tokens[0], cancel, map[string]any{"o": id.Order(taken).Public()})
					return err == nil && string(out.Data) == `{"cancelOrder":{"order":{"status":"CANCELLED"},"userErrors":[]}}`
				}, "the order is cancelled")
			})
			s.bought(tokens[1], made)
			refused(tokens[2], "after the second use")
			report := s.drained(made.SaleID, 1)
			if report.Redis.Stock != 4 || report.Redis.Reserved != 1 {
				t.Errorf("report %+v", report)
			}
			testenv.RecordFault(t, testenv.FaultRow{
				Fault: "process killed " + point.name, Accepted: 1, Stored: report.Postgres.Orders, LostUnits: lostUnits(report), Recovery: recovery,
			})
		})
	}
}
