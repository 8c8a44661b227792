package system_test

import (
	"testing"

	"seckill/internal/ops/seed"
	"seckill/internal/platform/config"
)

func TestOneBuyerJoinsAndLeavesAWaitlistAtABoundedRate(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(cfg *config.Config) { cfg.Limits = config.SwitchOn })
	s.start("api")
	made := s.seed(seed.Input{Users: 1, Stock: 1})
	for field, document := range map[string]string{
		"joinWaitlist":  `mutation($id: ID!) { outcome: joinWaitlist(input: {itemId: $id}) { userErrors { code } } }`,
		"leaveWaitlist": `mutation($id: ID!) { outcome: leaveWaitlist(input: {waitlistEntryId: $id}) { userErrors { code } } }`,
	} {
		limited := 0
		for range 40 {
			var data struct{ Outcome UserErrors }
			s.ask(made.Users[0].AccessToken, document, map[string]any{"id": made.ItemID}).into(t, &data)
			if data.Outcome.why() == "RATE_LIMITED" {
				limited++
			}
		}
		if limited < 20 {
			t.Errorf("%s: %d of 40 calls were limited", field, limited)
		}
	}
}
