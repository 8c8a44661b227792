package system_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/coder/websocket"

	"seckill/internal/ops/seed"
	"seckill/internal/testenv"
)

// login signs in and returns the access token.
func (s *site) login(account, password string) string {
	s.t.Helper()
	out := s.ask("", `mutation($a: String!, $p: String!) { login(input: {account: $a, password: $p}) { tokens { accessToken } userErrors { code } } }`,
		map[string]any{"a": account, "p": password})
	var data struct {
		Login struct{ Tokens *struct{ AccessToken string } }
	}
	out.into(s.t, &data)
	if data.Login.Tokens == nil {
		s.t.Fatalf("login: %s %+v", out.Data, out.Errors)
	}
	return data.Login.Tokens.AccessToken
}

func TestSigningOutEndsTokensAndSocketsWithinASecond(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	made := s.seed(seed.Input{Users: 1, Stock: 1})
	testenv.Promptly(t, time.Second, func() time.Duration {
		token := s.login(made.Users[0].Account, made.Users[0].Password)
		k := s.dial(token)
		payload, err := json.Marshal(map[string]any{"query": `subscription($s: ID!) { saleStatus(saleId: $s) { kind } }`, "variables": map[string]string{"s": made.SaleID}})
		if err != nil {
			t.Fatal(err)
		}
		k.send(frame{ID: "s", Type: "subscribe", Payload: payload})
		if f := k.read(); f.Type != "next" {
			t.Fatalf("first frame %+v", f)
		}
		out := s.ask(token, `mutation { logout(input: {everywhere: false}) { endedSessions userErrors { code } } }`, nil)
		began := time.Now()
		for {
			var f frame
			if err = k.next(&f); err != nil {
				break
			}
		}
		took := time.Since(began)
		if code := websocket.CloseStatus(err); code != 4403 {
			t.Errorf("the socket ended with %v (%v), want 4403; logout said %s", code, err, out.Data)
		}
		if got := s.ask(token, `{ myOrders { totalCount } }`, nil).code(); got != "UNAUTHENTICATED" {
			t.Errorf("the token after signing out: %q", got)
		}
		return took
	})
}
