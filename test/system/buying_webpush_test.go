package system_test

import (
	"crypto/ecdh"
	"crypto/rand"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strconv"
	"testing"
	"time"

	"seckill/internal/ops/seed"
	"seckill/internal/platform/config"
	"seckill/internal/testenv"
)

// withPush lets an installation send notices to browsers.
func withPush(t testing.TB) func(*config.Config) {
	t.Helper()
	key, err := config.NewPushKey()
	if err != nil {
		t.Fatal(err)
	}
	return func(c *config.Config) { c.PushPrivateKey, c.PushSubject = key, "mailto:ops@shop.example" }
}

// newBrowser returns the input of subscribePush of a new browser.
func newBrowser(t testing.TB, endpoint string) map[string]any {
	t.Helper()
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	return map[string]any{"endpoint": endpoint, "p256dh": encode(key.PublicKey().Bytes()), "auth": encode(make([]byte, 16)), "label": "Firefox, Linux"}
}

// subscribed gives a user a browser.
func (s *site) subscribed(token, endpoint string) {
	s.t.Helper()
	if p := s.mutate(token, "subscribePush", "settings { reaching }", newBrowser(s.t, endpoint)); p.why() != "" {
		s.t.Fatalf("subscribePush: %s", p.why())
	}
}

// pushDevices are the browsers of a user.
type pushDevices []struct {
	ID, Label, Endpoint string
	LastNoticeAt        *time.Time
}

func (s *site) devices(token string) pushDevices {
	s.t.Helper()
	var data struct {
		Viewer struct{ NoticeSettings struct{ Devices pushDevices } }
	}
	s.ask(token, `{ viewer { noticeSettings { devices { id label endpoint lastNoticeAt } } } }`, nil).into(s.t, &data)
	return data.Viewer.NoticeSettings.Devices
}

// newPushSite starts an installation beside a push service, whose requests it returns.
func newPushSite(t *testing.T) (s *site, service *httptest.Server, requests <-chan *http.Request) {
	t.Helper()
	received := make(chan *http.Request, 100)
	service = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		received <- r
		w.WriteHeader(http.StatusCreated)
	}))
	t.Cleanup(service.Close)
	s = newSite(t, withPush(t), func(c *config.Config) {
		c.WebhookNetworks, c.PushServices = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, []string{"127.0.0.1"}
	})
	s.start("api", "worker", "scheduler")
	return s, service, received
}

func TestABrowserGetsTheNoticeThatTheWaitingRoomAdmitsItsBuyer(t *testing.T) {
	t.Parallel()
	s, service, requests := newPushSite(t)
	made := s.seed(seed.Input{Users: 4, Stock: 1}) // one unit × the ratio = two permits
	for i := range 2 {
		if path, _, why := s.knock("issueSeckillPath", made.Users[i].AccessToken, made); path == "" {
			t.Fatalf("buyer %d: no path: %s", i, why)
		}
	}
	// The third did not turn the notices on.
	quiet, wanting := made.Users[2], made.Users[3]
	for i, u := range []seed.LoadUser{quiet, wanting} {
		token := s.login(u.Account, u.Password)
		s.subscribed(token, service.URL+"/send/"+strconv.Itoa(i))
		choice := map[string]any{"kind": "ADMITTED", "channels": []string{"MAIL"}}
		if p := s.mutate(token, "updateNoticeSettings", "settings { reaching }", map[string]any{"choices": []any{choice}}); p.why() != "INVALID_INPUT" {
			t.Errorf("by e-mail: %q", p.why())
		}
		if i == 0 {
			choice["channels"] = []string{}
			if p := s.mutate(token, "updateNoticeSettings", "settings { reaching }", map[string]any{"choices": []any{choice}}); p.why() != "" {
				t.Fatalf("turned off: %q", p.why())
			}
		}
		if _, ticket, why := s.knock("issueSeckillPath", u.AccessToken, made); ticket == nil {
			t.Fatalf("buyer %d has no place: %s", 2+i, why)
		}
	}
	for i := range 2 { // a new captcha invalidates the path token and frees its permit
		s.puzzle(made.Users[i].AccessToken, made.SaleID)
	}
	select {
	case r := <-requests:
		ttl, err := strconv.Atoi(r.Header.Get("Ttl"))
		if r.URL.Path != "/send/1" || r.Header.Get("Urgency") != "high" || err != nil || ttl <= 0 || ttl > int(s.cfg.PathTTL.Seconds()) {
			t.Errorf("request %s %v", r.URL, r.Header)
		}
	case <-time.After(testenv.Wait):
		t.Fatal("no notice of the admission arrived")
	}
	testenv.Eventually(t, testenv.Wait, func() bool {
		_, ticket, _ := s.knock("enterQueue", quiet.AccessToken, made)
		return ticket != nil && ticket.Status == "ADMITTED"
	}, "the quiet buyer is admitted")
	if len(requests) != 0 {
		t.Errorf("%d more notices", len(requests))
	}
}

func TestABrowserWithoutATabGetsTheNoticeOfAnOrder(t *testing.T) {
	t.Parallel()
	s, service, requests := newPushSite(t)
	later := s.seed(seed.Input{Users: 1, Stock: 1, OpensIn: time.Hour, Lasts: time.Hour})
	made := s.seed(seed.Input{Users: 1, Stock: 1, PathTTL: time.Hour})
	buyer := made.Users[0]
	token := s.login(buyer.Account, buyer.Password)
	var info struct{ ServerInfo struct{ PushKey string } }
	s.ask("", `{ serverInfo { pushKey } }`, nil).into(t, &info)
	if key, err := base64.RawURLEncoding.DecodeString(info.ServerInfo.PushKey); err != nil || len(key) != 65 {
		t.Errorf("key %q", info.ServerInfo.PushKey)
	}

	if p := s.mutate(token, "subscribePush", "settings { reaching }", newBrowser(t, "http://127.0.0.2/x")); p.why() != "INVALID_INPUT" {
		t.Errorf("an address that is no push service: %q", p.why())
	}
	if got := s.choicesOf(token); got["offered"] != "PUSH" || got["reaching"] != "" || got["ORDER_PLACED"] != "MAIL" || got["ADMITTED"] != "" {
		t.Errorf("before: %v", got)
	}
	s.subscribed(token, service.URL+"/send/1")
	if got := s.choicesOf(token); got["reaching"] != "PUSH" || got["ORDER_PLACED"] != "MAIL PUSH" || got["SALE_REMINDER"] != "MAIL PUSH" || got["ADMITTED"] != "PUSH" {
		t.Errorf("after: %v", got)
	}
	var reminder struct {
		P struct{ Reminder struct{ Channels []string } }
	}
	s.ask(token, `mutation($s: ID!) { p: remindMe(input: {saleId: $s}) { reminder { channels } } }`, map[string]any{"s": later.SaleID}).into(t, &reminder)
	if !slices.Equal(reminder.P.Reminder.Channels, []string{"PUSH"}) {
		t.Errorf("reminder by %v", reminder.P.Reminder.Channels)
	}

	if p, err := s.place(buyer.AccessToken, order(made.ItemID, buyer.Path)); err != nil || p.why() != "" {
		t.Fatalf("placed: %+v %v", p, err)
	}
	select {
	case r := <-requests:
		if r.URL.Path != "/send/1" || r.Header.Get("Content-Encoding") != "aes128gcm" || r.Header.Get("Ttl") == "" {
			t.Errorf("request %s %v", r.URL, r.Header)
		}
	case <-time.After(testenv.Wait):
		t.Fatal("no notice of the order arrived")
	}
	testenv.Eventually(t, testenv.Wait, func() bool {
		d := s.devices(token)
		return len(d) == 1 && d[0].LastNoticeAt != nil
	}, "the device shows its last notice")

	// Another session sees the browser, and removes it.
	other := s.login(buyer.Account, buyer.Password)
	devices := s.devices(other)
	if devices[0].Endpoint != service.URL+"/send/1" || devices[0].Label != "Firefox, Linux" {
		t.Errorf("devices %+v", devices)
	}
	if p := s.mutate(other, "unsubscribePush", "settings { reaching }", map[string]any{"deviceId": "dev_x"}); p.why() != "NOT_FOUND" {
		t.Errorf("no device: %q", p.why())
	}
	if p := s.mutate(other, "unsubscribePush", "settings { reaching }", map[string]any{"deviceId": devices[0].ID}); p.why() != "" || len(s.devices(token)) != 0 {
		t.Errorf("removed: %q", p.why())
	}

	// Signing out ends the notices, there and everywhere.
	s.subscribed(token, service.URL+"/send/1")
	s.subscribed(other, service.URL+"/send/2")
	for i, everywhere := range []bool{false, true} {
		if got := s.devices(token); len(got) != 2-i {
			t.Errorf("%d browsers are signed in, want %d", len(got), 2-i)
		}
		s.ask(other, `mutation($e: Boolean!) { logout(input: {everywhere: $e}) { userErrors { code } } }`, map[string]any{"e": everywhere})
		other = token
	}
	if got := s.devices(s.login(buyer.Account, buyer.Password)); len(got) != 0 {
		t.Errorf("after signing out everywhere: %+v", got)
	}
}
