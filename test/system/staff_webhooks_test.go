package system_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"seckill/internal/ops/seed"
	"seckill/internal/platform/config"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

// endpoint adds an endpoint with a line in its delivery log, and returns its id.
func (s *site) endpoint() string {
	s.t.Helper()
	db, endpoint, now := s.database(), id.New[id.Endpoint](), time.Now()
	must := func(err error) {
		s.t.Helper()
		if err != nil {
			s.t.Fatal(err)
		}
	}
	must(db.Ent.WebhookEndpoint.Create().SetID(endpoint).SetURL("https://shop.example.com/").SetSecret([]byte("sealed")).
		SetState("DISABLED").SetCreatedAt(now).SetUpdatedAt(now).Exec(s.t.Context()))
	event, err := db.Ent.WebhookEvent.Create().SetMessageID(id.New[id.Event]()).SetKind("stock.low").SetSubject("itm_1").SetPayload([]byte("{}")).
		SetBatch(1).SetCreatedAt(now).Save(s.t.Context())
	must(err)
	must(db.Ent.WebhookDelivery.Create().SetID(id.New[id.Delivery]()).SetEndpointID(endpoint).SetEventID(event.ID).SetSubject("itm_1").
		SetDueAt(now).SetRetryUntil(now).SetCreatedAt(now).Exec(s.t.Context()))
	return endpoint.Public()
}

func TestAnotherSystemReceivesWhatHappens(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(c *config.Config) { c.WebhookNetworks = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} })
	s.start("api", "worker", "scheduler")
	admin := s.staff("hooks@example.com", "ADMIN")
	type event struct {
		Type string
		Data struct{ OrderID, Status string }
	}
	secret, events := make(chan string, 1), make(chan event, 16)
	door := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		key := <-secret
		secret <- key
		verifier, _ := standardwebhooks.NewWebhook(key)
		var got event
		if err != nil || verifier.Verify(body, r.Header) != nil || json.Unmarshal(body, &got) != nil {
			t.Errorf("a delivery cannot be verified: %s", body)
		}
		events <- got
	}))
	t.Cleanup(door.Close)

	var made struct {
		Made struct {
			Endpoint *struct{ ID string }
			Secret   string
			UserErrors
		}
	}
	s.ask(admin, `mutation($u: URL!) { made: createWebhookEndpoint(input: { url: $u, events: [ORDER_PLACED, ORDER_CANCELLED] }) {
		endpoint { id state } secret userErrors { code } } }`, map[string]any{"u": door.URL}).into(t, &made)
	if made.Made.Endpoint == nil || made.Made.Secret == "" {
		t.Fatalf("createWebhookEndpoint: %+v", made)
	}
	secret <- made.Made.Secret

	sale := s.seed(seed.Input{Users: 1, Stock: 5, PathTTL: 10 * time.Minute})
	p, err := s.place(sale.Users[0].AccessToken, order(sale.ItemID, sale.Users[0].Path))
	if err != nil || p.OrderTask == nil {
		t.Fatalf("placed %+v %v", p, err)
	}
	s.drained(sale.SaleID, 1)
	task, err := id.ParseTask(p.OrderTask.ID)
	if err != nil {
		t.Fatal(err)
	}
	orderID := id.Order(task).Public()
	s.ask(sale.Users[0].AccessToken, `mutation($o: ID!) { cancelOrder(input: { orderId: $o }) { userErrors { code } } }`, map[string]any{"o": orderID})
	for _, want := range []event{{Type: "order.placed"}, {Type: "order.cancelled"}} {
		select {
		case got := <-events:
			if got.Type != want.Type || got.Data.OrderID != orderID {
				t.Errorf("received %+v, want %s of %s", got, want.Type, orderID)
			}
		case <-time.After(testenv.Wait):
			t.Fatalf("%s did not arrive", want.Type)
		}
	}
	s.replayed(admin, made.Made.Endpoint.ID)
	if got := <-events; got.Data.OrderID != orderID {
		t.Errorf("received %+v after a replay", got)
	}
}

// replayed replays the newest delivery of an endpoint, once it is in the log as delivered.
func (s *site) replayed(token, endpoint string) {
	s.t.Helper()
	var log struct {
		WebhookDeliveries struct {
			Edges []struct{ Node struct{ ID, State string } }
		}
	}
	testenv.Eventually(s.t, testenv.Wait, func() bool {
		s.ask(token, `query($e: ID!) { webhookDeliveries(endpointId: $e, state: DELIVERED) { edges { node { id state } } } }`,
			map[string]any{"e": endpoint}).into(s.t, &log)
		return len(log.WebhookDeliveries.Edges) == 2
	}, "both deliveries are in the log")
	var done struct{ Done UserErrors }
	s.ask(token, `mutation($d: ID!) { done: replayWebhookDelivery(input: { deliveryId: $d }) { userErrors { code } } }`,
		map[string]any{"d": log.WebhookDeliveries.Edges[0].Node.ID}).into(s.t, &done)
	if why := done.Done.why(); why != "" {
		s.t.Fatalf("replay: %s", why)
	}
}

// inbound is a receiver that verifies signatures and keeps what it received by message id.
type inbound struct {
	mu       sync.Mutex
	verifier *standardwebhooks.Webhook // guarded by mu
	bodies   map[string]string         // guarded by mu; by id
	forged   int                       // guarded by mu
	changed  int                       // guarded by mu; ids that came again with another body
	requests int                       // guarded by mu
}

func (in *inbound) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	in.mu.Lock()
	defer in.mu.Unlock()
	in.requests++
	if err != nil || in.verifier == nil || in.verifier.Verify(body, r.Header) != nil {
		in.forged++
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	messageID := r.Header.Get(standardwebhooks.HeaderWebhookID)
	if before, again := in.bodies[messageID]; again && before != string(body) {
		in.changed++
	}
	in.bodies[messageID] = string(body)
}

// orders returns how often each order came under different ids.
func (in *inbound) orders(t testing.TB) map[string]int {
	t.Helper()
	in.mu.Lock()
	defer in.mu.Unlock()
	times := map[string]int{}
	for _, body := range in.bodies {
		var got struct {
			Type string
			Data struct{ OrderID string }
		}
		if err := json.Unmarshal([]byte(body), &got); err != nil || got.Type != "order.placed" {
			t.Fatalf("received %s (%v)", body, err)
		}
		times[got.Data.OrderID]++
	}
	return times
}

// Every process is killed again and again while orders are placed: each order is received
// under one id, with a signature of the library.
func TestEventsSurviveTheKillOfEveryProcess(t *testing.T) {
	t.Parallel()
	const buyers, rounds = 120, 3
	s := newSite(t)
	env := []string{"SECKILL_WEBHOOK_NETWORKS=127.0.0.0/8", "SECKILL_HTTP_ADDR=" + testenv.ReserveAddr(t)}
	api, worker := s.launch("api", env...), s.launch("worker,scheduler", env[:1]...)
	admin := s.staff("hooks@example.com", "ADMIN")
	in := &inbound{bodies: map[string]string{}}
	door := httptest.NewServer(in)
	t.Cleanup(door.Close)
	var made struct{ Made struct{ Secret string } }
	s.ask(admin, `mutation($u: URL!) { made: createWebhookEndpoint(input: { url: $u, events: [ORDER_PLACED] }) { secret } }`, map[string]any{"u": door.URL}).into(t, &made)
	verifier, err := standardwebhooks.NewWebhook(made.Made.Secret)
	if err != nil {
		t.Fatal(err)
	}
	in.mu.Lock()
	in.verifier = verifier
	in.mu.Unlock()
	sale := s.seed(seed.Input{Users: buyers, Stock: buyers, PathTTL: 10 * time.Minute}) // longer than the second after which events are written
	var load sync.WaitGroup
	slots := make(chan struct{}, 8)
	for i, u := range sale.Users {
		slots <- struct{}{}
		if i%(buyers/rounds) == buyers/rounds/2 {
			api.kill()
			worker.kill()
			worker = s.launch("worker,scheduler", env[:1]...)
			api = s.launch("api", env...)
		}
		load.Go(func() {
			defer func() { <-slots }()
			input := order(sale.ItemID, u.Path)
			testenv.Eventually(t, testenv.Wait, func() bool { // the same input, until the call is answered
				p, err := s.place(u.AccessToken, input)
				return err == nil && p.why() == ""
			}, "the buyer has an answer")
		})
	}
	load.Wait()
	s.drained(sale.SaleID, buyers)
	// What a killed process was sending is repeated when its lease is over: let the minute pass.
	if _, err := s.database().SQL.ExecContext(t.Context(), `UPDATE webhook_deliveries SET due_at = now() WHERE state = 'PENDING'`); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, testenv.Wait, func() bool { return len(in.orders(t)) == buyers }, "every order is received")
	for orderID, ids := range in.orders(t) {
		if ids != 1 {
			t.Errorf("%s came under %d ids", orderID, ids)
		}
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.forged > 0 || in.changed > 0 {
		t.Errorf("%d requests are not signed, %d ids came again with another body", in.forged, in.changed)
	}
	t.Logf("%d requests for %d events through %d kills of every process", in.requests, buyers, rounds)
}
