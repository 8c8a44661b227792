package webhook_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"

	"seckill/internal/outbox/webhook"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

func TestATestEventReachesOneEndpointOnly(t *testing.T) {
	onBoth(t, func(t *testing.T, e *env) {
		r, other := newReceiver(t), newReceiver(t)
		endpoint := e.register(r, webhook.StockLow)
		e.register(other)
		sent, err := e.service.SendTest(t.Context(), endpoint.ID)
		e.must(err)
		if sent.State != webhook.Pending || sent.Kind != webhook.Test || sent.Subject != endpoint.ID.Public() || len(sent.Payload) == 0 {
			t.Errorf("the log says %+v", sent)
		}
		e.step()
		if got := r.events(); len(got) != 1 || got[0].Type != webhook.Test || got[0].ID != sent.Event.Public() || other.attempts() != 0 {
			t.Errorf("received %+v; the other endpoint was asked %d times", got, other.attempts())
		}
		page, _, err := e.service.Events(t.Context(), webhook.EventsInput{Limit: 10})
		if e.must(err); len(page) != 0 {
			t.Errorf("readers of pages get %+v", page)
		}
		e.clock.Advance(webhook.KeepEvents + time.Hour)
		_, err = e.service.Purge(t.Context())
		e.must(err)
		if n, err := e.db.Ent.WebhookEvent.Query().Count(t.Context()); err != nil || n != 0 {
			t.Errorf("%d events are kept: %v", n, err)
		}
		kinds := []webhook.Kind{webhook.Test}
		if _, err := e.service.Update(t.Context(), id.User{}, endpoint.ID, webhook.EndpointInput{Kinds: &kinds}); fault.ReasonOf(err) != fault.InvalidInput {
			t.Errorf("an endpoint chooses tests: %v", err)
		}
		off := false
		_, err = e.service.Update(t.Context(), id.User{}, endpoint.ID, webhook.EndpointInput{Enabled: &off})
		e.must(err)
		if _, err := e.service.SendTest(t.Context(), endpoint.ID); fault.ReasonOf(err) != fault.Conflict {
			t.Errorf("a test of a disabled endpoint: %v", err)
		}
		if _, err := e.service.SendTest(t.Context(), id.Endpoint(uuid.New())); fault.ReasonOf(err) != fault.Unknown {
			t.Errorf("a test of no endpoint: %v", err)
		}
	})
}

// An endpoint that was disabled for a while gets what it missed: other endpoints made the events.
func TestThePeriodOfAnOutageIsReplayed(t *testing.T) {
	onBoth(t, func(t *testing.T, e *env) {
		r, other := newReceiver(t), newReceiver(t)
		endpoint := e.register(r, webhook.OrderPlaced)
		e.register(other)
		enable := func(on bool) {
			_, err := e.service.Update(t.Context(), id.User{}, endpoint.ID, webhook.EndpointInput{Enabled: &on})
			e.must(err)
		}
		since := e.clock.Now()
		at := func(n int, kind webhook.Kind) {
			e.fact(kind, "ord_a", n)
			e.step()
			e.clock.Advance(time.Minute)
		}
		at(1, webhook.OrderPlaced) // accepted
		enable(false)
		at(2, webhook.OrderPlaced) // missed
		at(3, webhook.StockLow)    // missed, and of a kind that it does not receive
		enable(true)
		r.answers(func(received) int { return http.StatusServiceUnavailable })
		at(4, webhook.OrderPlaced) // refused until it is given up
		e.clock.Advance(73 * time.Hour)
		e.step()
		until := e.clock.Now()
		r.answers(nil)
		enable(true)               // it was disabled after a day of failures
		at(5, webhook.OrderPlaced) // accepted, after the period
		if d := e.deliveries(endpoint); len(d) != 3 || d[1].State != webhook.GivenUp {
			t.Fatalf("%d deliveries before, the second is %+v", len(d), d[min(1, len(d)-1)])
		}

		in := webhook.RangeInput{Endpoint: endpoint.ID, Since: since, Until: until}
		replay := func(want int) {
			t.Helper()
			n, next, err := e.service.ReplayRange(t.Context(), in)
			if e.must(err); n != want || next != nil {
				t.Errorf("%d events are sent again, continued at %v; want %d", n, next, want)
			}
			e.step()
		}
		replay(2)
		if got := of(r.events(), "ord_a"); len(got) != 4 || got[2]+got[3] != 2+4 {
			t.Errorf("received %v, want 1 5 and then 2 and 4", got)
		}
		replay(0)
		in.All = true
		replay(3)
		if got := of(r.events(), "ord_a"); len(got) != 7 {
			t.Errorf("received %v, want 1, 2 and 4 again", got)
		}
		if n := other.attempts(); n != 5 {
			t.Errorf("the other endpoint was asked %d times", n)
		}

		in.Until = since
		if _, _, err := e.service.ReplayRange(t.Context(), in); fault.ReasonOf(err) != fault.InvalidInput {
			t.Errorf("a period without length: %v", err)
		}
		in.Until = until
		enable(false)
		if _, _, err := e.service.ReplayRange(t.Context(), in); fault.ReasonOf(err) != fault.Conflict {
			t.Errorf("a disabled endpoint: %v", err)
		}
	})
}
