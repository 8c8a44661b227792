package system_test

import (
	"encoding/json"
	"testing"
	"time"

	"seckill/internal/ops/seed"
	"seckill/internal/platform/config"
	"seckill/internal/testenv"
)

// kindFor returns the kind of captcha issued to a buyer who requests text.
func (s *site) kindFor(token, saleID string) string {
	s.t.Helper()
	out := s.ask(token, `mutation($s: ID!) { createCaptcha(input: {purpose: SECKILL, saleId: $s, kind: TEXT}) { challenge { kind } userErrors { code } } }`,
		map[string]any{"s": saleID})
	var data struct {
		CreateCaptcha struct {
			Challenge *struct{ Kind string }
			UserErrors
		}
	}
	out.into(s.t, &data)
	if data.CreateCaptcha.Challenge == nil {
		return data.CreateCaptcha.why()
	}
	return data.CreateCaptcha.Challenge.Kind
}

// hardest returns the highest number of a proof of work issued now.
func (s *site) hardest(token, saleID string) int {
	s.t.Helper()
	out := s.ask(token, `mutation($s: ID!) { createCaptcha(input: {purpose: SECKILL, saleId: $s, kind: PROOF_OF_WORK}) { challenge { parameters } userErrors { code } } }`,
		map[string]any{"s": saleID})
	var data struct {
		CreateCaptcha struct {
			Challenge struct{ Parameters string }
			UserErrors
		}
	}
	out.into(s.t, &data)
	var p struct{ MaxNumber int }
	if err := json.Unmarshal([]byte(data.CreateCaptcha.Challenge.Parameters), &p); err != nil {
		s.t.Fatalf("proof of work: %s, %v", data.CreateCaptcha.why(), err)
	}
	return p.MaxNumber
}

// presses calls placeOrder n times with a guessed path token and counts the calls that
// were not rate limited.
func (s *site) presses(token, itemID string, n int, urls ...string) (answered int) {
	s.t.Helper()
	for i := range n {
		s.url = urls[i%len(urls)]
		p, err := s.place(token, order(itemID, "a guess"))
		if err != nil {
			s.t.Fatal(err)
		}
		switch p.why() {
		case "PATH_INVALID":
			answered++
		case "RATE_LIMITED":
		default:
			s.t.Fatalf("a guess was answered %q", p.why())
		}
	}
	return answered
}

func TestSwitchesOfASaleWorkInEveryProcessWhileItRuns(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(cfg *config.Config) { cfg.Limits = config.SwitchOn })
	s.start("api", "worker", "scheduler")
	first := s.url
	s.start("api")
	second := s.url
	made := s.seed(seed.Input{Users: 12, Stock: 10})
	user := func(n int) string { return made.Users[n].AccessToken }
	operator := s.staff("ann@example.com", "OPERATOR")
	turn := func(watcher int, want string, switches map[string]any) {
		t.Helper()
		switches["saleId"] = made.SaleID
		change := s.byTwo
		if kinds := switches["captchaKinds"].([]string); len(kinds) == 0 {
			change = s.mutate // more kinds
		}
		if p := change(operator, "setSaleSwitches", saleParts, switches); p.why() != "" {
			t.Fatalf("switches %v: %s", switches, p.why())
		}
		began := time.Now()
		for n, url := range []string{first, second} {
			s.url = url
			testenv.Eventually(t, testenv.Wait, func() bool { return s.kindFor(user(watcher+n), made.SaleID) == want },
				"captchas are "+want)
		}
		t.Logf("two processes followed after %s", time.Since(began))
	}
	if kind := s.kindFor(user(0), made.SaleID); kind != "TEXT" {
		t.Fatalf("before any switch: %s", kind)
	}
	turn(1, "MATH", map[string]any{"captchaKinds": []string{"MATH", "PROOF_OF_WORK"}, "limitBurst": 2, "limitPerSecond": 0.001})
	if n := s.presses(user(3), made.ItemID, 10, first, second); n != 2 {
		t.Errorf("%d of ten presses were answered by two processes, want 2", n)
	}
	s.url = first
	var whys []string
	for range 3 {
		_, _, why := s.knock("issueSeckillPath", user(4), made)
		whys = append(whys, why)
	}
	if whys[1] == "RATE_LIMITED" || whys[2] != "RATE_LIMITED" {
		t.Errorf("three tries for a path: %q", whys)
	}
	whys = nil
	for range 3 {
		whys = append(whys, s.asked("joinWaitlist", user(4), made.ItemID, nil))
	}
	if whys[1] != "CONFLICT" || whys[2] != "RATE_LIMITED" {
		t.Errorf("three tries for a place on the waitlist: %q", whys)
	}
	if n := s.hardest(user(9), made.SaleID); n != s.cfg.PowMax {
		t.Errorf("before any switch the highest number is %d, want that of the settings", n)
	}
	turn(5, "PROOF_OF_WORK", map[string]any{"captchaKinds": []string{"PROOF_OF_WORK"}, "limitBurst": 100, "limitPerSecond": 1000, "proofOfWorkMax": 30_000})
	for n, url := range []string{first, second} {
		s.url = url
		if got := s.hardest(user(9+2*n), made.SaleID); got != 30_000 {
			t.Errorf("process %d: the highest number is %d, want 30,000", n, got)
		}
	}
	for _, odd := range []int{9_999, 10_000_001} {
		if p := s.mutate(operator, "setSaleSwitches", saleParts, map[string]any{"saleId": made.SaleID, "proofOfWorkMax": odd}); p.why() != "INVALID_INPUT" {
			t.Errorf("a difficulty of %d: %q", odd, p.why())
		}
	}
	testenv.Eventually(t, testenv.Wait, func() bool { return s.presses(user(3), made.ItemID, 1, first) == 1 }, "the looser limit lets the buyer press")
	if n := s.presses(user(7), made.ItemID, 20, first, second); n != 20 {
		t.Errorf("%d of twenty presses were answered, want all", n)
	}
	turn(8, "TEXT", map[string]any{"captchaKinds": []string{}, "limitBurst": 0, "limitPerSecond": 0})
	began := time.Now()
	if n := s.presses(user(10), made.ItemID, 10, first, second); n < 5 || n > 6+int(time.Since(began).Seconds()) {
		t.Errorf("%d of ten presses were answered by the default limit of five and one a second", n)
	}
}
