//go:build faults

package system_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"seckill/internal/ops/seed"
	"seckill/internal/platform/config"
	"seckill/internal/testenv"
)

// The master of a Redis with Sentinels is killed while a sale runs. Every order that was
// accepted before is kept, the sale goes on at the new master, and the processes stay
// ready. The servers copy asynchronously, so the kill waits until the replica has what was accepted.
func TestAMasterKilledInMidSaleStopsItForSeconds(t *testing.T) {
	t.Parallel()
	const before, after = 20, 5
	servers := testenv.RedisSentinels(t)
	s := newSite(t, func(c *config.Config) { c.RedisURL = config.Secret(servers.URL()) })
	api := s.launch("api")
	s.launch("worker,scheduler")
	made := s.seed(seed.Input{Users: before + after, Stock: before + after + 10})
	if n := s.buy(made, made.Users[:before]); n != before {
		t.Fatalf("%d accepted", n)
	}
	s.drained(made.SaleID, before)
	ready := func() bool {
		res, err := s.http.Get("http://" + api.admin + "/readyz")
		if err != nil {
			return false
		}
		defer res.Body.Close()
		return res.StatusCode == http.StatusOK
	}
	if !ready() {
		t.Fatal("not ready before the kill")
	}
	servers.KillMaster()
	killed, unready := time.Now(), 0
	next := made.Users[before]
	var recovery time.Duration
	testenv.Eventually(t, testenv.Wait, func() bool {
		if !ready() {
			unready++
		}
		accepted := s.tryToBuy(next.AccessToken, made)
		recovery = time.Since(killed)
		return accepted
	}, "an order is accepted at the new master")
	if n := s.buy(made, made.Users[before+1:]); n != after-1 {
		t.Errorf("%d accepted afterwards, want %d", n, after-1)
	}
	report := s.drained(made.SaleID, before+after)
	if unready > 0 {
		t.Errorf("not ready %d times: a balancer would have taken every process out", unready)
	}
	if report.Postgres.Orders != before+after {
		t.Errorf("report %+v", report)
	}
	testenv.RecordFault(t, testenv.FaultRow{
		Fault: "Redis master killed, Sentinels", Accepted: before + after, Stored: report.Postgres.Orders, LostUnits: lostUnits(report),
		Recovery: recovery, MaxRecovery: testenv.MaxDeadMasterRecovery,
	})
}

// tryToBuy runs the whole purchase once and reports whether it was accepted; any step may
// fail.
func (s *site) tryToBuy(token string, made *seed.Result) bool {
	s.t.Helper()
	path, _ := s.tryToPath(token, made)
	if path == "" {
		return false
	}
	p, err := s.place(token, order(made.ItemID, path))
	return err == nil && p.why() == ""
}

// tryToPath returns a path token, or the code of the refusal; neither when a step fails.
func (s *site) tryToPath(token string, made *seed.Result) (path, why string) {
	s.t.Helper()
	out, err := s.try(token, `mutation($s: ID!) { createCaptcha(input: {purpose: SECKILL, saleId: $s, kind: PROOF_OF_WORK}) { challenge { id parameters } userErrors { code } } }`,
		map[string]any{"s": made.SaleID})
	var captcha struct {
		CreateCaptcha struct {
			Challenge *struct{ ID, Parameters string }
			UserErrors
		}
	}
	if err != nil || json.Unmarshal(out.Data, &captcha) != nil || captcha.CreateCaptcha.Challenge == nil {
		return "", captcha.CreateCaptcha.why()
	}
	c := captcha.CreateCaptcha.Challenge
	out, err = s.try(token, `mutation($i: ID!, $c: ID!, $a: String!) {
		issueSeckillPath(input: {itemId: $i, captcha: {challengeId: $c, answer: $a}}) { path { token } userErrors { code } } }`,
		map[string]any{"i": made.ItemID, "c": c.ID, "a": solve(s.t, c.Parameters)})
	var issued struct {
		IssueSeckillPath struct {
			Path       *struct{ Token string }
			UserErrors []struct{ Code string }
		}
	}
	if err != nil || json.Unmarshal(out.Data, &issued) != nil {
		return "", ""
	}
	if issued.IssueSeckillPath.Path != nil {
		return issued.IssueSeckillPath.Path.Token, ""
	}
	for _, e := range issued.IssueSeckillPath.UserErrors {
		why = e.Code
	}
	return "", why
}
