package webhook_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"seckill/ent"
	"seckill/internal/outbox/webhook"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

func TestEventsAreSignedAndDelivered(t *testing.T) {
	onBoth(t, func(t *testing.T, e *env) {
		r := newReceiver(t)
		e.register(r)
		e.fact(webhook.OrderPlaced, "ord_a", 1)
		e.fact(webhook.SaleStateChanged, "sal_a", 2)
		e.step()
		e.step() // changes nothing
		got := map[webhook.Kind]received{}
		for _, one := range r.events() {
			got[one.Type] = one
		}
		placed, changed := got[webhook.OrderPlaced], got[webhook.SaleStateChanged]
		if placed.Data.N != 1 || changed.Data.N != 2 || r.attempts() != 2 {
			t.Errorf("received %+v with %d attempts, want each event once", got, r.attempts())
		}
		if !strings.HasPrefix(placed.ID, "evt_") || placed.ID == changed.ID {
			t.Errorf("ids %q and %q, want one for each event", placed.ID, changed.ID)
		}
	})
}

func TestNoLaterEventOfAnOrderIsSentBeforeAnEarlierOne(t *testing.T) {
	onBoth(t, func(t *testing.T, e *env) {
		r := newReceiver(t)
		e.register(r)
		down := true
		r.answers(func(got received) int {
			if down && got.Data.Subject == "ord_a" && got.Type == webhook.OrderPlaced {
				return http.StatusServiceUnavailable
			}
			return http.StatusOK
		})
		e.fact(webhook.OrderPlaced, "ord_a", 1)
		e.fact(webhook.OrderPlaced, "ord_b", 1)
		e.fact(webhook.OrderPaid, "ord_a", 2)
		e.fact(webhook.OrderPaid, "ord_b", 2)
		e.fact(webhook.OrderRefunded, "ord_a", 3)
		e.step()
		if got := of(r.events(), "ord_a"); len(got) != 0 {
			t.Errorf("received %v of an order whose first event failed", got)
		}
		if got := of(r.events(), "ord_b"); !slices.Equal(got, []int{1, 2}) {
			t.Errorf("received %v of another order, want both", got)
		}
		down = false
		e.clock.Advance(10 * time.Second)
		e.step()
		if got := of(r.events(), "ord_a"); !slices.Equal(got, []int{1, 2, 3}) {
			t.Errorf("received %v, want the events in their order", got)
		}
	})
}

// of returns the numbers of the events of a subject, in the order of their arrival.
func of(events []received, subject string) (numbers []int) {
	for _, e := range events {
		if e.Data.Subject == subject {
			numbers = append(numbers, e.Data.N)
		}
	}
	return numbers
}

func TestNothingIsWrittenWithoutAnEndpoint(t *testing.T) {
	onBoth(t, func(t *testing.T, e *env) {
		written := func() int {
			n, err := e.db.Ent.WebhookEvent.Query().Count(t.Context())
			e.must(err)
			return n
		}
		e.fact(webhook.OrderPlaced, "ord_a", 1)
		endpoint := e.register(newReceiver(t), webhook.OrderPaid)
		e.fact(webhook.OrderPlaced, "ord_a", 1)
		if n := written(); n != 0 {
			t.Errorf("%d events are written that no endpoint receives", n)
		}
		e.fact(webhook.OrderPaid, "ord_a", 2)
		if n := written(); n != 1 {
			t.Errorf("%d events are written, want the one that an endpoint receives", n)
		}
		no := false
		_, err := e.service.Update(t.Context(), id.User{}, endpoint.ID, webhook.EndpointInput{Enabled: &no})
		e.must(err)
		e.fact(webhook.OrderPaid, "ord_b", 2)
		if n := written(); n != 1 {
			t.Errorf("%d events are written while the only endpoint is disabled", n)
		}
	})
}

func TestAnotherProcessLearnsOfAnEndpointWithinASecond(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.fact(webhook.OrderPlaced, "ord_a", 1)
	r := newReceiver(t)
	elsewhere := *e
	elsewhere.service = newService(t, e.db, e.clock, nil)
	elsewhere.register(r)
	e.clock.Advance(time.Second)
	e.fact(webhook.OrderPlaced, "ord_b", 1)
	e.step()
	if got := of(r.events(), "ord_b"); len(got) != 1 {
		t.Errorf("received %v a second after the endpoint was added, want the event", r.events())
	}
}

func TestAnEventOfARolledBackFactIsNotSent(t *testing.T) {
	onBoth(t, func(t *testing.T, e *env) {
		r := newReceiver(t)
		e.register(r)
		err := e.db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) error {
			if err := e.outbox.Write(ctx, tx, webhook.OrderPaid, func() []webhook.Event {
				return []webhook.Event{{Kind: webhook.OrderPaid, Subject: "ord_a", At: e.clock.Now()}}
			}); err != nil {
				return err
			}
			return fault.Refused{Why: fault.Conflict}
		})
		if fault.ReasonOf(err) != fault.Conflict {
			t.Fatal(err)
		}
		e.step()
		if r.attempts() != 0 {
			t.Error("an event is sent whose fact was rolled back")
		}
	})
}

func TestADeliveryIsRepeatedLessAndLessOftenForThreeDays(t *testing.T) {
	t.Parallel()
	e := setup(t)
	r := newReceiver(t)
	endpoint := e.register(r)
	r.answers(func(received) int { return http.StatusInternalServerError })
	e.fact(webhook.OrderPlaced, "ord_a", 1)
	began := e.clock.Now()
	var waits []time.Duration
	for last := began; ; {
		e.step()
		d := e.deliveries(endpoint)[0]
		if d.State == webhook.GivenUp {
			break
		}
		if d.StatusCode != http.StatusInternalServerError || d.Attempts != r.attempts() {
			t.Fatalf("the log says %+v after %d attempts", d, r.attempts())
		}
		waits = append(waits, d.DueAt.Sub(last).Round(time.Second))
		last = e.clock.Advance(d.DueAt.Sub(e.clock.Now()))
		// A day of failures disables the endpoint; an administrator enables it again.
		yes := true
		_, err := e.service.Update(t.Context(), id.User{}, endpoint.ID, webhook.EndpointInput{Enabled: &yes})
		e.must(err)
	}
	for i := 1; i < len(waits); i++ {
		if waits[i] < waits[i-1] {
			t.Errorf("waits %v, want each at least as long as the one before", waits)
		}
	}
	if waits[0] != 5*time.Second || waits[len(waits)-1] != 6*time.Hour {
		t.Errorf("waits %v, want 5 s to 6 h", waits)
	}
	if after := e.clock.Now().Sub(began); after < 66*time.Hour || after > 72*time.Hour {
		t.Errorf("given up after %s, want about three days", after)
	}
}

func TestAnEndpointIsDisabledAfterADayOfFailures(t *testing.T) {
	onBoth(t, func(t *testing.T, e *env) {
		r := newReceiver(t)
		endpoint := e.register(r)
		r.answers(func(received) int { return http.StatusBadGateway })
		e.fact(webhook.OrderPlaced, "ord_a", 1)
		for range 30 {
			e.step()
			e.clock.Advance(time.Hour)
			if e.endpoint(endpoint.ID).State == webhook.Disabled {
				break
			}
			if since := e.endpoint(endpoint.ID).FailingSince; since == nil {
				t.Fatal("the endpoint does not show that it fails")
			}
		}
		got := e.endpoint(endpoint.ID)
		if got.State != webhook.Disabled || got.Reason == "" || e.clock.Now().Sub(*got.FailingSince) < 24*time.Hour {
			t.Fatalf("after a day of failures the endpoint is %+v", got)
		}
		tries := r.attempts()
		e.clock.Advance(10 * time.Hour)
		e.step()
		if r.attempts() != tries {
			t.Error("a disabled endpoint receives requests")
		}
		r.answers(nil)
		yes := true
		_, err := e.service.Update(t.Context(), id.User{}, endpoint.ID, webhook.EndpointInput{Enabled: &yes})
		e.must(err)
		e.step()
		if got := r.events(); len(got) != 1 {
			t.Errorf("received %v after the endpoint is enabled again, want the event that waits", got)
		}
	})
}

func TestASuccessEndsTheDayOfFailures(t *testing.T) {
	t.Parallel()
	e := setup(t)
	r := newReceiver(t)
	endpoint := e.register(r)
	r.answers(func(got received) int {
		if got.Data.Subject == "ord_bad" {
			return http.StatusBadRequest
		}
		return http.StatusOK
	})
	e.fact(webhook.OrderPlaced, "ord_bad", 1)
	for i := range 30 {
		e.fact(webhook.OrderPlaced, "ord_good", i)
		e.step()
		e.clock.Advance(time.Hour)
	}
	if got := e.endpoint(endpoint.ID); got.State != webhook.Enabled {
		t.Errorf("one event that is refused disables the endpoint: %+v", got)
	}
}

func TestGoneDisablesTheEndpointAtOnce(t *testing.T) {
	t.Parallel()
	e := setup(t)
	r := newReceiver(t)
	endpoint := e.register(r)
	r.answers(func(received) int { return http.StatusGone })
	e.fact(webhook.OrderPlaced, "ord_a", 1)
	e.step()
	if got := e.endpoint(endpoint.ID); got.State != webhook.Disabled || !strings.Contains(got.Reason, "410") {
		t.Errorf("after 410 the endpoint is %+v", got)
	}
}

func TestBothSecretsSignForADayAfterARotation(t *testing.T) {
	t.Parallel()
	e := setup(t)
	r := newReceiver(t) // keeps the first secret
	endpoint := e.register(r)
	_, second, err := e.service.Rotate(t.Context(), id.User{}, endpoint.ID)
	e.must(err)
	if second == r.secret || !strings.HasPrefix(second, "whsec_") {
		t.Fatalf("the new secret is %q", second)
	}
	e.fact(webhook.OrderPlaced, "ord_a", 1)
	e.step()
	r.mu.Lock()
	r.secret = second
	r.mu.Unlock()
	e.fact(webhook.OrderPlaced, "ord_b", 1)
	e.step()
	e.clock.Advance(25 * time.Hour)
	var signatures string
	r.mu.Lock()
	r.sleep = func(req *http.Request) { signatures = req.Header.Get("webhook-signature") }
	r.mu.Unlock()
	e.fact(webhook.OrderPlaced, "ord_c", 1)
	e.step()
	if n := len(r.events()); n != 3 {
		t.Errorf("%d of 3 deliveries are verified by a secret of the endpoint", n)
	}
	if strings.Contains(signatures, " ") {
		t.Error("the former secret signs a day later")
	}
}

func TestADeliveryIsReplayedWithTheSameEventID(t *testing.T) {
	onBoth(t, func(t *testing.T, e *env) {
		r := newReceiver(t)
		endpoint := e.register(r)
		e.fact(webhook.OrderPlaced, "ord_a", 1)
		e.step()
		d := e.deliveries(endpoint)[0]
		if d.State != webhook.Delivered || d.Kind != webhook.OrderPlaced || d.StatusCode != http.StatusOK || len(d.Payload) == 0 {
			t.Fatalf("the log says %+v", d)
		}
		again, err := e.service.Replay(t.Context(), d.ID)
		e.must(err)
		if again.State != webhook.Pending {
			t.Errorf("a replayed delivery is %s", again.State)
		}
		e.step()
		if got := r.events(); len(got) != 2 || got[0].ID != got[1].ID {
			t.Errorf("received %+v, want the event twice with one id", got)
		}
		if _, err := e.service.Replay(t.Context(), id.Delivery(uuid.New())); fault.ReasonOf(err) != fault.Unknown {
			t.Errorf("replay of no delivery: %v", err)
		}
		_, err = e.service.Delete(t.Context(), id.User{}, endpoint.ID)
		e.must(err)
		if _, err := e.service.Replay(t.Context(), d.ID); fault.ReasonOf(err) != fault.Conflict {
			t.Errorf("replay to a deleted endpoint: %v", err)
		}
	})
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	e := setup(t)
	r := newReceiver(t)
	door := httptest.NewServer(http.RedirectHandler(r.server.URL, http.StatusTemporaryRedirect))
	t.Cleanup(door.Close)
	endpoint, _, err := e.service.Create(t.Context(), id.User{}, webhook.EndpointInput{URL: &door.URL})
	e.must(err)
	e.fact(webhook.OrderPlaced, "ord_a", 1)
	e.step()
	if d := e.deliveries(endpoint)[0]; r.attempts() != 0 || d.StatusCode != http.StatusTemporaryRedirect || d.State != webhook.Pending {
		t.Errorf("after a redirect: %+v, %d requests at its target", d, r.attempts())
	}
}

func TestOldRowsArePurged(t *testing.T) {
	onBoth(t, func(t *testing.T, e *env) {
		r := newReceiver(t)
		endpoint := e.register(r)
		gone := e.register(newReceiver(t), webhook.StockLow)
		_, err := e.service.Delete(t.Context(), id.User{}, gone.ID)
		e.must(err)
		e.fact(webhook.OrderPlaced, "ord_a", 1)
		e.step()
		count := func() (events, deliveries, endpoints int) {
			events, err := e.db.Ent.WebhookEvent.Query().Count(t.Context())
			e.must(err)
			deliveries, err = e.db.Ent.WebhookDelivery.Query().Count(t.Context())
			e.must(err)
			endpoints, err = e.db.Ent.WebhookEndpoint.Query().Count(t.Context())
			e.must(err)
			return events, deliveries, endpoints
		}
		_, err = e.service.Purge(t.Context())
		e.must(err)
		if ev, d, en := count(); ev != 1 || d != 1 || en != 1 {
			t.Errorf("left %d events, %d deliveries, %d endpoints at once, want one each", ev, d, en)
		}
		e.clock.Advance(19 * 24 * time.Hour)
		_, err = e.service.Purge(t.Context())
		e.must(err)
		if ev, d, en := count(); ev != 0 || d != 0 || en != 1 {
			t.Errorf("left %d events, %d deliveries, %d endpoints later, want the endpoint", ev, d, en)
		}
		if got := e.endpoint(endpoint.ID); got.State != webhook.Enabled {
			t.Errorf("the endpoint is %+v", got)
		}
	})
}

// deliveries returns the delivery log of an endpoint, newest first.
func (e *env) deliveries(endpoint *webhook.Endpoint) []*webhook.Delivery {
	e.t.Helper()
	page, _, err := e.service.Deliveries(e.t.Context(), webhook.DeliveriesInput{Endpoint: endpoint.ID, Limit: 100})
	e.must(err)
	return page
}

func (e *env) endpoint(id id.Endpoint) *webhook.Endpoint {
	e.t.Helper()
	all, err := e.service.Endpoints(e.t.Context())
	e.must(err)
	i := slices.IndexFunc(all, func(p *webhook.Endpoint) bool { return p.ID == id })
	if i < 0 {
		e.t.Fatalf("no endpoint %s among %d", id, len(all))
	}
	return all[i]
}
