package system_test

import (
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"seckill/internal/app"
	"seckill/internal/identity/account"
	"seckill/internal/ops/seed"
	"seckill/internal/pay/payment/sandbox"
	"seckill/internal/platform/id"
)

// securityLog returns the entries of a kind, oldest first.
func (s *site) securityLog(kind account.EventKind) (found []account.Event) {
	s.t.Helper()
	err := app.ChangeUsers(s.t.Context(), s.cfg, slog.New(slog.DiscardHandler), func(u app.Users) error {
		events, err := u.Security.Since(s.t.Context(), time.Now().Add(-time.Hour), id.User{})
		for i := len(events) - 1; i >= 0; i-- {
			if events[i].Kind == kind {
				found = append(found, events[i])
			}
		}
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return found
}

// userOf returns the id of the user of a token.
func (s *site) userOf(token string) string {
	s.t.Helper()
	var data struct{ Viewer struct{ ID string } }
	s.ask(token, `{ viewer { id } }`, nil).into(s.t, &data)
	return data.Viewer.ID
}

func TestTheSecurityLogNamesWhoExportedOrSearched(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	made := s.seed(seed.Input{Users: 1, Stock: 1})
	operator, admin := s.staff("operator@example.com", "OPERATOR"), s.staff("admin@example.com", "ADMIN")
	export := func(token string) int {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/exports/orders.csv?sale="+made.SaleID, nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		res, err := s.http.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		_, _ = io.Copy(io.Discard, res.Body)
		return res.StatusCode
	}
	if got := export(operator); got != http.StatusOK {
		t.Fatalf("an operator exports: %d", got)
	}
	for _, token := range []string{"", made.Users[0].AccessToken} {
		if got := export(token); got == http.StatusOK {
			t.Errorf("a stranger exports: %d", got)
		}
	}
	const secret = "buyer-to-be-found"
	for token, query := range map[string]string{
		operator: `{ searchUsers(text: "` + secret + `") { id } }`,
		admin:    `{ searchOrders(text: "` + secret + `") { id } users(first: 5, search: "` + secret + `") { edges { node { id } } } }`,
	} {
		if out := s.ask(token, query, nil); out.code() != "" {
			t.Fatalf("%s: %+v", query, out.Errors)
		}
	}
	if out := s.ask(admin, `{ searchOrders(text: "`+made.SaleID+`") { id } }`, nil); out.code() != "" { // searches no buyer
		t.Fatalf("%+v", out.Errors)
	}
	entries := map[account.EventKind][]account.Event{}
	for _, kind := range []account.EventKind{account.EventExport, account.EventBuyerSearch} {
		entries[kind] = s.securityLog(kind)
		for _, e := range entries[kind] {
			if e.Addr.String() != "127.0.0.1" {
				t.Errorf("%s by %s came from %s", kind, e.Actor, e.Addr)
			}
			for _, hidden := range []string{secret, "@", "Bearer", operator, admin} {
				if strings.Contains(e.Detail, hidden) {
					t.Errorf("%s says %q", kind, e.Detail)
				}
			}
		}
	}
	count := func(kind account.EventKind, by string) (n int) {
		for _, e := range entries[kind] {
			if e.Actor.Public() == by {
				n++
			}
		}
		return n
	}
	by := map[string]string{"operator": s.userOf(operator), "admin": s.userOf(admin)}
	if n := count(account.EventExport, by["operator"]); n != 1 || len(entries[account.EventExport]) != 1 || entries[account.EventExport][0].Detail != made.SaleID {
		t.Errorf("exports: %+v", entries[account.EventExport])
	}
	if n, m := count(account.EventBuyerSearch, by["operator"]), count(account.EventBuyerSearch, by["admin"]); n != 1 || m != 2 {
		t.Errorf("searches for buyers: %d by the operator, want 1; %d by the administrator, want 2: %+v", n, m, entries[account.EventBuyerSearch])
	}
}

func TestTheSecurityLogNamesWhoForgesCallbacks(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	post := func(signature string) int {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/webhooks/payments/sandbox", strings.NewReader(`{"id":"x","type":"charge.paid"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set(sandbox.SignatureHeader, signature)
		res, err := s.http.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		return res.StatusCode
	}
	if got := post("t=1,v1=a-guess"); got != http.StatusUnauthorized {
		t.Fatalf("a forged call-back: %d", got)
	}
	forged := s.securityLog(account.EventWebhookForged)
	if len(forged) != 1 || forged[0].Addr.String() != "127.0.0.1" || forged[0].Detail != "1 at sandbox" {
		t.Errorf("security log: %+v", forged)
	}
}
