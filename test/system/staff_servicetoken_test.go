package system_test

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"seckill/internal/identity/account"
	"seckill/internal/identity/servicetoken"
	"seckill/internal/ops/seed"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

// serviceToken makes a service token and returns its id and the token.
func (s *site) serviceToken(admin string, scopes ...string) (tokenID, secret string) {
	s.t.Helper()
	var data struct {
		CreateServiceToken struct {
			ServiceToken struct{ ID string }
			Secret       string
			UserErrors
		}
	}
	s.ask(admin, `mutation($in: CreateServiceTokenInput!) { createServiceToken(input: $in) { serviceToken { id } secret userErrors { code } } }`,
		map[string]any{"in": map[string]any{"name": "ERP", "scopes": scopes}}).into(s.t, &data)
	if data.CreateServiceToken.Secret == "" {
		s.t.Fatalf("no token: %+v", data)
	}
	return data.CreateServiceToken.ServiceToken.ID, data.CreateServiceToken.Secret
}

func TestARevokedServiceTokenEndsInAllProcessesWithItsStreams(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	first := s.url
	s.start("api")
	second := s.url
	made := s.seed(seed.Input{Users: 1, Stock: 1})
	admin := s.staff("admin@example.com", "ADMIN")
	tokenID, secret := s.serviceToken(admin, "SALES_READ")
	k := s.dial(secret)
	k.send(frame{ID: "figures", Type: "subscribe", Payload: subscription(t, `subscription($id: ID!) { saleStats(saleId: $id) { kind } }`, made.SaleID)})
	if f := k.read(); f.Type != "next" {
		t.Fatalf("first frame %+v", f)
	}
	const document = `{ sales { edges { node { status } } } }`
	for _, s.url = range []string{first, second} {
		testenv.Eventually(t, testenv.Wait, func() bool { return s.ask(secret, document, nil).code() == "" }, "the token works in every process")
	}
	s.url = first
	s.ask(admin, `mutation($id: ID!) { revokeServiceToken(input: {serviceTokenId: $id}) { userErrors { code } } }`, map[string]any{"id": tokenID})
	var err error
	for err == nil {
		var f frame
		err = k.next(&f)
	}
	if code := websocket.CloseStatus(err); code != 4403 {
		t.Errorf("the socket ended with %v (%v), want 4403", code, err)
	}
	for _, s.url = range []string{first, second} {
		testenv.Eventually(t, testenv.Wait, func() bool { return s.ask(secret, document, nil).code() == "UNAUTHENTICATED" }, "the token ends in every process")
	}
	if events := s.securityLog(account.EventTokenChanged); len(events) != 2 {
		t.Errorf("the security log has %+v", events)
	}
}

func TestAServiceAccountPreparesASaleThatTwoUsersSubmitAndApprove(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	creator, other := s.staff("creator@example.com", "ADMIN"), s.staff("other@example.com", "ADMIN")
	_, machine := s.serviceToken(creator, "CATALOGUE_WRITE", "SALES_WRITE")
	saleID := s.draft(machine)
	const submit = `mutation($id: ID!) { submitSale(input: {saleId: $id}) { userErrors { code } } }`
	if code := s.ask(machine, submit, map[string]any{"id": saleID}).code(); code != "FORBIDDEN" {
		t.Errorf("a service account submits: %s", code)
	}
	s.onSale(creator, "submitSale", saleID, "", "PENDING_APPROVAL")
	if p := s.mutate(creator, "approveSale", saleParts, map[string]any{"saleId": saleID, "note": "fine"}); p.why() != "CONFLICT" {
		t.Errorf("the creator of the token approves what it wrote: %q", p.why())
	}
	s.onSale(other, "approveSale", saleID, "fine", "APPROVED")
}

func TestAnExportNeedsItsScope(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	made := s.seed(seed.Input{Users: 1, Stock: 1, PathTTL: time.Hour})
	admin := s.staff("admin@example.com", "ADMIN")
	for scope, want := range map[string]int{"EXPORTS": http.StatusOK, "ORDERS_READ": http.StatusForbidden} {
		_, secret := s.serviceToken(admin, scope)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/exports/orders.csv?sale="+made.SaleID, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+secret)
		res, err := s.http.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("%s downloads: %d, want %d", strings.ToLower(scope), res.StatusCode, want)
		}
	}
}

// Without an endpoint for webhooks, events are written as soon as a token may read them.
func TestAServiceAccountReadsEventsWithoutAnEndpoint(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	_, secret := s.serviceToken(s.staff("admin@example.com", "ADMIN"), "EVENTS_READ")
	operator := s.staff("operator@example.com", "OPERATOR")
	var data struct {
		Events struct {
			Edges []struct {
				Node struct{ Event, Payload string }
			}
		}
	}
	testenv.Eventually(t, testenv.Wait, func() bool {
		saleID := s.draft(operator)
		s.onSale(operator, "submitSale", saleID, "", "PENDING_APPROVAL")
		s.ask(secret, `{ events(first: 5, kinds: [SALE_STATE_CHANGED]) { edges { node { event payload } } } }`, nil).into(t, &data)
		return len(data.Events.Edges) > 0
	}, "the event is read")
	if e := data.Events.Edges[0].Node; e.Event != "SALE_STATE_CHANGED" || !strings.Contains(e.Payload, "PENDING_APPROVAL") {
		t.Errorf("read %+v", e)
	}
	if code := s.ask(secret, `{ events(first: 1, after: "?") { edges { cursor } } }`, nil).code(); code != "BAD_USER_INPUT" {
		t.Errorf("a cursor that is none: %s", code)
	}
}

// The message about a revocation may be lost with Redis: the socket ends nevertheless.
func TestASocketOfARevokedServiceTokenEndsWithinASecondWithoutAMessage(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	admin := s.staff("admin@example.com", "ADMIN")
	testenv.Promptly(t, time.Second, func() time.Duration {
		tokenID, secret := s.serviceToken(admin, "SALES_READ")
		k := s.dial(secret)
		token, err := id.ParseServiceToken(tokenID)
		if err != nil {
			t.Fatal(err)
		}
		silent := servicetoken.New(servicetoken.Config{DB: s.database(), Clock: clock.System{}, Log: slog.New(slog.DiscardHandler)})
		if _, err := silent.Revoke(t.Context(), id.User{}, token); err != nil {
			t.Fatal(err)
		}
		revoked := time.Now()
		for err == nil {
			var f frame
			err = k.next(&f)
		}
		took := time.Since(revoked)
		if code := websocket.CloseStatus(err); code != 4403 {
			t.Errorf("the socket ended with %v after %v, want 4403", code, took)
		}
		return took
	})
}

func TestServiceTokensGetNoCaptcha(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	made := s.seed(seed.Input{Users: 1, Stock: 1})
	_, secret := s.serviceToken(s.staff("admin@example.com", "ADMIN"), "SALES_READ")
	out := s.ask(secret, `mutation($id: ID!) { createCaptcha(input: {purpose: SECKILL, saleId: $id}) { challenge { id } } }`, map[string]any{"id": made.SaleID})
	if out.code() != "FORBIDDEN" {
		t.Errorf("a service token asks for a captcha: %s %s", out.code(), out.Data)
	}
}
