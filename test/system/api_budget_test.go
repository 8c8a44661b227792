package system_test

import (
	"testing"

	"seckill/internal/platform/config"
	"seckill/internal/testenv"
)

func TestTheCostOfQueriesIsReturned(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(c *config.Config) { c.Limits = config.SwitchOn })
	s.start("api")
	ask := func() (cost, remaining, burst int) {
		var data struct {
			RateLimit struct{ Cost, Remaining, Burst int }
		}
		s.ask("", `{ rateLimit { cost remaining burst restoreRate resetAt } sales(first: 10) { edges { node { id } } } }`, nil).into(t, &data)
		return data.RateLimit.Cost, data.RateLimit.Remaining, data.RateLimit.Burst
	}
	var cost, remaining, burst int
	testenv.Eventually(t, testenv.Wait, func() bool { // the charge for parsing a new document is restored in time
		cost, remaining, burst = ask()
		return remaining == burst-cost
	}, "only the cost of the operation is charged")
	if cost < 10 {
		t.Errorf("cost %d, remaining %d of %d", cost, remaining, burst)
	}
	if _, after, _ := ask(); after >= remaining+cost || after > burst {
		t.Errorf("a second query leaves %d after %d", after, remaining)
	}
	code, answered := "", 0
	for ; code == "" && answered < 1000; answered++ { // each operation costs almost the maximum
		code = s.ask("", `{ sales(first: 70) { edges { node { items { goods { listPrice { amount } } } } } } }`, nil).code()
	}
	if code != "RATE_LIMITED" || answered < 2 {
		t.Errorf("%q after %d of the dearest queries", code, answered)
	}
}
