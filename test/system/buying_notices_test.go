package system_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"seckill/internal/ops/seed"
	"seckill/internal/platform/config"
	"seckill/internal/testenv"
)

// noticed starts an installation with a mail server.
func noticed(t *testing.T) (*site, *testenv.MailServer) {
	t.Helper()
	server := testenv.NewLocalMailServer(t)
	s := newSite(t, func(c *config.Config) {
		c.SMTPURL, c.SMTPFrom, c.SMTPTLS = config.Secret("smtp://"+server.Host+":"+server.Port), "Shop <shop@shop.example>", config.SMTPTLSOff
	})
	s.start("api", "worker", "scheduler")
	return s, server
}

// verified lets users read e-mails at their addresses.
func (s *site) verified(users ...seed.LoadUser) {
	s.t.Helper()
	for _, u := range users {
		if _, err := s.database().SQL.ExecContext(s.t.Context(), `UPDATE users SET verified_at = now(), language = 'en' WHERE account = $1`, u.Account); err != nil {
			s.t.Fatal(err)
		}
	}
}

// choicesOf returns the channels of each kind that a user chose.
func (s *site) choicesOf(token string) map[string]string {
	s.t.Helper()
	var data struct {
		Viewer struct {
			NoticeSettings struct {
				Offered, Reaching []string
				Choices           []struct {
					Kind     string
					Channels []string
				}
			}
		}
	}
	s.ask(token, `{ viewer { noticeSettings { offered reaching choices { kind channels } } } }`, nil).into(s.t, &data)
	set := data.Viewer.NoticeSettings
	out := map[string]string{"offered": strings.Join(set.Offered, " "), "reaching": strings.Join(set.Reaching, " ")}
	for _, c := range set.Choices {
		out[c.Kind] = strings.Join(c.Channels, " ")
	}
	return out
}

func TestAnOfferIsMailedAndItsLinkShowsItInANewSession(t *testing.T) {
	t.Parallel()
	s, server := noticed(t)
	made, task := s.soldOut(seed.Input{Users: 2})
	holder, buyer := made.Users[0], made.Users[1]
	if got := s.choicesOf(buyer.AccessToken); got["offered"] != "MAIL" || got["reaching"] != "" || got["WAITLIST_OFFER"] != "MAIL" {
		t.Errorf("before the address is verified: %v", got)
	}
	s.verified(buyer)
	place := s.joined(buyer.AccessToken, made.ItemID)
	s.cancel(holder.AccessToken, task)
	m := server.To(t, buyer.Account, 1)
	path, ours := strings.CutPrefix(m.Link(), s.url+"/s/")
	slug, item, _ := strings.Cut(path, "?item=")
	if !ours || item != made.ItemID || !strings.HasSuffix(m.Subject, " is available for you") {
		t.Fatalf("%q with the link %s", m.Subject, m.Link())
	}
	var data struct {
		Sale struct {
			Viewer struct {
				Action        string
				WaitlistEntry struct{ ID, Status string }
			}
		}
	}
	s.ask(buyer.AccessToken, `query($s: String!) { sale(by: {slug: $s}) { viewer { action waitlistEntry { id status } } } }`, map[string]any{"s": slug}).into(t, &data)
	if v := data.Sale.Viewer; v.Action != "BUY" || v.WaitlistEntry.ID != place.ID || v.WaitlistEntry.Status != "OFFERED" {
		t.Errorf("behind the link: %+v", v)
	}

	// The order is one more fact. Its e-mail is ended by a mail program, without a sign-in.
	if p, err := s.place(buyer.AccessToken, order(made.ItemID, place.ID)); err != nil || p.why() != "" {
		t.Fatalf("redeemed: %+v %v", p, err)
	}
	m = server.To(t, buyer.Account, 2)
	if !strings.Contains(m.Subject, ": pay by ") {
		t.Errorf("subject %q", m.Subject)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, strings.Trim(m.Header.Get("List-Unsubscribe"), "<>"), strings.NewReader("List-Unsubscribe=One-Click"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := (&http.Client{Timeout: patience}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if got := s.choicesOf(buyer.AccessToken); resp.StatusCode != http.StatusOK || got["ORDER_PLACED"] != "" || got["PAYMENT_DEADLINE"] != "MAIL" || got["reaching"] != "MAIL" {
		t.Errorf("after unsubscribing: %d %v", resp.StatusCode, got)
	}
}

func TestABuyerIsRemindedOfASale(t *testing.T) {
	t.Parallel()
	s, server := noticed(t)
	made := s.seed(seed.Input{Users: 1, Stock: 1, OpensIn: 5 * time.Minute, Lasts: time.Hour})
	buyer := made.Users[0]
	s.verified(buyer)
	type reminder struct {
		Set      bool
		SentAt   time.Time
		Channels []string
	}
	do := func(name string) (reminder, string) {
		var data struct {
			P struct {
				Reminder   reminder
				UserErrors []struct{ Code string }
			}
		}
		s.ask(buyer.AccessToken, "mutation($s: ID!) { p: "+name+"(input: {saleId: $s}) { reminder { set sentAt channels } userErrors { code } } }",
			map[string]any{"s": made.SaleID}).into(t, &data)
		if len(data.P.UserErrors) > 0 {
			return data.P.Reminder, data.P.UserErrors[0].Code
		}
		return data.P.Reminder, ""
	}
	if got, why := do("forgetReminder"); why != "" || got.Set {
		t.Errorf("without a reminder: %+v %s", got, why)
	}
	for range 2 {
		if got, why := do("remindMe"); why != "" || !got.Set || len(got.Channels) != 1 || got.Channels[0] != "MAIL" || got.SentAt.IsZero() {
			t.Errorf("reminder %+v %s", got, why)
		}
	}
	if m := server.To(t, buyer.Account, 1); !strings.Contains(m.Subject, " opens in 5 minutes") || !strings.HasPrefix(m.Link(), s.url+"/s/") {
		t.Errorf("%q with the link %s", m.Subject, m.Link())
	}
	open := s.seed(seed.Input{Users: 1, Stock: 1})
	made.SaleID = open.SaleID
	if _, why := do("remindMe"); why != "CONFLICT" {
		t.Errorf("a sale that has opened: %q", why)
	}
	made.SaleID = "sal_x"
	if _, why := do("remindMe"); why != "NOT_FOUND" {
		t.Errorf("no sale: %q", why)
	}
}
