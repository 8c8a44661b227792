package system_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"seckill/internal/app"
	"seckill/internal/ops/seed"
	"seckill/internal/platform/config"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

func TestAPasswordIsResetByMailThroughTheAPI(t *testing.T) {
	t.Parallel()
	server := testenv.NewLocalMailServer(t)
	s := newSite(t, func(c *config.Config) {
		c.SMTPURL, c.SMTPFrom, c.SMTPTLS = config.Secret("smtp://"+server.Host+":"+server.Port), "Shop <shop@shop.example>", config.SMTPTLSOff
	})
	s.start("api", "worker", "scheduler")
	made := s.seed(seed.Input{Users: 1, Stock: 1})
	var data struct {
		ServerInfo struct{ Mail bool }
		Viewer     struct {
			Account         string
			ContactVerified bool
		}
	}
	const viewer = `{ serverInfo { mail } viewer { account contactVerified } }`
	s.ask(made.Users[0].AccessToken, viewer, nil).into(t, &data)
	if !data.ServerInfo.Mail || data.Viewer.ContactVerified {
		t.Fatalf("before: %+v", data)
	}
	account := data.Viewer.Account
	s.mailed(`mutation($in: RequestPasswordResetInput!) { p: requestPasswordReset(input: $in) { userErrors { code } } }`, "", map[string]any{"account": account})
	m := server.To(t, account, 1)
	const reset = `mutation($in: ResetPasswordInput!) { p: resetPassword(input: $in) { endedSessions userErrors { code } } }`
	in := map[string]any{"token": m.Token(), "newPassword": "another horse battery"}
	s.mailed(reset, "", in)
	s.mailed(reset, "LINK_INVALID", in)
	if notice := server.To(t, account, 2); notice.Subject != "Your password was changed" || notice.Link() != s.url+"/" {
		t.Errorf("notice %+v", notice)
	}
	var signed struct {
		Login struct {
			Tokens *struct{ AccessToken string }
			UserErrors
		}
	}
	s.ask("", `mutation($a: String!) { login(input: {account: $a, password: "another horse battery"}) { tokens { accessToken } userErrors { code } } }`,
		map[string]any{"a": account}).into(t, &signed)
	if signed.Login.Tokens == nil {
		t.Fatalf("sign-in: %+v", signed)
	}
	s.ask(signed.Login.Tokens.AccessToken, viewer, nil).into(t, &data)
	if !data.Viewer.ContactVerified {
		t.Error("the link did not verify the address")
	}
}

func TestAPasswordThatTheCommandLineSetsSendsANotice(t *testing.T) {
	t.Parallel()
	server := testenv.NewLocalMailServer(t)
	s := newSite(t, func(c *config.Config) {
		c.SMTPURL, c.SMTPFrom, c.SMTPTLS = config.Secret("smtp://"+server.Host+":"+server.Port), "Shop <shop@shop.example>", config.SMTPTLSOff
	})
	s.start("api", "worker", "scheduler")
	s.staff("buyer@example.com", "CUSTOMER")
	err := app.ChangeUsers(t.Context(), s.cfg, slog.New(slog.DiscardHandler), func(u app.Users) error {
		buyer, err := u.Admin.ByAccount(t.Context(), "buyer@example.com")
		if err != nil {
			return err
		}
		return u.Admin.SetPassword(t.Context(), id.User{}, buyer, "violin tower 46 mist")
	})
	if err != nil {
		t.Fatal(err)
	}
	if notice := server.To(t, "buyer@example.com", 1); notice.Subject != "Your password was changed" {
		t.Errorf("notice %+v", notice)
	}
}

// mailed runs a mutation of visitors with the expected code, "" = none.
func (s *site) mailed(document, want string, in map[string]any) {
	s.t.Helper()
	var data struct {
		P struct{ UserErrors []struct{ Code string } }
	}
	s.ask("", document, map[string]any{"in": in}).into(s.t, &data)
	got := ""
	if len(data.P.UserErrors) > 0 {
		got = data.P.UserErrors[0].Code
	}
	if got != want {
		s.t.Errorf("%s: %q, want %q", document, got, want)
	}
}

func TestAPhoneNumberThatNothingReachesIsRefusedWithAdvice(t *testing.T) {
	t.Parallel()
	server := testenv.NewLocalMailServer(t)
	s := newSite(t, func(c *config.Config) {
		c.SMTPURL, c.SMTPFrom, c.SMTPTLS = config.Secret("smtp://"+server.Host+":"+server.Port), "Shop <shop@shop.example>", config.SMTPTLSOff
	})
	s.start("api")
	const ask = `mutation($in: RequestPasswordResetInput!) { p: requestPasswordReset(input: $in) { userErrors { code message } } }`
	var data struct {
		P struct {
			UserErrors []struct{ Code, Message string }
		}
	}
	s.ask("", ask, map[string]any{"in": map[string]any{"account": "+1 (206) 555-0123"}}).into(t, &data)
	if got := data.P.UserErrors; len(got) != 1 || got[0].Code != "MAIL_UNAVAILABLE" || !strings.Contains(got[0].Message, "phone numbers") {
		t.Errorf("%+v", got)
	}
}

// A user with a phone number verifies it and gets a new password by the messages that the
// operator's service is given.
func TestAPhoneAccountIsVerifiedAndGetsAPasswordThroughTheAPI(t *testing.T) {
	t.Parallel()
	const phone = "+12065550123"
	links := make(chan string, 10)
	service := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var m struct {
			Type string
			Data struct{ Account, URL string }
		}
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil || m.Data.Account != phone {
			t.Errorf("message %+v, %v", m, err)
		}
		links <- m.Type + " " + m.Data.URL
	}))
	t.Cleanup(service.Close)
	s := newSite(t, func(c *config.Config) {
		c.NoticeHookURL, c.NoticeHookSecret = service.URL, "whsec_c2VjcmV0IG9mIHRoZSBvcGVyYXRvciBhbmQgdXM="
		c.WebhookNetworks = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	})
	s.start("api", "worker", "scheduler")
	token := func(kind string) string {
		t.Helper()
		select {
		case got := <-links:
			head, token, _ := strings.Cut(got, "#")
			if !strings.HasPrefix(head, "account."+kind+" "+s.url+"/") {
				t.Errorf("message %q, want %s", head, kind)
			}
			return token
		case <-t.Context().Done():
			t.Fatalf("no message %s", kind)
			return ""
		}
	}
	mine := s.staff("+1 (206) 555-0123", "CUSTOMER")
	if got := s.mutate(mine, "requestEmail", "", map[string]any{"email": "+1 206.555.0123"}).why(); got != "" {
		t.Errorf("link refused: %s", got)
	}
	const confirm = `mutation($in: ConfirmEmailInput!) { p: confirmEmail(input: $in) { userErrors { code } } }`
	used := map[string]any{"token": token("verify")}
	s.mailed(confirm, "", used)
	s.mailed(confirm, "", used)
	var data struct {
		ServerInfo struct{ Mail bool }
		Viewer     struct{ ContactVerified bool }
	}
	s.ask(mine, `{ serverInfo { mail } viewer { contactVerified } }`, nil).into(t, &data)
	if !data.ServerInfo.Mail || !data.Viewer.ContactVerified {
		t.Errorf("after the link: %+v", data)
	}
	const forgot = `mutation($in: RequestPasswordResetInput!) { p: requestPasswordReset(input: $in) { userErrors { code } } }`
	s.mailed(forgot, "", map[string]any{"account": "+1 206.555.0123"})
	s.mailed(forgot, "", map[string]any{"account": "+12065550199"}) // an unknown number gets the same answer and no message
	s.mailed(forgot, "MAIL_UNAVAILABLE", map[string]any{"account": "ann@example.com"})
	s.mailed(`mutation($in: ResetPasswordInput!) { p: resetPassword(input: $in) { userErrors { code } } }`, "",
		map[string]any{"token": token("reset"), "newPassword": "another horse battery"})
	token("password_changed")
	s.login(phone, "another horse battery")
}
