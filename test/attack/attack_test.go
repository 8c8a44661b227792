//go:build attack

package attack_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"seckill/internal/app"
	"seckill/internal/platform/captcha"
	"seckill/internal/platform/config"
	"seckill/internal/testdb"
	"seckill/internal/testenv"
	"seckill/web"
)

const password = "tower violin 46 mist"

// target is the server under attack.
type target struct {
	t         *testing.T
	url       string
	admin     string
	cfg       *config.Config
	documents map[string]string // operation → text
	client    *http.Client
	busy      bool // a request without a response is no failure of the test: the machine is overloaded
}

func start(t *testing.T, set ...func(*config.Config)) *target {
	t.Helper()
	_, prefix := testenv.Redis(t)
	cfg := config.Default()
	cfg.DatabaseURL, cfg.RedisURL = config.Secret(testdb.UnflushedPostgresURL(t)), config.Secret(testenv.RedisURL(t))
	cfg.RedisPrefix, cfg.HTTPAddr, cfg.AdminAddr = prefix, "127.0.0.1:0", "127.0.0.1:0"
	cfg.JWTKey, cfg.CaptchaPool, cfg.PowMax = "a key of a test, at least 32 bytes long", 1, 10_000
	cfg.MaxSockets, cfg.Media = 1000, config.Secret(t.TempDir())
	cfg.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")} // attackers connect through a proxy
	for _, f := range set {
		f(cfg)
	}
	a, err := app.Open(t.Context(), cfg, []string{"api", "worker", "scheduler"}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	s := &target{t: t, cfg: cfg, url: "http://" + a.PublicAddr().String(), admin: "http://" + a.AdminAddr().String(), client: &http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 256}}}
	t.Cleanup(func() {
		cancel()
		s.client.CloseIdleConnections()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	texts, err := web.Documents()
	if err != nil {
		t.Fatal(err)
	}
	s.documents = map[string]string{}
	for _, text := range texts {
		for _, name := range []string{"Login", "Register", "CreateCaptcha"} {
			if strings.Contains(text, "mutation "+name+"(") {
				s.documents[name] = text
			}
		}
	}
	return s
}

// answer is the payload of one mutation.
type answer struct {
	UserErrors []struct {
		Code      string
		Challenge *challenge
	}
	Challenge *challenge
	Tokens    *struct{ AccessToken string }
}

type challenge struct{ ID, Parameters string }

func (a answer) code() string {
	if len(a.UserErrors) == 0 {
		return ""
	}
	return a.UserErrors[0].Code
}

// send posts a body from a client address.
func (s *target) send(from, body string, header http.Header) (int, []byte, http.Header) {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, s.url+"/graphql", strings.NewReader(body))
	if err != nil {
		s.t.Error(err)
		return 0, nil, nil
	}
	for name, values := range header {
		req.Header[name] = values
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Forwarded-For", from)
	res, err := s.client.Do(req)
	if err != nil {
		if !s.busy {
			s.t.Error(err)
		}
		return 0, nil, nil
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil && !s.busy {
		s.t.Error(err)
	}
	return res.StatusCode, text, res.Header
}

// mutate sends a document of the shop.
func (s *target) mutate(from, name string, input map[string]any, header http.Header) (answer, http.Header) {
	body, err := json.Marshal(map[string]any{"query": s.documents[name], "variables": map[string]any{"input": input}})
	if err != nil {
		s.t.Error(err)
	}
	_, text, h := s.send(from, string(body), header)
	var out struct {
		Data   map[string]answer
		Errors []struct {
			Message    string
			Extensions struct{ Code string }
		}
	}
	if err := json.Unmarshal(text, &out); err != nil {
		s.t.Errorf("%s: %s", name, text)
	}
	for _, payload := range out.Data {
		return payload, h
	}
	return answer{}, h
}

// solve returns the solution of a proof of work.
func solve(c *challenge) map[string]any {
	if c == nil {
		return nil
	}
	solution, err := captcha.Solve(c.Parameters)
	if err != nil {
		return nil
	}
	return map[string]any{"challengeId": c.ID, "answer": solution}
}

// register creates an account; the response header has the cookies.
func (s *target) register(from, account string) (answer, http.Header) {
	c, _ := s.mutate(from, "CreateCaptcha", map[string]any{"purpose": "REGISTER", "kind": "PROOF_OF_WORK"}, nil)
	in := map[string]any{"account": account, "password": password, "displayName": "Someone", "captcha": solve(c.Challenge)}
	if in["captcha"] == nil {
		return c, nil
	}
	return s.mutate(from, "Register", in, cookies)
}

var cookies = http.Header{"X-Seckill-Session": {"cookie"}}

// login signs in and solves a captcha if one is required.
func (s *target) login(from, account, secret string, header http.Header) answer {
	in := map[string]any{"account": account, "password": secret}
	got, _ := s.mutate(from, "Login", in, header)
	if got.code() == "CAPTCHA_REQUIRED" {
		if in["captcha"] = solve(got.UserErrors[0].Challenge); in["captcha"] != nil {
			got, _ = s.mutate(from, "Login", in, header)
		}
	}
	return got
}

// device returns the request header of a browser with the cookies of a response.
func device(answered http.Header) http.Header {
	var jar []string
	for _, c := range (&http.Response{Header: answered}).Cookies() {
		if strings.HasSuffix(c.Name, "seckill_device") {
			jar = append(jar, c.Name+"="+c.Value)
		}
	}
	return http.Header{"X-Seckill-Session": {"cookie"}, "Cookie": {strings.Join(jar, "; ")}}
}

func TestAttacks(t *testing.T) {
	s := start(t)
	var table bytes.Buffer
	s.requests(20) // opens connections and fills caches
	quiet := s.requests(60)
	fmt.Fprintf(&table, "p99 of a legitimate buyer of a quiet server: %s\n", quiet.Round(time.Millisecond/10))
	for _, attack := range []struct {
		line int // number of the weakness that the attack tests, 1 to 12; 0 = never was one
		name string
		held func(s *target) error
	}{
		{1, "32 kB of JSON escapes", escapes},
		{2, "permits renewed past a buyer who waits", renewPermits},
		{3, "40 registrations from one IPv6 /48", registerFromOneCustomer},
		{4, "guesses from 180 networks keep others from signing in", fillTheQueue},
		{5, "a small file that declares a huge picture", bombs},
		{6, "700 anonymous sockets of one IPv6 /48", fillSockets},
		{7, "a waitlist joined again and again", fillWaitlist},
		{8, "12 failures lock the owner's browser out", lockOut},
		{9, "a proof of work solved before the opening", solveEarly},
		{10, "units put on sale in small steps by one person", smallSteps},
		{11, "a stolen session outlives a change of the password", keepSession},
		{12, "a visitor reads products of no public sale", readDrafts},
		{12, "a rebound name reads the admin listener", rebind},
		{12, "a foreign page sends credentials", foreignPage},
		{0, "twenty addresses of one mailbox", oneMailbox},
		{0, "six accounts of one delivery address", oneHome},
		{0, "bought, paid, deleted and registered again", deletedAndBack},
		{0, "one unit held by the accounts of a mailbox by turns", byTurns},
		{0, "400 calls of 40 accounts of one address", callTogether},
		{0, "forged access tokens", forgeTokens},
		{0, "documents that the shop does not send", foreignDocuments},
		{0, "none: 180 clients that ask for the time", visitors},
	} {
		verdict := "held"
		began := time.Now()
		stop := s.measureLegitimate()
		err := attack.held(s)
		took := time.Since(began)
		p99 := stop()
		if err != nil {
			verdict = "NOT HELD: " + err.Error()
			t.Errorf("%s: %v", attack.name, err)
		}
		fmt.Fprintf(&table, "%2d  %-55s %5.1f s  p99 %6.1f ms  %-8s  %s\n",
			attack.line, attack.name, took.Seconds(), float64(p99.Microseconds())/1000, pace(p99, quiet), verdict)
	}
	t.Logf("\n%s", table.String())
}

func registerFromOneCustomer(s *target) error {
	made := 0
	for n := range 40 {
		if got, _ := s.register(fmt.Sprintf("2001:db8:7:%x::1", n*257), fmt.Sprintf("many%d@example.com", n)); got.Tokens != nil {
			made++
		}
	}
	if made > 20 {
		return fmt.Errorf("%d of 40 accounts were made", made)
	}
	return nil
}

func fillTheQueue(s *target) error {
	in, header := s.register("93.184.1.1", "legitimate@example.com")
	if in.Tokens == nil {
		return fmt.Errorf("the legitimate user could not register: %s", in.code())
	}
	known := device(header)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var all sync.WaitGroup
	for n := range 180 {
		all.Go(func() {
			for try := 0; try < 20 && ctx.Err() == nil; try++ {
				in := map[string]any{"account": fmt.Sprintf("target%d.%d@example.com", n, try), "password": "a wrong password"}
				s.mutate(fmt.Sprintf("45.%d.%d.9", n/16, n), "Login", in, nil)
			}
		})
	}
	defer all.Wait()
	for what, header := range map[string]http.Header{"a known browser": known, "a new browser": cookies} {
		ok := false
		for try := 0; try < 5 && !ok; try++ {
			ok = s.login(fmt.Sprintf("93.184.%d.1", 2+try), "legitimate@example.com", password, header).Tokens != nil
		}
		if !ok {
			return fmt.Errorf("%s did not sign in", what)
		}
	}
	return nil
}

// visitors is not an attack. It measures the load that 180 clients on the server's machine
// cause by themselves.
func visitors(s *target) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	var all sync.WaitGroup
	for n := range 180 {
		all.Go(func() {
			for ctx.Err() == nil {
				s.send(fmt.Sprintf("45.%d.%d.9", n/16, n), `{"query":"{ serverInfo { serverTime } }"}`, nil)
			}
		})
	}
	all.Wait()
	return nil
}

func lockOut(s *target) error {
	in, header := s.register("93.185.1.1", "owner@example.com")
	if in.Tokens == nil {
		return fmt.Errorf("the owner could not register: %s", in.code())
	}
	last := ""
	for n := range 12 {
		last = s.login(fmt.Sprintf("46.1.%d.1", n), "owner@example.com", "a wrong password", nil).code()
	}
	if last != "RATE_LIMITED" {
		return fmt.Errorf("the attacker's last answer is %q", last)
	}
	if got := s.login("93.185.1.1", "owner@example.com", password, device(header)); got.Tokens == nil {
		return fmt.Errorf("the owner: %s", got.code())
	}
	return nil
}

func escapes(s *target) error {
	body := `{"query":"{viewer{id}}","x":[` + strings.TrimSuffix(strings.Repeat(`"\u0041",`, 3600), ",") + `]}`
	var before, after runtime.MemStats
	const requests = 50
	runtime.ReadMemStats(&before)
	for range requests {
		s.send("47.1.1.1", body, nil)
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / requests; each > 4<<20 {
		return fmt.Errorf("each request of %d bytes allocates %d bytes", len(body), each)
	}
	return nil
}

func forgeTokens(s *target) error {
	part := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	claims := part(`{"iss":"seckill","aud":["seckill-api"],"sub":"01890000-0000-7000-8000-000000000001","sid":"01890000-0000-7000-8000-000000000002","role":"ADMIN","exp":4102444800,"iat":1}`)
	for _, header := range []string{`{"alg":"none","typ":"at+jwt","kid":"k1"}`, `{"alg":"HS256","typ":"at+jwt","kid":"../../dev/null"}`, `{"alg":"RS256","typ":"JWT"}`} {
		status, text, _ := s.send("48.1.1.1", `{"query":"{viewer{id}}"}`, http.Header{"Authorization": {"Bearer " + part(header) + "." + claims + "."}})
		if !strings.Contains(string(text), "UNAUTHENTICATED") {
			return fmt.Errorf("%s: %d %s", header, status, text)
		}
	}
	return nil
}

func foreignDocuments(s *target) error {
	for _, document := range []string{
		`{__schema{types{name}}}`,
		`{` + strings.Repeat(`sales{edges{node{items{goods{`, 200) + `id` + strings.Repeat(`}}}}}`, 200) + `}`,
		`mutation{` + strings.Repeat(`login(input:{account:\"a@b.co\",password:\"x\"}){userErrors{code}} `, 100) + `}`,
	} {
		if _, text, _ := s.send("49.1.1.1", `{"query":"`+document+`"}`, nil); !strings.Contains(string(text), `"errors"`) {
			return fmt.Errorf("%.60s: %.200s", document, text)
		}
	}
	return nil
}

func foreignPage(s *target) error {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodOptions, s.url+"/graphql", nil)
	if err != nil {
		return err
	}
	for name, value := range map[string]string{
		"Origin": "https://evil.example", "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type,x-seckill-session",
	} {
		req.Header.Set(name, value)
	}
	res, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if allowed := res.Header.Get("Access-Control-Allow-Origin"); allowed != "" {
		return fmt.Errorf("origin %s is allowed", allowed)
	}
	return nil
}

func rebind(s *target) error {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, s.admin+"/metrics", nil)
	if err != nil {
		return err
	}
	req.Host = "rebound.example"
	res, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusMisdirectedRequest {
		return fmt.Errorf("answered %d", res.StatusCode)
	}
	return nil
}
