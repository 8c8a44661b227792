package system_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"seckill/internal/app"
	"seckill/internal/platform/config"
)

// identityProvider is a real OpenID provider with the users of its library's example.
type identityProvider struct {
	issuer string
	site   *site
}

// newProvider starts a provider and a site that accepts its accounts. more is added to the
// settings of the provider.
func newProvider(t *testing.T, more string) *identityProvider {
	t.Helper()
	provider := exec.CommandContext(context.WithoutCancel(t.Context()), "go", "run", ".")
	provider.Dir, provider.Stderr = "../oidcprovider", t.Output()
	in, err := provider.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := provider.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := provider.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close() // ends it
		_ = provider.Wait()
	})
	issuer, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the provider did not start: %v", err)
	}
	p := &identityProvider{issuer: strings.TrimSpace(issuer)}
	settings := filepath.Join(t.TempDir(), "oidc.json")
	for file, text := range map[string]string{
		settings: `[{"name": "corp", "title": "Corp", "issuer": "` + p.issuer + `", "clientId": "shop", "clientSecretFile": "secret"` + more + `}]`,
		filepath.Join(filepath.Dir(settings), "secret"): "secret\n",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.site = newSite(t, func(c *config.Config) { c.OIDC, c.AllowedOrigins = settings, []string{"https://store.example"} })
	p.site.start("api", "worker", "scheduler")
	if _, err := fmt.Fprintln(in, p.callback()); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *identityProvider) callback() string { return p.site.url + "/auth/oidc/corp/callback" }

// browser follows redirects with cookies.
func browser(t *testing.T) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Jar: jar, Transport: transport}
}

// visit requests a page and returns the address where the browser ends and its text.
func visit(t *testing.T, b *http.Client, req *http.Request) (*url.URL, string) {
	t.Helper()
	res, err := b.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.Request.URL, string(text)
}

func request(t *testing.T, method, address string, form url.Values) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	return req
}

var authRequest = regexp.MustCompile(`name="id" value="([^"]+)"`)

// signIn goes through the pages of the provider and returns the page of the shop behind.
func (p *identityProvider) signIn(t *testing.T, b *http.Client) *url.URL {
	t.Helper()
	return p.signInTo(t, b, "/orders")
}

// signInTo is signIn with the page behind.
func (p *identityProvider) signInTo(t *testing.T, b *http.Client, to string) *url.URL {
	t.Helper()
	at, form := visit(t, b, request(t, http.MethodGet, p.site.url+"/auth/oidc/corp/start?to="+url.QueryEscape(to), nil))
	found := authRequest.FindStringSubmatch(form)
	if found == nil {
		t.Fatalf("no form of the provider at %s: %s", at, form)
	}
	at, _ = visit(t, b, request(t, http.MethodPost, p.issuer+"/login/username", url.Values{
		"id": {found[1]}, "username": {"test-user@localhost"}, "password": {"verysecure"},
	}))
	return at
}

// cookieToken returns an access token of a browser's session.
func cookieToken(t *testing.T, s *site, b *http.Client) string {
	t.Helper()
	req := request(t, http.MethodPost, s.url+"/graphql", nil)
	req.Body = io.NopCloser(strings.NewReader(`{"query":"mutation { refreshSession(input: {}) { tokens { accessToken } userErrors { code } } }"}`))
	req.ContentLength = -1
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Seckill-Session", "cookie")
	_, text := visit(t, b, req)
	var data struct {
		Data struct {
			RefreshSession struct{ Tokens struct{ AccessToken string } }
		}
	}
	if err := json.Unmarshal([]byte(text), &data); err != nil || data.Data.RefreshSession.Tokens.AccessToken == "" {
		t.Fatalf("no session: %s", text)
	}
	return data.Data.RefreshSession.Tokens.AccessToken
}

// session returns the account and role of a browser's session.
func (p *identityProvider) session(t *testing.T, b *http.Client) (userID, account, role string) {
	t.Helper()
	var who struct {
		Viewer struct{ ID, Account, Role string }
	}
	p.site.ask(cookieToken(t, p.site, b), `{ viewer { id account role } }`, nil).into(t, &who)
	return who.Viewer.ID, who.Viewer.Account, who.Viewer.Role
}

func TestUsersSignInWithAnotherProvider(t *testing.T) {
	t.Parallel()
	p := newProvider(t, "")
	b := browser(t)
	if at := p.signIn(t, b); at.Path != "/orders" {
		t.Fatalf("the browser is at %s", at)
	}
	first, account, role := p.session(t, b)
	if account != "test-user@zitadel.ch" || role != "CUSTOMER" {
		t.Errorf("signed in as %s, %s", account, role)
	}
	again := browser(t)
	p.signIn(t, again)
	if second, _, _ := p.session(t, again); second != first {
		t.Errorf("the second time the user is %s, before %s", second, first)
	}
	var buttons struct {
		SignInProviders []struct{ Title, URL string }
	}
	p.site.ask("", `{ signInProviders { title url } }`, nil).into(t, &buttons)
	if len(buttons.SignInProviders) != 1 || buttons.SignInProviders[0].URL != "/auth/oidc/corp/start" {
		t.Errorf("buttons %+v", buttons)
	}
}

func TestASignInLeadsBackToAnAllowedStorefront(t *testing.T) {
	t.Parallel()
	p := newProvider(t, "")
	for to, want := range map[string]string{
		"https://store.example/orders?tab=1": "https://store.example/orders?tab=1",
		"https://evil.example/":              p.site.url + "/", "//store.example/": p.site.url + "/", "https://me@store.example/": p.site.url + "/",
		"https://store.example:8443/": p.site.url + "/", "javascript:alert(1)": p.site.url + "/", "https://ѕtore.example/": p.site.url + "/",
		"https://store.example/\n": p.site.url + "/", "https://store.example@evil.example/": p.site.url + "/",
	} {
		b, left := browser(t), ""
		b.CheckRedirect = func(req *http.Request, _ []*http.Request) error {
			if strings.HasSuffix(req.URL.Hostname(), "example") {
				left = req.URL.String()
				return http.ErrUseLastResponse
			}
			return nil
		}
		at := p.signInTo(t, b, to).String()
		if left != "" {
			at = left
		}
		if at != want {
			t.Errorf("%q leads to %s, want %s", to, at, want)
		}
		cookieToken(t, p.site, b)
		// the buyer declines at the provider
		res, err := b.Transport.RoundTrip(request(t, http.MethodGet, p.site.url+"/auth/oidc/corp/start?to="+url.QueryEscape(to), nil))
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		asked, err := res.Location()
		if err != nil {
			t.Fatal(err)
		}
		b.Jar.SetCookies(request(t, http.MethodGet, p.callback(), nil).URL, res.Cookies())
		left = ""
		end, _ := visit(t, b, request(t, http.MethodGet, p.callback()+"?error=access_denied&state="+asked.Query().Get("state"), nil))
		if wantAway := strings.HasPrefix(want, "https://store"); wantAway && left != "https://store.example/orders?oidc=declined&tab=1" ||
			!wantAway && (left != "" || end.Path != "/sign-in") {
			t.Errorf("declined with %q: at %s %s", to, left, end)
		}
	}
}

func TestAProviderDecidesAboutRolesWhenItsClaimIsMapped(t *testing.T) {
	t.Parallel()
	p := newProvider(t, `, "roleClaim": "preferred_username", "roles": {"test-user@localhost": "OPERATOR"}`)
	b := browser(t)
	p.signIn(t, b)
	if _, _, role := p.session(t, b); role != "OPERATOR" {
		t.Errorf("the role is %s", role)
	}
}

func TestAProviderTakesNoAccountOver(t *testing.T) {
	t.Parallel()
	p := newProvider(t, "")
	user := app.NewUser{Account: "test-user@zitadel.ch", Role: "CUSTOMER", DisplayName: "Owner", Password: "a password of a test"}
	if _, err := app.CreateUser(t.Context(), p.site.cfg, user); err != nil {
		t.Fatal(err)
	}
	if at := p.signIn(t, browser(t)); at.Path != "/sign-in" || at.Query().Get("oidc") != "taken" {
		t.Errorf("the browser is at %s", at)
	}
}

// The code of an attacker's sign-in, sent to another browser, does not sign in there.
func TestACallbackBelongsToTheBrowserThatStarted(t *testing.T) {
	t.Parallel()
	p := newProvider(t, "")
	b := browser(t)
	var stolen string
	b.CheckRedirect = func(req *http.Request, _ []*http.Request) error {
		if strings.HasPrefix(req.URL.String(), p.callback()) {
			stolen = req.URL.String()
			return http.ErrUseLastResponse
		}
		return nil
	}
	p.signIn(t, b)
	if stolen == "" {
		t.Fatal("the provider did not call back")
	}
	victim := browser(t)
	if at, _ := visit(t, victim, request(t, http.MethodGet, stolen, nil)); at.Query().Get("oidc") != "expired" {
		t.Errorf("another browser is at %s", at)
	}
	visit(t, victim, request(t, http.MethodGet, p.site.url+"/auth/oidc/corp/start", nil)) // it has a state of its own now
	if at, _ := visit(t, victim, request(t, http.MethodGet, stolen, nil)); at.Query().Get("oidc") != "expired" {
		t.Errorf("with another state, the browser is at %s", at)
	}
}
