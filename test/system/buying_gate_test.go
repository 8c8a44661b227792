package system_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"seckill/internal/ops/seed"
	"seckill/internal/platform/config"
	"seckill/internal/testenv"
)

// stage is a GateStage, or a stage of the report.
type stage struct {
	Stage                         string
	Calls, Passed, Queued, Faults int
	Rejections                    []rejection
	Refused                       []struct {
		Reason string
		Count  int
	}
}

type rejection struct {
	Code  string
	Count int
}

// tally returns the counts by outcome, and the sum of them.
func (g stage) tally() (outcomes map[string]int, sum int) {
	outcomes = map[string]int{"passed": g.Passed, "queued": g.Queued, "faulted": g.Faults}
	for _, r := range g.Rejections {
		outcomes[r.Code] += r.Count
	}
	for _, r := range g.Refused {
		outcomes[r.Reason] += r.Count
	}
	maps.DeleteFunc(outcomes, func(_ string, n int) bool { return n == 0 })
	for _, n := range outcomes {
		sum += n
	}
	return outcomes, sum
}

// gate reads the stages of a sale's figures, by name.
func (s *site) gate(token, saleID string) map[string]stage {
	s.t.Helper()
	var data struct {
		Sale struct{ SaleStats struct{ Gate []stage } }
	}
	s.ask(token, `query($id: ID!) { sale(by: {id: $id}) { saleStats { gate { stage calls passed queued faults rejections { code count } } } } }`,
		map[string]any{"id": saleID}).into(s.t, &data)
	stages := map[string]stage{}
	for _, g := range data.Sale.SaleStats.Gate {
		stages[g.Stage] = g
	}
	return stages
}

// What buyers do at the gate, whatever answers them: Redis, the memory of the process, a
// rate limit. Figures, report and metrics have the same counts.
func TestEveryCallAtTheGateIsCounted(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(c *config.Config) { c.Limits = config.SwitchOn })
	s.start("worker", "scheduler")
	a, _ := s.open("api")
	operator := s.staff("ann@example.com", "OPERATOR")
	made := s.seed(seed.Input{Users: 3, Stock: 1})
	seen := map[string]map[string]int{"CAPTCHA": {}, "PATH": {}, "QUEUE": {}, "ORDER": {}}
	note := func(stage, why string) string {
		if why == "" {
			why = "passed"
		}
		seen[stage][why]++
		return why
	}
	first, second, third := made.Users[0].AccessToken, made.Users[1].AccessToken, made.Users[2].AccessToken
	ofThird := map[string]int{} // refusals by stage and code
	noteThird := func(stage, why string) string {
		if why = note(stage, why); why != "passed" {
			ofThird[stage+" "+why]++
		}
		return why
	}

	challenge, _ := s.captcha(second, made.SaleID)
	note("CAPTCHA", "")
	_, why := s.path(second, made.ItemID, challenge, "wrong")
	note("PATH", why)
	challenge, right := s.captcha(first, made.SaleID)
	note("CAPTCHA", "")
	path, why := s.path(first, made.ItemID, challenge, right)
	note("PATH", why)
	p, err := s.place(first, order(made.ItemID, path))
	if err != nil {
		t.Fatal(err)
	}
	note("ORDER", p.why())
	s.drained(made.SaleID, 1)
	if p, err = s.place(second, order(made.ItemID, "a guess")); err != nil || note("ORDER", p.why()) != "SOLD_OUT" {
		t.Errorf("an attempt after the last unit: %+v %v", p, err)
	}
	for why = ""; why != "RATE_LIMITED"; { // until the limit of calls for a path
		// The memory of the process learns a moment later that nothing is left.
		if _, why = s.path(third, made.ItemID, challenge, "any"); !slices.Contains([]string{"SOLD_OUT", "CAPTCHA_INVALID", "RATE_LIMITED"}, why) {
			t.Fatalf("a call for a path after the last unit: %q", why)
		}
		noteThird("PATH", why)
	}
	out := s.ask(third, `mutation($i: ID!, $c: ID!) { enterQueue(input: {itemId: $i, captcha: {challengeId: $c, answer: "any"}}) { userErrors { code } } }`,
		map[string]any{"i": made.ItemID, "c": challenge})
	var entered struct{ EnterQueue UserErrors }
	out.into(t, &entered)
	noteThird("QUEUE", entered.EnterQueue.why())
	for why = ""; why != "RATE_LIMITED"; {
		in := map[string]any{"purpose": "SECKILL", "saleId": made.SaleID, "kind": "PROOF_OF_WORK"}
		why = noteThird("CAPTCHA", s.mutate(third, "createCaptcha", "challenge { id }", in).why())
	}

	testenv.Eventually(t, patience, func() bool {
		for name, g := range s.gate(operator, made.SaleID) {
			if got, sum := g.tally(); !reflect.DeepEqual(got, seen[name]) || g.Calls != sum {
				return false
			}
		}
		return true
	}, fmt.Sprintf("the figures count what was seen: %v", seen))

	testenv.Eventually(t, patience, func() bool {
		list, _ := s.attempts(third, made.SaleID)
		got := map[string]int{}
		for _, a := range list {
			got[a.Stage+" "+a.Code] += a.Times
		}
		return reflect.DeepEqual(got, ofThird)
	}, fmt.Sprintf("the buyer sees the same refusals: %v", ofThird))

	var report struct{ SaleReport struct{ JSON string } }
	s.ask(operator, `query($id: ID!) { saleReport(saleId: $id) { json } }`, map[string]any{"id": made.SaleID}).into(t, &report)
	var written struct{ Requests struct{ Gate []stage } }
	if err := json.Unmarshal([]byte(report.SaleReport.JSON), &written); err != nil {
		t.Fatal(err)
	}
	if len(written.Requests.Gate) != len(seen) {
		t.Errorf("the report has %d stages", len(written.Requests.Gate))
	}
	text := metrics(t, a)
	for _, g := range written.Requests.Gate {
		if got, sum := g.tally(); !reflect.DeepEqual(got, seen[g.Stage]) || g.Calls != sum {
			t.Errorf("the report counts %v for %s, seen %v", got, g.Stage, seen[g.Stage])
		}
		for outcome, n := range seen[g.Stage] {
			if line := fmt.Sprintf(`seckill_salestats_calls_total{outcome=%q,stage=%q} %d`, outcome, g.Stage, n); !strings.Contains(text, line) {
				t.Errorf("no metric %s", line)
			}
		}
	}
}

func TestUnitsOnOfferDoNotWaitForPayment(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	operator := s.staff("ann@example.com", "OPERATOR")
	made, task := s.soldOut(seed.Input{Users: 2})
	type units struct{ TotalUnits, RemainingUnits, PendingUnits, UnpaidUnits, OfferedUnits, InFlightUnits, PaidUnits int }
	read := func() units {
		var data struct{ Sale struct{ SaleStats units } }
		s.ask(operator, `query($id: ID!) { sale(by: {id: $id}) { saleStats {
		  totalUnits remainingUnits pendingUnits unpaidUnits offeredUnits inFlightUnits paidUnits } } }`, map[string]any{"id": made.SaleID}).into(t, &data)
		return data.Sale.SaleStats
	}
	testenv.Eventually(t, patience, func() bool { return read() == units{TotalUnits: 1, PendingUnits: 1, UnpaidUnits: 1} }, "the unit waits for payment")
	s.joined(made.Users[1].AccessToken, made.ItemID)
	s.cancel(made.Users[0].AccessToken, task)
	testenv.Eventually(t, patience, func() bool { return read() == units{TotalUnits: 1, PendingUnits: 1, OfferedUnits: 1} }, "the unit is on offer")
}
