package system_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"seckill/internal/ops/seed"
	"seckill/internal/platform/config"
	"seckill/internal/testenv"
)

// production configures the production profile with the given allowed origins.
func production(origins ...string) func(*config.Config) {
	return func(c *config.Config) {
		c.Profile, c.Limits, c.AllowedOrigins = config.ProfileProduction, config.SwitchOn, origins
	}
}

// from sends a request with the headers a browser sends for a page of that origin.
func (s *site) from(t *testing.T, origin, method, body string, headers ...string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.url+"/graphql", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Origin", origin)
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := s.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

func text(t *testing.T, resp *http.Response) string {
	t.Helper()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestPagesOfAnAllowedOriginUseTheWholeAPIInProduction(t *testing.T) {
	t.Parallel()
	const origin = "https://spa.example"
	s := newSite(t, production(origin))
	s.start("api")
	shop := s.seed(seed.Input{Users: 1, Stock: 5})
	token := shop.Users[0].AccessToken

	pre := s.from(t, origin, http.MethodOptions, "", "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization,content-type,x-seckill-session")
	if pre.StatusCode != http.StatusNoContent || pre.Header.Get("Access-Control-Allow-Origin") != origin ||
		pre.Header.Get("Access-Control-Allow-Credentials") != "true" || !strings.Contains(pre.Header.Get("Access-Control-Allow-Headers"), "X-Seckill-Session") {
		t.Errorf("preflight: %d %v", pre.StatusCode, pre.Header)
	}
	bearer := s.from(t, origin, http.MethodPost, `{"query":"{ viewer { account } sales(first: 1) { totalCount } }"}`, "Authorization", "Bearer "+token)
	if body := text(t, bearer); !strings.Contains(body, `"totalCount":1`) || strings.Contains(body, "errors") || bearer.Header.Get("Access-Control-Allow-Origin") != origin {
		t.Errorf("bearer token: %s %v", body, bearer.Header)
	}
	login := map[string]any{
		"query":     `mutation($i: LoginInput!) { login(input: $i) { tokens { accessToken } userErrors { message } } }`,
		"variables": map[string]any{"i": map[string]any{"account": shop.Users[0].Account, "password": shop.Users[0].Password}},
	}
	raw, err := json.Marshal(login)
	if err != nil {
		t.Fatal(err)
	}
	cookie := s.from(t, origin, http.MethodPost, string(raw), "X-Seckill-Session", "cookie")
	if body := text(t, cookie); !strings.Contains(body, `"accessToken":"`) || !strings.Contains(cookie.Header.Get("Set-Cookie"), "seckill_refresh=") {
		t.Errorf("cookie: %s %v", body, cookie.Header)
	}

	ctx, cancel := context.WithTimeout(t.Context(), 5*testenv.Wait)
	defer cancel()
	subscription := `subscription { saleStatus(saleId: \"` + shop.SaleID + `\") { kind sale { phase } } }`
	events := s.from(t, origin, http.MethodPost, `{"query":"`+subscription+`"}`, "Accept", "text/event-stream", "Authorization", "Bearer "+token)
	lines, line := bufio.NewReader(events.Body), ":"
	for err == nil && (strings.HasPrefix(line, ":") || line == "\n") { // comments are keep-alives
		line, err = lines.ReadString('\n')
	}
	if err != nil || !strings.HasPrefix(line, "event: next") || events.Header.Get("Access-Control-Allow-Origin") != origin {
		t.Errorf("SSE: %q %v %v", line, err, events.Header)
	}
	conn, _, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(s.url, "http")+"/graphql", &websocket.DialOptions{
		Subprotocols: []string{"graphql-transport-ws"}, HTTPHeader: http.Header{"Origin": {origin}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.CloseNow() }()
	for _, step := range []struct{ send, want string }{
		{`{"type":"connection_init","payload":{"authorization":"Bearer ` + token + `"}}`, "connection_ack"},
		{`{"type":"subscribe","id":"1","payload":{"query":"` + subscription + `"}}`, `"phase":"LIVE"`},
	} {
		if err := conn.Write(ctx, websocket.MessageText, []byte(step.send)); err != nil {
			t.Fatal(err)
		}
		if _, got, err := conn.Read(ctx); err != nil || !strings.Contains(string(got), step.want) {
			t.Errorf("WebSocket: %s, %v, want %s", got, err, step.want)
		}
	}

	if resp := s.from(t, "https://other.example", http.MethodPost, `{"query":"{ __typename }"}`); resp.StatusCode != http.StatusForbidden || resp.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("another origin: %d %v", resp.StatusCode, resp.Header)
	}
	_, resp, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(s.url, "http")+"/graphql", &websocket.DialOptions{HTTPHeader: http.Header{"Origin": {"https://other.example"}}})
	if err == nil || resp.StatusCode != http.StatusForbidden {
		t.Errorf("a socket of another origin: %v", err)
	}
}

func TestTrustedDocumentsFollowTheirManifest(t *testing.T) {
	t.Parallel()
	manifest := filepath.Join(t.TempDir(), "documents.json")
	write := func(documents map[string]string) {
		raw, err := json.Marshal(documents)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(manifest, raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const first, second = `query First { serverInfo { version } }`, `query Second { serverInfo { ready } }`
	write(map[string]string{"first": first})
	s := newSite(t, production(), func(c *config.Config) { c.Documents, c.TrustedDocuments = config.DocumentsTrusted, manifest })
	s.start("api")
	named := func(id string) string {
		resp := s.from(t, s.url, http.MethodPost, `{"extensions":{"persistedQuery":{"version":1,"sha256Hash":"`+id+`"}}}`, "Sec-Fetch-Site", "same-origin")
		return text(t, resp)
	}
	if got := named("first"); !strings.Contains(got, `"version"`) {
		t.Errorf("a trusted document by its id: %s", got)
	}
	if code := s.ask("", first, nil).code(); code != "" {
		t.Errorf("a trusted document in full: %s", code)
	}
	if code := s.ask("", second, nil).code(); code != "PERSISTED_QUERY_ONLY" {
		t.Errorf("another document: %q", code)
	}
	write(map[string]string{"second": second})
	testenv.Eventually(t, testenv.Wait, func() bool { return s.ask("", second, nil).code() == "" }, "the new manifest is read")
	if code := s.ask("", first, nil).code(); code != "PERSISTED_QUERY_ONLY" {
		t.Errorf("a document that is trusted no longer: %q", code)
	}
}

func TestTheSchemaIsForThoseOfTheSetting(t *testing.T) {
	t.Parallel()
	const query = `{ __schema { queryType { name } } }`
	for setting, want := range map[config.Introspection]struct{ anonymous, customer, staff bool }{
		config.IntrospectionAuto: {}, config.IntrospectionOff: {}, config.IntrospectionStaff: {staff: true}, config.IntrospectionOn: {true, true, true},
	} {
		s := newSite(t, production(), func(c *config.Config) { c.Introspection = setting })
		s.start("api")
		shop := s.seed(seed.Input{Users: 1, Stock: 1})
		for who, c := range map[string]struct {
			token string
			may   bool
		}{"anonymous": {"", want.anonymous}, "customer": {shop.Users[0].AccessToken, want.customer}, "staff": {s.staff("ann@example.com", "OPERATOR"), want.staff}} {
			if code := s.ask(c.token, query, nil).code(); (code == "") != c.may {
				t.Errorf("%s, %s: %q", setting, who, code)
			}
			for document, names := range map[string]string{
				`{ shopp }`:                         `Cannot query field "shopp" on type "Query".`,
				`{ sales(fist: 1) { __typename } }`: `Unknown argument "fist" on field "Query.sales". Did you mean "first" or "last"?`,
			} {
				named := c.may || who == "staff"
				if m := s.ask(c.token, document, nil).Errors[0].Message; (m == names) != named {
					t.Errorf("%s, %s, %s: %q", setting, who, document, m)
				}
			}
		}
	}
}
