package system_test

import (
	"net/http"
	"testing"
	"time"

	"seckill/internal/ops/seed"
	"seckill/internal/platform/config"
	"seckill/internal/testenv"
)

func TestOrdersDoNotWaitForConnectionsThatOthersUse(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(c *config.Config) { // keeps the production timeout for a database connection
		c.RedisURL = config.Secret("redis://" + testenv.RedisAddr(t) + "/0?dial_timeout=2m&read_timeout=2m&write_timeout=2m")
	})
	a, _ := s.open("api", "worker", "scheduler")
	made := s.seed(seed.Input{Users: 1, Stock: 1, PathTTL: 10 * time.Minute})
	release, err := holdRedis(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	buyer := made.Users[0]
	busy := s.ask(buyer.AccessToken, `mutation($i: ID!) { issueSeckillPath(input: {itemId: $i, captcha: {challengeId: "cap_none", answer: "none"}}) { userErrors { code } } }`,
		map[string]any{"i": made.ItemID})
	if busy.code() != "UNAVAILABLE" {
		t.Errorf("a path without a connection: %+v, want UNAVAILABLE", busy)
	}
	testenv.Eventually(t, testenv.Wait, func() bool {
		res, err := s.http.Get("http://" + a.AdminAddr().String() + "/readyz")
		if err != nil {
			return false
		}
		defer res.Body.Close()
		return res.StatusCode == http.StatusOK
	}, "a process whose Redis is there is ready")
	p, err := s.place(buyer.AccessToken, order(made.ItemID, buyer.Path))
	if err != nil || p.why() != "" || p.OrderTask == nil {
		t.Errorf("an order beside busy paths: %+v %v, want a task", p, err)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
	s.drained(made.SaleID, 1)
}
