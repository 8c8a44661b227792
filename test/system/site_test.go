package system_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"seckill/internal/app"
	"seckill/internal/gate/audit"
	"seckill/internal/ops/apiclient"
	"seckill/internal/ops/seed"
	"seckill/internal/platform/config"
	"seckill/internal/platform/id"
	"seckill/internal/platform/redisconn"
	"seckill/internal/platform/telemetry"
	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

func TestMain(m *testing.M) {
	code := testenv.Run(m)
	removeBinary()
	os.Exit(code)
}

// site is a whole installation: its own database and key prefix, and the processes that a
// test starts on them.
type site struct {
	t     testing.TB
	cfg   *config.Config
	http  *http.Client
	url   string          // of the API process
	files int             // open files that a process may have; 0 = as this one
	redis *redisconn.Conn // of the test; nil = not opened yet
	other string          // token of a second person; "" = there is none yet
	logs  *lockedBuffer   // receives everything that the processes log; nil = errors go to stderr
	seen  *witness        // what buyers did and saw in buyAll and allBuy
}

// lockedBuffer is a buffer that many processes write.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// newSite returns an installation without processes, in the development profile and
// without rate limits.
func newSite(t testing.TB, change ...func(*config.Config)) *site {
	t.Helper()
	_, prefix := testenv.Redis(t)
	cfg := config.Default()
	cfg.Profile, cfg.Limits = config.ProfileDevelopment, config.SwitchOff
	cfg.DatabaseURL, cfg.RedisURL = config.Secret(testdb.UnflushedPostgresURL(t)), config.Secret(testenv.RedisURL(t))
	cfg.RedisPrefix, cfg.HTTPAddr, cfg.AdminAddr = prefix, "127.0.0.1:0", "127.0.0.1:0"
	cfg.JWTKey, cfg.PowMax = "a key of a test, at least 32 bytes long", 20_000
	cfg.PathTTL, cfg.WaitlistOffer = 10*time.Minute, 10*time.Minute // longer than any test
	cfg.DrainTimeout = testenv.Wait
	cfg.RequestTimeout = time.Minute // the maximum
	cfg.DatabasePool = 3             // each connection of Postgres is a process that reads the catalogue of the database first
	cfg.CaptchaPool = 1              // a thousand images per process would be half of the cost of the tests
	for _, c := range change {
		c(cfg)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 256, MaxConnsPerHost: 256}
	t.Cleanup(transport.CloseIdleConnections)
	return &site{t: t, cfg: cfg, http: &http.Client{Transport: transport, Timeout: testenv.Wait}, seen: &witness{}}
}

// conn returns connections of the test to the shared Redis.
func (s *site) conn() *redisconn.Conn {
	s.t.Helper()
	if s.redis == nil {
		s.redis, _ = testenv.Redis(s.t)
	}
	return s.redis
}

// start runs a process inside the test process and returns a function that stops it.
func (s *site) start(roles ...string) (stop func()) {
	s.t.Helper()
	_, stop = s.open(roles...)
	return stop
}

// open is start, but also returns the App.
func (s *site) open(roles ...string) (_ *app.App, stop func()) {
	s.t.Helper()
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	if s.logs != nil {
		log = telemetry.NewLogger(s.logs, telemetry.LogOptions{Level: slog.LevelDebug})
	}
	a, err := app.Open(s.t.Context(), s.cfg, roles, log)
	if err != nil {
		s.t.Fatal(err)
	}
	if addr := a.PublicAddr(); addr != nil {
		s.url = "http://" + addr.String()
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		s.http.CloseIdleConnections()
		if err := <-done; err != nil {
			s.t.Errorf("process %v: %v", roles, err)
		}
	}
	s.t.Cleanup(stop)
	return a, stop
}

// seed creates a sale whose buyers have one path token each.
func (s *site) seed(in seed.Input) *seed.Result {
	s.t.Helper()
	if in.Lasts == 0 {
		in.Lasts = time.Hour
	}
	if in.PurchaseLimit == 0 {
		in.PurchaseLimit = 1
	}
	in.PaymentWindow = 15 * time.Minute
	result, err := app.Seed(s.t.Context(), s.cfg, in, slog.New(slog.DiscardHandler))
	if err != nil {
		s.t.Fatal(err)
	}
	if s.url != "" {
		s.awaitSale(result.SaleID)
	}
	return result
}

// audit checks the invariants of a sale and returns the report.
func (s *site) audit(saleID string) *audit.Report {
	s.t.Helper()
	u, err := id.ParseSale(saleID)
	if err != nil {
		s.t.Fatal(err)
	}
	report, err := app.Audit(context.Background(), s.cfg, u)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, finding := range report.Findings {
		s.t.Errorf("audit: %s", finding)
	}
	return report
}

// auditEvery limits how often audits run: each opens its own connections and would slow
// down what it waits for.
const auditEvery = 150 * time.Millisecond

// drained waits until every accepted order is written.
func (s *site) drained(saleID string, orders int) *audit.Report {
	s.t.Helper()
	u, err := id.ParseSale(saleID)
	if err != nil {
		s.t.Fatal(err)
	}
	var next time.Time
	testenv.Eventually(s.t, testenv.Wait, func() bool {
		if time.Now().Before(next) {
			return false
		}
		next = time.Now().Add(auditEvery)
		report, err := app.Audit(context.Background(), s.cfg, u)
		return err == nil && report.Postgres.Orders >= orders && report.Stream.Unread+report.Stream.Pending == 0
	}, fmt.Sprintf("%d orders are written and the stream is empty", orders))
	return s.audit(saleID)
}

// answer is a GraphQL response.
type answer struct{ apiclient.Answer }

// code returns the code of the first top-level error, "" when there is none.
func (a answer) code() string {
	if len(a.Errors) == 0 {
		return ""
	}
	return a.Errors[0].Extensions.Code
}

// into decodes the data.
func (a answer) into(t testing.TB, v any) {
	t.Helper()
	if err := json.Unmarshal(a.Data, v); err != nil {
		t.Fatalf("data %s: %v", a.Data, err)
	}
}

// ask posts a document with a token ("" = anonymous) and returns the answer.
func (s *site) ask(token, document string, variables map[string]any) answer {
	s.t.Helper()
	out, err := s.try(token, document, variables)
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

// try is ask for use in goroutines and for servers that may be down: it returns the
// error.
func (s *site) try(token, document string, variables map[string]any) (answer, error) {
	out, err := s.client(token).Post(context.Background(), document, variables)
	return answer{out}, err
}

// client returns a client with a token; "" = anonymous.
func (s *site) client(token string) *apiclient.Client {
	return &apiclient.Client{URL: s.url, HTTP: s.http, Sockets: &http.Client{}, Token: token}
}

const placeOrder = `mutation P($in: PlaceOrderInput!) { placeOrder(input: $in) {
  orderTask { id status } replayed userErrors { __typename code path ... on PurchaseLimitError { limit } } } }`

// placed is the payload of placeOrder.
type placed struct {
	OrderTask *struct{ ID, Status string }
	Replayed  bool
	UserErrors
}

// UserErrors are the refusals of a payload.
type UserErrors struct {
	UserErrors []struct {
		Typename string `json:"__typename"`
		Code     string
		Path     []string
	}
}

// why returns the code of the first refusal, "" when there is none.
func (u UserErrors) why() string {
	if len(u.UserErrors) == 0 {
		return ""
	}
	return u.UserErrors[0].Code
}

// order returns the input of placeOrder.
func order(itemID, path string) map[string]any {
	return map[string]any{"itemId": itemID, "pathToken": path, "quantity": 1, "idempotencyKey": strings.ReplaceAll(uuid.NewString(), "-", "")}
}

// place calls placeOrder.
func (s *site) place(token string, in map[string]any) (placed, error) {
	out, err := s.try(token, placeOrder, map[string]any{"in": in})
	if err != nil {
		return placed{}, err
	}
	return out.placed()
}

// insist calls placeOrder until the outcome is known: it repeats retryable answers and
// errors with the same input.
func (s *site) insist(token string, in map[string]any) (p placed, err error) {
	for began := time.Now(); time.Since(began) < testenv.Wait; <-time.After(10 * time.Millisecond) {
		var out answer
		if out, err = s.try(token, placeOrder, map[string]any{"in": in}); err != nil {
			continue
		}
		if code := out.code(); code != "TIMEOUT" && code != "OVERLOADED" && code != "UNAVAILABLE" {
			return out.placed()
		}
	}
	return placed{}, fmt.Errorf("no answer: %w", err)
}

// placed decodes the payload of placeOrder.
func (a answer) placed() (placed, error) {
	var data struct{ PlaceOrder *placed }
	if err := json.Unmarshal(a.Data, &data); err != nil || data.PlaceOrder == nil {
		return placed{}, fmt.Errorf("placeOrder answered %s %+v", a.Data, a.Errors)
	}
	return *data.PlaceOrder, nil
}
