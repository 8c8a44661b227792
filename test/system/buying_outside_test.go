package system_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"seckill/internal/ops/seed"
	"seckill/internal/platform/config"
	"seckill/internal/testenv"
)

func TestServicesOfTheInstallationDecideWhoGetsAPath(t *testing.T) {
	t.Parallel()
	var refuse atomic.Bool
	asked := make(chan map[string]any, 10)
	services := http.NewServeMux()
	services.HandleFunc("/siteverify", func(w http.ResponseWriter, r *http.Request) {
		good := r.PostFormValue("secret") == "outside secret" && r.PostFormValue("response") == "token of the widget"
		_ = json.NewEncoder(w).Encode(map[string]any{"success": good})
	})
	services.HandleFunc("/risk", func(w http.ResponseWriter, r *http.Request) {
		var q map[string]any
		_ = json.NewDecoder(r.Body).Decode(&q)
		asked <- q
		if refuse.Load() {
			_, _ = io.WriteString(w, `{"allow":false}`)
			return
		}
		_, _ = io.WriteString(w, `{"allow":true}`)
	})
	outside := httptest.NewServer(services)
	t.Cleanup(outside.Close)
	s := newSite(t, func(cfg *config.Config) {
		cfg.CaptchaVerifyURL, cfg.CaptchaSiteKey, cfg.CaptchaSecret = outside.URL+"/siteverify", "site", "outside secret"
		cfg.CaptchaScriptURL = outside.URL + "/api.js"
		cfg.RiskURL, cfg.RiskTimeout = outside.URL+"/risk", testenv.Wait
	})
	s.start("api", "worker", "scheduler")
	made := s.seed(seed.Input{Users: 2, Stock: 5})
	sold := s.seed(seed.Input{Users: 2, Stock: 1})
	external := func(token, purpose, saleID string) string {
		t.Helper()
		var data struct {
			CreateCaptcha struct {
				Challenge struct{ ID, Kind, Parameters string }
			}
		}
		s.ask(token, `mutation($s: ID!, $p: CaptchaPurpose!) { createCaptcha(input: {purpose: $p, saleId: $s, kind: EXTERNAL}) { challenge { id kind parameters } } }`,
			map[string]any{"s": saleID, "p": purpose}).into(t, &data)
		if c := data.CreateCaptcha.Challenge; c.Kind != "EXTERNAL" || c.Parameters != `{"siteKey":"site","script":"`+outside.URL+`/api.js"}` {
			t.Fatalf("challenge %+v", c)
		}
		return data.CreateCaptcha.Challenge.ID
	}
	first, second := made.Users[0].AccessToken, made.Users[1].AccessToken
	if _, why := s.path(first, made.ItemID, external(first, "SECKILL", made.SaleID), "a made-up token"); why != "CAPTCHA_INVALID" {
		t.Errorf("a made-up token: %q", why)
	}
	if path, why := s.path(first, made.ItemID, external(first, "SECKILL", made.SaleID), "token of the widget"); path == "" {
		t.Errorf("the token of the widget: %q", why)
	}
	if q := <-asked; q["action"] != "issuePath" || q["item"] != made.ItemID || q["sale"] != made.SaleID || q["address"] == "" {
		t.Errorf("the risk service was asked %v", q)
	}
	refuse.Store(true)
	if _, why := s.path(second, made.ItemID, external(second, "SECKILL", made.SaleID), "token of the widget"); why != "RATE_LIMITED" {
		t.Errorf("a buyer whom the risk service refuses: %q", why)
	}
	for len(asked) > 0 {
		<-asked
	}
	if p := s.mutate(second, "joinWaitlist", "waitlistEntry { id }", map[string]any{"itemId": made.ItemID}); p.why() != "RATE_LIMITED" {
		t.Errorf("the waitlist for a buyer whom the risk service refuses: %q", p.why())
	}
	if q := <-asked; q["action"] != "joinWaitlist" || q["item"] != made.ItemID || q["address"] == "" {
		t.Errorf("the risk service was asked %v", q)
	}

	refuse.Store(false)
	s.buysOne(sold.Users[0].AccessToken, sold)
	waits := sold.Users[1].AccessToken
	for _, c := range []struct{ answer, want string }{{"a made-up token", "CAPTCHA_INVALID"}, {"token of the widget", ""}} {
		captcha := map[string]any{"challengeId": external(waits, "WAITLIST", sold.SaleID), "answer": c.answer}
		if why := s.asked("joinWaitlist", waits, sold.ItemID, captcha); why != c.want {
			t.Errorf("the waitlist for %s: %q, want %q", c.answer, why, c.want)
		}
	}
}
