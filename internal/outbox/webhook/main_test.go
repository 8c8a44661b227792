package webhook_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"seckill/ent"
	"seckill/internal/outbox/webhook"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

// TestMain runs a sender instead of the tests in a process that a test started.
func TestMain(m *testing.M) {
	if url := os.Getenv(senderVariable); url != "" {
		runSender(url)
		return
	}
	testenv.Main(m)
}

var quiet = slog.New(slog.DiscardHandler)

var loopback = netip.MustParsePrefix("127.0.0.0/8")

// env is a database, a service and a fake clock.
type env struct {
	t       testing.TB
	db      *postgres.DB
	clock   *clock.Fake
	outbox  *webhook.Outbox
	service *webhook.Service
}

func setup(t testing.TB) *env {
	t.Helper()
	return setupOn(t, testdb.Postgres(t))
}

// onBoth runs a test on Postgres and on SQLite.
func onBoth(t *testing.T, test func(t *testing.T, e *env)) {
	t.Helper()
	t.Parallel()
	testdb.OnDatabases(t, func(t *testing.T, db *postgres.DB) { test(t, setupOn(t, db)) })
}

func setupOn(t testing.TB, db *postgres.DB) *env {
	t.Helper()
	e := &env{t: t, db: db, clock: clock.NewFake(time.Now())}
	e.outbox = webhook.NewOutbox(e.clock, nil)
	e.service = newService(t, db, e.clock, e.outbox)
	return e
}

func newService(t testing.TB, db *postgres.DB, c clock.Clock, outbox *webhook.Outbox) *webhook.Service {
	t.Helper()
	return webhook.New(webhook.Config{DB: db, Keys: testenv.Keys(t), Networks: []netip.Prefix{loopback}, Outbox: outbox, Clock: c, Log: quiet})
}

func (e *env) must(err error) {
	e.t.Helper()
	if err != nil {
		e.t.Fatal(err)
	}
}

// fact writes an event in a transaction.
func (e *env) fact(kind webhook.Kind, subject string, n int) {
	e.t.Helper()
	e.must(e.db.WithTx(e.t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		return e.outbox.Write(ctx, tx, kind, func() []webhook.Event {
			return []webhook.Event{{Kind: kind, Subject: subject, At: e.clock.Now(), Data: map[string]any{"subject": subject, "n": n}}}
		})
	}))
}

func (e *env) step() {
	e.t.Helper()
	e.must(e.service.Step(e.t.Context()))
}

// received is an event as a receiver got it.
type received struct {
	ID   string
	Type webhook.Kind
	Data struct {
		Subject string
		N       int
	}
}

// receiver is another system: it verifies signatures with the library.
type receiver struct {
	t      testing.TB
	server *httptest.Server

	mu     sync.Mutex
	secret string                // guarded by mu
	answer func(received) int    // guarded by mu; nil = 200
	got    []received            // guarded by mu; answered with success
	tries  int                   // guarded by mu
	sleep  func(r *http.Request) // guarded by mu; before the answer
}

func newReceiver(t testing.TB) *receiver {
	t.Helper()
	r := &receiver{t: t}
	r.server = httptest.NewServer(r)
	t.Cleanup(r.server.Close)
	return r
}

// ServeHTTP takes an event.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return // the sender was killed
	}
	r.mu.Lock()
	secret, sleep := r.secret, r.sleep
	r.mu.Unlock()
	if sleep != nil {
		sleep(req)
	}
	verifier, err := standardwebhooks.NewWebhook(secret)
	if err == nil {
		err = verifier.VerifyIgnoringTimestamp(body, req.Header) // the clock of some tests is a fake
	}
	var e received
	if err == nil {
		err = json.Unmarshal(body, &e)
	}
	if err != nil {
		r.t.Errorf("a delivery cannot be verified: %v", err)
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	e.ID = req.Header.Get(standardwebhooks.HeaderWebhookID)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tries++
	status := http.StatusOK
	if r.answer != nil {
		status = r.answer(e)
	}
	if status == http.StatusOK {
		r.got = append(r.got, e)
	}
	w.WriteHeader(status)
}

func (r *receiver) answers(answer func(received) int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

func (r *receiver) events() []received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]received(nil), r.got...)
}

func (r *receiver) attempts() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tries
}

// register makes the receiver an endpoint.
func (e *env) register(r *receiver, kinds ...webhook.Kind) *webhook.Endpoint {
	e.t.Helper()
	endpoint, secret, err := e.service.Create(e.t.Context(), id.User{}, webhook.EndpointInput{URL: &r.server.URL, Kinds: &kinds})
	e.must(err)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.secret = secret
	return endpoint
}
