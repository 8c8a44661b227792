package system_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"seckill/internal/platform/config"
)

// oddProvider is an OpenID provider whose answers a test chooses: those of public providers
// that differ from the standard.
type oddProvider struct {
	t      *testing.T
	server *httptest.Server
	site   *site
	key    *ecdsa.PrivateKey

	mu       sync.Mutex
	claims   jwt.MapClaims     // guarded by mu; of the next id tokens
	methods  []string          // guarded by mu; token_endpoint_auth_methods_supported
	nonces   map[string]string // guarded by mu; by code
	asked    url.Values        // guarded by mu; the last authorisation request
	requests int               // guarded by mu; for tokens
	basic    bool              // guarded by mu; the last one had the secret in its header
}

// newOddProvider starts a provider, and a site with the settings [oidc.odd].
func newOddProvider(t *testing.T, settings string, claims jwt.MapClaims, change ...func(*config.Config)) *oddProvider {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p := &oddProvider{t: t, key: key, claims: claims, nonces: map[string]string{}}
	p.server = httptest.NewServer(p)
	t.Cleanup(p.server.Close)
	dir := t.TempDir()
	file := filepath.Join(dir, "providers.toml")
	for path, text := range map[string]string{
		file:                         "[oidc.odd]\nissuer = \"" + p.server.URL + "\"\nclient_id = \"shop\"\nclient_secret_file = \"secret\"\n" + settings,
		filepath.Join(dir, "secret"): "s3cret",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.site = newSite(t, append(change, func(c *config.Config) { c.OIDC = file })...)
	p.site.start("api", "worker", "scheduler")
	return p
}

func (p *oddProvider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	answer := func(v any) {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(v); err != nil {
			p.t.Error(err)
		}
	}
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		says := map[string]any{
			"issuer": p.server.URL, "authorization_endpoint": p.server.URL + "/authorize", "token_endpoint": p.server.URL + "/token",
			"jwks_uri": p.server.URL + "/keys", "id_token_signing_alg_values_supported": []string{"ES256"},
		}
		if p.methods != nil {
			says["token_endpoint_auth_methods_supported"] = p.methods
		}
		answer(says)
	case "/keys":
		raw, err := p.key.PublicKey.ECDH()
		if err != nil {
			p.t.Error(err)
			return
		}
		point := raw.Bytes() // 4, X, Y
		answer(map[string]any{"keys": []any{map[string]string{
			"kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": "k",
			"x": base64.RawURLEncoding.EncodeToString(point[1:33]), "y": base64.RawURLEncoding.EncodeToString(point[33:]),
		}}})
	case "/authorize":
		p.asked = r.URL.Query()
		code := rand.Text()
		p.nonces[code] = p.asked.Get("nonce")
		to := p.asked.Get("redirect_uri") + "?" + url.Values{"code": {code}, "state": {p.asked.Get("state")}}.Encode()
		http.Redirect(w, r, to, http.StatusFound)
	case "/token":
		p.requests++
		_, _, p.basic = r.BasicAuth()
		nonce, issued := p.nonces[r.FormValue("code")]
		delete(p.nonces, r.FormValue("code"))
		if !issued {
			w.WriteHeader(http.StatusBadRequest)
			answer(map[string]string{"error": "invalid_grant"})
			return
		}
		now := time.Now()
		all := jwt.MapClaims{"iss": p.server.URL, "aud": "shop", "sub": "s-1", "nonce": nonce, "iat": now.Unix(), "exp": now.Add(time.Hour).Unix()}
		maps.Copy(all, p.claims)
		unsigned := jwt.NewWithClaims(jwt.SigningMethodES256, all)
		unsigned.Header["kid"] = "k"
		signed, err := unsigned.SignedString(p.key)
		if err != nil {
			p.t.Error(err)
		}
		answer(map[string]any{"access_token": "a", "token_type": "Bearer", "id_token": signed})
	default:
		http.NotFound(w, r)
	}
}

// begin starts a sign-in and returns the callback to which the provider leads, unvisited.
func (p *oddProvider) begin(b *http.Client, to string) string {
	p.t.Helper()
	callback := ""
	follow := *b
	follow.CheckRedirect = func(req *http.Request, _ []*http.Request) error {
		if strings.HasPrefix(req.URL.Path, "/auth/oidc/odd/callback") {
			callback = req.URL.String()
			return http.ErrUseLastResponse
		}
		return nil
	}
	at, text := visit(p.t, &follow, request(p.t, http.MethodGet, p.site.url+"/auth/oidc/odd/start?to="+url.QueryEscape(to), nil))
	if callback == "" {
		p.t.Fatalf("no callback; the browser is at %s: %s", at, text)
	}
	return callback
}

// end visits a callback and returns where the browser is led.
func (p *oddProvider) end(b *http.Client, callback string) *url.URL {
	p.t.Helper()
	at, _ := visit(p.t, b, request(p.t, http.MethodGet, callback, nil))
	return at
}

func (p *oddProvider) counted() (requests int, basic bool, asked url.Values) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requests, p.basic, p.asked
}

// viewer returns the user of a browser's session.
func (p *oddProvider) viewer(b *http.Client) (v struct {
	Account, DisplayName string
	ContactVerified      bool
}) {
	p.t.Helper()
	var who struct {
		Viewer *struct {
			Account, DisplayName string
			ContactVerified      bool
		}
	}
	p.site.ask(cookieToken(p.t, p.site, b), `{ viewer { account displayName contactVerified } }`, nil).into(p.t, &who)
	return *who.Viewer
}

func TestVerifiedAddressesOfProvidersAreRecognised(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		settings string
		claims   jwt.MapClaims
		want     string // path where the browser ends
	}{
		"true":                  {"", jwt.MapClaims{"email_verified": true}, "/orders"},
		"text of Apple":         {"", jwt.MapClaims{"email_verified": "true"}, "/orders"},
		"text in capitals":      {"", jwt.MapClaims{"email_verified": "True"}, "/orders"},
		"number":                {"", jwt.MapClaims{"email_verified": 1}, "/orders"},
		"claim of Microsoft":    {"verified_claim = \"xms_edov\"\n", jwt.MapClaims{"xms_edov": "1"}, "/orders"},
		"trusted without claim": {"trust_email = true\n", jwt.MapClaims{}, "/orders"},
		"no claim":              {"", jwt.MapClaims{}, "/sign-in"},
		"false":                 {"", jwt.MapClaims{"email_verified": false}, "/sign-in"},
		"text false":            {"", jwt.MapClaims{"email_verified": "false"}, "/sign-in"},
		"empty text":            {"", jwt.MapClaims{"email_verified": ""}, "/sign-in"},
		"another claim":         {"verified_claim = \"xms_edov\"\n", jwt.MapClaims{"email_verified": true}, "/sign-in"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.claims["email"] = "Ann@example.com"
			p := newOddProvider(t, c.settings, c.claims)
			b := browser(t)
			if at := p.end(b, p.begin(b, "/orders")); at.Path != c.want {
				t.Fatalf("the browser is at %s, want %s", at, c.want)
			}
			if c.want != "/orders" {
				return
			}
			if v := p.viewer(b); !v.ContactVerified || v.Account != "ann@example.com" {
				t.Errorf("viewer %+v, want a verified contact ann@example.com", v)
			}
		})
	}
}

// A user who signed in before their provider's address counted is verified at the next sign-in.
func TestAnAddressIsVerifiedAtALaterSignIn(t *testing.T) {
	t.Parallel()
	p := newOddProvider(t, "", jwt.MapClaims{"email": "ann@example.com", "email_verified": true})
	b := browser(t)
	p.end(b, p.begin(b, "/"))
	if err := p.site.database().Ent.User.Update().ClearVerifiedAt().Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	again := browser(t)
	p.end(again, p.begin(again, "/"))
	if v := p.viewer(again); !v.ContactVerified {
		t.Errorf("viewer %+v is not verified", v)
	}
}

// Apple posts the callback from its own page, without the cookies of the shop, and names the
// user there only.
func TestAProviderCallsBackByPost(t *testing.T) {
	t.Parallel()
	p := newOddProvider(t, "response_mode = \"form_post\"\ntoken_auth = \"post\"\n", jwt.MapClaims{"email": "ann@example.com", "email_verified": "true"})
	b := browser(t)
	callback, err := url.Parse(p.begin(b, "/orders"))
	if err != nil {
		t.Fatal(err)
	}
	form := callback.Query()
	form.Set("user", `{"name":{"firstName":"Ann","lastName":"Lee"},"email":"ann@example.com"}`)
	callback.RawQuery = ""
	jar := b.Jar
	b.Jar = nil // a POST from another site has no cookies with SameSite=Lax
	b.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	post := request(t, http.MethodPost, callback.String(), form)
	post.Header.Set("Origin", p.server.URL)
	res, err := b.Do(post)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusSeeOther {
		t.Fatalf("the answer to the POST is %s", res.Status)
	}
	next, err := res.Location()
	if err != nil {
		t.Fatal(err)
	}
	b.Jar, b.CheckRedirect = jar, nil
	if at := p.end(b, next.String()); at.Path != "/orders" {
		t.Fatalf("the browser is at %s", at)
	}
	if v := p.viewer(b); v.DisplayName != "Ann Lee" {
		t.Errorf("the name is %q", v.DisplayName)
	}
	if _, basic, asked := p.counted(); basic || asked.Get("response_mode") != "form_post" {
		t.Errorf("asked with %v, secret in the header: %v", asked, basic)
	}
	big := request(t, http.MethodPost, callback.String(), url.Values{"code": {strings.Repeat("x", 1<<20)}})
	if at, _ := visit(t, browser(t), big); at.Query().Get("oidc") != "expired" {
		t.Errorf("with a form of a megabyte the browser is at %s", at)
	}
}

// The secret goes where the provider says, in the first request already: some providers use
// up the code with a refused one.
func TestTheSecretGoesWhereTheProviderSupportsIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		methods []string
		basic   bool
	}{
		"default":   {nil, true},
		"both":      {[]string{"client_secret_post", "client_secret_basic"}, true},
		"body only": {[]string{"client_secret_post"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newOddProvider(t, "", jwt.MapClaims{"email": "ann@example.com", "email_verified": true})
			p.mu.Lock()
			p.methods = c.methods
			p.mu.Unlock()
			b := browser(t)
			p.end(b, p.begin(b, "/"))
			if requests, basic, _ := p.counted(); requests != 1 || basic != c.basic {
				t.Errorf("%d requests, secret in the header: %v, want %v", requests, basic, c.basic)
			}
		})
	}
}

func TestSignInsOfSeveralTabsEndInAnyOrder(t *testing.T) {
	t.Parallel()
	p := newOddProvider(t, "", jwt.MapClaims{"email": "ann@example.com", "email_verified": true})
	b := browser(t)
	first := p.begin(b, "/orders")
	second := p.begin(b, "/account")
	if at := p.end(b, first); at.Path != "/orders" {
		t.Errorf("the first tab is at %s", at)
	}
	if at := p.end(b, second); at.Path != "/account" {
		t.Errorf("the second tab is at %s", at)
	}
	var all []string
	for range 8 {
		all = append(all, p.begin(b, "/goods"))
	}
	site, err := url.Parse(p.site.url + "/auth/oidc/")
	if err != nil {
		t.Fatal(err)
	}
	if kept := len(b.Jar.Cookies(site)); kept > 7 { // five states, and the session and device
		t.Errorf("%d cookies are kept", kept)
	}
	if at := p.end(b, all[7]); at.Path != "/goods" {
		t.Errorf("the latest tab is at %s", at)
	}
	if at := p.end(b, all[0]); at.Query().Get("oidc") != "expired" {
		t.Errorf("the tab before five others is at %s", at)
	}
}

// A callback that is sent again costs its provider nothing, and neither does a flood of
// callbacks with codes that were not issued.
func TestRepeatedCallbacksCostTheProviderNothing(t *testing.T) {
	t.Parallel()
	limited := func(c *config.Config) { c.Limits = config.SwitchOn }
	p := newOddProvider(t, "", jwt.MapClaims{"email": "ann@example.com", "email_verified": true}, limited)
	b := browser(t)
	callback := p.begin(b, "/orders")
	at, err := url.Parse(callback)
	if err != nil {
		t.Fatal(err)
	}
	kept := b.Jar.Cookies(at)
	for i := range 150 {
		req := request(t, http.MethodGet, callback, nil)
		for _, c := range kept {
			req.AddCookie(c)
		}
		replay := &http.Client{Transport: b.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		res, err := replay.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if to := res.Header.Get("Location"); i == 0 && to != "/orders" || i == 1 && to != "/orders" {
			t.Errorf("callback %d leads to %q", i, to)
		}
	}
	if requests, _, _ := p.counted(); requests != 1 {
		t.Errorf("the provider had %d requests for 150 callbacks", requests)
	}
	flood := browser(t)
	last := ""
	for range 60 {
		begun, err := url.Parse(p.begin(flood, "/"))
		if err != nil {
			t.Fatal(err)
		}
		query := begun.Query()
		query.Set("code", "made up")
		begun.RawQuery = query.Encode()
		last = p.end(flood, begun.String()).Query().Get("oidc")
	}
	if requests, _, _ := p.counted(); requests > 40 { // 20 at once, one more every two seconds
		t.Errorf("the provider had %d requests for 60 made-up codes", requests)
	}
	if last != "throttled" {
		t.Errorf("the last callback is answered with %q, want throttled", last)
	}
}
