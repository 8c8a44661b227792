package app_test

import (
	"testing"

	"seckill/internal/config"
)

func TestACallerIsToldWhatItsQueriesCost(t *testing.T) {
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
	cost, remaining, burst := ask()
	if cost < 10 || remaining != burst-cost {
		t.Errorf("cost %d, remaining %d of %d", cost, remaining, burst)
	}
	if _, after, _ := ask(); after >= remaining+cost || after > burst {
		t.Errorf("a second query leaves %d after %d", after, remaining)
	}
	refused := false
	for range 30 { // each costs almost the most that one operation may
		out := s.ask("", `{ a: sales(first: 100) { ...e } b: sales(first: 100) { ...e } c: sales(first: 100) { ...e } d: sales(first: 100) { ...e } }
			fragment e on SaleConnection { edges { node { items { goods { listPrice { amount } } } } } }`, nil)
		if code := out.code(); code != "" {
			refused = code == "RATE_LIMITED" || code == "COMPLEXITY_LIMIT_EXCEEDED"
			break
		}
	}
	if !refused {
		t.Error("thirty of the dearest queries at once were all answered")
	}
}
