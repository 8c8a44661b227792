package system_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"seckill/internal/ops/seed"
	"seckill/internal/platform/config"
)

// browse posts a document as the shop does, with the refresh token in a cookie.
func (s *site) browse(document string, token string, cookie *http.Cookie) (answer, *http.Cookie) {
	s.t.Helper()
	text, cookie := s.browseFor("application/json", document, token, cookie)
	var out answer
	if err := json.Unmarshal(text, &out); err != nil {
		s.t.Fatal(err)
	}
	return out, cookie
}

// browseFor is browse with an Accept header.
func (s *site) browseFor(accept, document, token string, cookie *http.Cookie) ([]byte, *http.Cookie) {
	s.t.Helper()
	body, err := json.Marshal(map[string]string{"query": document})
	if err != nil {
		s.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.url+"/graphql", bytes.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", accept)
	req.Header.Set("X-Seckill-Session", "cookie")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if cookie != nil {
		req.AddCookie(cookie)
	}
	res, err := s.http.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, c := range res.Cookies() {
		return text, c
	}
	return text, nil
}

func TestABrowserKeepsItsRefreshTokenInACookie(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "scheduler")
	u := s.seed(seed.Input{Users: 1, Stock: 1}).Users[0]
	type tokens struct {
		AccessToken  string
		RefreshToken *string
	}
	var in struct{ Login struct{ Tokens *tokens } }
	out, cookie := s.browse(`mutation { login(input: {account: "`+u.Account+`", password: "`+u.Password+`"}) { tokens { accessToken refreshToken } } }`, "", nil)
	out.into(t, &in)
	if in.Login.Tokens == nil || in.Login.Tokens.RefreshToken != nil || cookie == nil || cookie.Value == "" {
		t.Fatalf("login: %s, cookie %v", out.Data, cookie)
	}
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Path != "/graphql" || cookie.Secure || cookie.Expires.IsZero() {
		t.Errorf("cookie %v", cookie)
	}
	var re struct{ RefreshSession struct{ Tokens *tokens } }
	const refresh = `mutation { refreshSession(input: {}) { tokens { accessToken refreshToken } userErrors { code } } }`
	out, next := s.browse(refresh, "", cookie)
	out.into(t, &re)
	if re.RefreshSession.Tokens == nil || re.RefreshSession.Tokens.RefreshToken != nil || next == nil || next.Value == cookie.Value {
		t.Fatalf("refresh: %s, cookie %v", out.Data, next)
	}
	out, gone := s.browse(`mutation { logout(input: {everywhere: false}) { endedSessions } }`, re.RefreshSession.Tokens.AccessToken, next)
	if gone == nil || gone.Value != "" || gone.MaxAge >= 0 {
		t.Errorf("logout: %s, cookie %v", out.Data, gone)
	}
	if out, gone = s.browse(refresh, "", next); gone == nil || gone.MaxAge >= 0 {
		t.Errorf("a refresh after signing out: %s, cookie %v", out.Data, gone)
	}
	if out, c := s.browse(`{ viewer { id } }`, "", nil); c != nil || out.code() != "" {
		t.Errorf("a query: %s, cookie %v", out.Data, c)
	}
}

func TestAClientBehindAnAddressKeepsNoOtherThereFromRefreshing(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(c *config.Config) { c.Limits = config.SwitchOn })
	s.start("api", "scheduler")
	users := s.seed(seed.Input{Users: 2, Stock: 1}).Users
	in := func(u seed.LoadUser) string {
		return `mutation { login(input: {account: "` + u.Account + `", password: "` + u.Password + `"}) { tokens { refreshToken } } }`
	}
	_, cookie := s.browse(in(users[0]), "", nil)
	var phone struct {
		Login struct{ Tokens struct{ RefreshToken string } }
	}
	s.ask("", in(users[1]), nil).into(t, &phone)
	why := func(out answer) string {
		var re struct{ RefreshSession UserErrors }
		out.into(t, &re)
		return re.RefreshSession.why()
	}
	shown := func(token string) string {
		return why(s.ask("", `mutation($t: String) { refreshSession(input: {refreshToken: $t}) { userErrors { code } } }`, map[string]any{"t": token}))
	}
	// untilHeldBack counts how many of thirty refreshes pass the rate limit.
	untilHeldBack := func(refresh func() string) (n int) {
		for n < 30 && refresh() != "RATE_LIMITED" {
			n++
		}
		return n
	}
	if n := untilHeldBack(func() string { return shown("an invention") }); n < 10 || n == 30 {
		t.Fatalf("%d of thirty inventions were looked at, want about ten", n)
	}
	if got := shown(phone.Login.Tokens.RefreshToken); got != "" {
		t.Errorf("a neighbour's token in the input: %q", got)
	}
	reload := func() string {
		out, next := s.browse(`mutation { refreshSession(input: {}) { userErrors { code } } }`, "", cookie)
		if next != nil {
			cookie = next
		}
		return why(out)
	}
	if n := untilHeldBack(reload); n < 10 || n == 30 {
		t.Errorf("a neighbour's cookie was let through %d times, want about ten", n)
	}
}

func TestACookieComesWithAStreamOfEventsToo(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "scheduler")
	u := s.seed(seed.Input{Users: 1, Stock: 1}).Users[0]
	const events = "text/event-stream"
	text, cookie := s.browseFor(events, `mutation { login(input: {account: "`+u.Account+`", password: "`+u.Password+`"}) { userErrors { code } } }`, "", nil)
	if cookie == nil || cookie.Value == "" || !strings.Contains(string(text), "event: complete") {
		t.Fatalf("login: %s, cookie %v", text, cookie)
	}
	for range 2 { // reuse of a rotated token would end the session
		text, cookie = s.browseFor(events, `mutation { refreshSession(input: {}) { userErrors { code } } }`, "", cookie)
		if cookie == nil || cookie.MaxAge < 0 {
			t.Fatalf("refresh: %s, cookie %v", text, cookie)
		}
	}
}

func TestABrowserThatSignedInBeforeIsNotLockedOutByOthers(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "scheduler")
	u := s.seed(seed.Input{Users: 1, Stock: 1}).Users[0]
	login := func(password string) string {
		return `mutation { login(input: {account: "` + u.Account + `", password: "` + password + `"}) { tokens { accessToken deviceToken } userErrors { code } } }`
	}
	var own struct {
		Login struct{ Tokens struct{ DeviceToken string } }
	}
	s.ask("", login(u.Password), nil).into(t, &own)
	for range 4 {
		s.ask("", login("a wrong password"), nil)
	}
	var in struct{ Login UserErrors }
	s.ask("", login(u.Password), nil).into(t, &in)
	if in.Login.why() != "CAPTCHA_REQUIRED" {
		t.Fatalf("an unknown device: %q", in.Login.why())
	}
	in.Login = UserErrors{}
	s.ask("", strings.Replace(login(u.Password), "input: {", `input: {deviceToken: "`+own.Login.Tokens.DeviceToken+`", `, 1), nil).into(t, &in)
	if in.Login.why() != "" {
		t.Errorf("the known device: %q", in.Login.why())
	}
}

// HTTPS is known from the public URL: the proxy that terminates TLS is not a trusted one.
func TestAnInstallationWithHTTPSGuardsItsCookies(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(c *config.Config) { c.PublicURL = "https://shop.example" })
	s.start("api", "scheduler")
	u := s.seed(seed.Input{Users: 1, Stock: 1}).Users[0]
	out, cookie := s.browse(`mutation { login(input: {account: "`+u.Account+`", password: "`+u.Password+`"}) { userErrors { code } } }`, "", nil)
	if cookie == nil || !cookie.Secure || cookie.Name != "__Host-seckill_refresh" || cookie.Path != "/" || cookie.Domain != "" {
		t.Errorf("login: %s, cookie %v", out.Data, cookie)
	}
	refreshed, _ := s.browse(`mutation { refreshSession(input: {}) { tokens { accessToken } } }`, "", cookie)
	if !strings.Contains(string(refreshed.Data), "accessToken") {
		t.Errorf("refresh: %s", refreshed.Data)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	page, err := s.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = page.Body.Close()
	if page.Header.Get("Strict-Transport-Security") == "" {
		t.Errorf("headers %v", page.Header)
	}
}

// A proxy may rewrite the Host header.
func TestPagesOfTheInstallationOpenSockets(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(c *config.Config) { c.PublicURL = "https://shop.example" })
	s.start("api", "scheduler")
	for origin, want := range map[string]int{
		"https://shop.example": http.StatusSwitchingProtocols, "https://evil.example": http.StatusForbidden,
		"http://shop.example": http.StatusForbidden, // a page that a network in between may have written
	} {
		conn, resp, err := websocket.Dial(t.Context(), strings.Replace(s.url, "http", "ws", 1)+"/graphql", //nolint:bodyclose // a socket has none
			&websocket.DialOptions{Subprotocols: []string{"graphql-transport-ws"}, HTTPHeader: http.Header{"Origin": {origin}}})
		if resp == nil {
			t.Fatal(err)
		}
		if resp.StatusCode != want {
			t.Errorf("%s: %d, want %d", origin, resp.StatusCode, want)
		}
		if conn != nil {
			_ = conn.CloseNow()
		}
	}
}
