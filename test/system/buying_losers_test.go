package system_test

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"seckill/internal/ops/seed"
	"seckill/internal/platform/config"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

// commands receives the commands that Redis executes.
type commands struct {
	*site
	lines *bufio.Scanner
}

// monitor returns the commands of the shared Redis from now on.
func (s *site) monitor() commands {
	s.t.Helper()
	conn, err := (&net.Dialer{}).DialContext(s.t.Context(), "tcp", testenv.RedisAddr(s.t))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(testenv.Wait)); err != nil {
		s.t.Fatal(err)
	}
	fmt.Fprint(conn, "MONITOR\r\n")
	c := commands{s, bufio.NewScanner(conn)}
	c.lines.Buffer(nil, 4<<20) // a batch of a script is one line
	if !c.lines.Scan() || c.lines.Text() != "+OK" {
		s.t.Fatalf("MONITOR: %q %v", c.lines.Text(), c.lines.Err())
	}
	return c
}

// naming returns the commands since the last call that name a user.
func (c commands) naming(user string) (named []string) {
	c.t.Helper()
	until := uuid.NewString()
	if err := c.conn().Cmd.Echo(c.t.Context(), until).Err(); err != nil {
		c.t.Fatal(err)
	}
	for c.lines.Scan() && !strings.Contains(c.lines.Text(), until) {
		if strings.Contains(c.lines.Text(), user) {
			named = append(named, c.lines.Text())
		}
	}
	if err := c.lines.Err(); err != nil {
		c.t.Fatal(err)
	}
	return named
}

// A buyer who can get nothing is answered from memory: Redis receives no command about the
// buyer, neither of the gate nor of rate limits and penalties. In a sale that is over or paused this
// holds for captchas: a buyer with an order is led to it, which Redis knows.
func TestBuyersWhoCanGetNothingCostRedisNoCommand(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(c *config.Config) { c.Limits = config.SwitchOn })
	s.start("api", "worker", "scheduler")
	captcha := func(token string, made *seed.Result) string {
		return s.mutate(token, "createCaptcha", "challenge { id }", map[string]any{"purpose": "SECKILL", "saleId": made.SaleID}).why()
	}
	path := func(token string, made *seed.Result) string {
		_, why := s.path(token, made.ItemID, "cap_none", "0")
		return why
	}
	place := func(token string, made *seed.Result) string {
		p, err := s.place(token, order(made.ItemID, "none"))
		if err != nil {
			t.Error(err)
		}
		return p.why()
	}
	const users, strict = 40, 4
	sold, _ := s.soldOut(seed.Input{Users: users})
	over := s.seed(seed.Input{Users: users, Stock: 1, Lasts: 2 * time.Second})
	early := s.seed(seed.Input{Users: users, Stock: 1, OpensIn: time.Hour})
	paused := s.seed(seed.Input{Users: users, Stock: 1})
	operator := s.staff("ann@example.com", "OPERATOR")
	s.onSale(operator, "pauseSale", paused.SaleID, "a moment", "PAUSED")
	testenv.Eventually(t, testenv.Wait, func() bool { return captcha(over.Users[0].AccessToken, over) == "SALE_CLOSED" }, "the sale is over")
	type step struct {
		call func(token string, made *seed.Result) string
		want string
	}
	monitor := s.monitor()
	for name, c := range map[string]struct {
		made  *seed.Result
		steps []step
	}{
		"sold out": {sold, []step{{captcha, "SOLD_OUT"}, {path, "SOLD_OUT"}, {place, "SOLD_OUT"}}},
		"over":     {over, []step{{captcha, "SALE_CLOSED"}}},
		"early":    {early, []step{{captcha, ""}, {path, "SALE_NOT_STARTED"}, {place, "SALE_NOT_STARTED"}}},
		"paused":   {paused, []step{{captcha, "SALE_PAUSED"}}},
	} {
		next := c.made.Users[1:]
		var answers []string
		lose := func() (expected bool, named []string) { // as the next buyer
			token := next[0].AccessToken
			next = next[1:]
			user, err := id.ParseUser(s.userOf(token))
			if err != nil {
				t.Fatal(err)
			}
			monitor.naming("")
			expected = true
			for _, step := range c.steps {
				got := step.call(token, c.made)
				answers, expected = append(answers, got), got == step.want && expected
			}
			return expected, monitor.naming(uuid.UUID(user).String())
		}
		testenv.Eventually(t, testenv.Wait, func() bool {
			expected, named := lose()
			if len(next) == strict {
				t.Fatalf("%s: answers %q, the last buyer cost Redis %q", name, answers, named)
			}
			return expected && len(named) == 0
		}, name)
		for range strict {
			if expected, named := lose(); !expected || len(named) > 0 {
				t.Errorf("%s: %v, Redis received %q", name, expected, named)
			}
		}
	}
}
