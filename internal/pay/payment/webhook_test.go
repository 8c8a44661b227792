package payment_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"seckill/internal/buy/order"
	"seckill/internal/pay/payment"
	"seckill/internal/pay/payment/sandbox"
	"seckill/internal/platform/id"
	"seckill/internal/platform/stream"
)

// post sends a call-back and returns the status code of the reply.
func (s *shop) post(path string, body []byte, signature string) int {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.door.URL+path, bytes.NewReader(body))
	s.must(err)
	req.Header.Set(sandbox.SignatureHeader, signature)
	res, err := s.door.Client().Do(req)
	s.must(err)
	s.must(res.Body.Close())
	return res.StatusCode
}

// notice is a call-back of the bank about a payment.
func (s *shop) notice(p *payment.Payment, kind string) []byte {
	s.t.Helper()
	body, err := json.Marshal(map[string]any{
		"id": id.New[uuid.UUID]().String(), "type": kind, "payment": p.ID, "charge": id.New[uuid.UUID](), "transaction": "T1",
		"amountMinor": p.AmountMinor, "currency": p.Currency, "at": s.clock.Now(),
	})
	s.must(err)
	return body
}

const hook = "/webhooks/payments/sandbox"

// A call-back is authenticated and recorded once.
func TestOnlyTheProvidersCallbacksAreTaken(t *testing.T) {
	t.Parallel()
	s := newShop(t, 2)
	o := s.buy()
	p := s.begin(o, "key-1")
	now := s.clock.Now()
	body := s.notice(p, "charge.paid")
	good := s.signer.Sign(body, now)
	stranger, err := sandbox.NewSigner([]byte("the key of a stranger"))
	s.must(err)
	older, err := sandbox.NewSigner([]byte("the key before it"))
	s.must(err)
	for name, c := range map[string]struct {
		path      string
		body      []byte
		signature string
		want      int
	}{
		"no signature":        {hook, body, "", 401},
		"another's signature": {hook, body, stranger.Sign(body, now), 401},
		"another body":        {hook, append([]byte(" "), body...), good, 401},
		"too old":             {hook, body, s.signer.Sign(body, now.Add(-5*time.Minute-time.Second)), 401},
		"from the future":     {hook, body, s.signer.Sign(body, now.Add(5*time.Minute+time.Second)), 401},
		"another time":        {hook, body, "t=2" + good[3:], 401},
		"another scheme":      {hook, body, "v1=" + good, 401},
		"another provider":    {"/webhooks/payments/cash", body, good, 404},
		"no JSON":             {hook, []byte("{"), s.signer.Sign([]byte("{"), now), 400},
		"too long":            {hook, make([]byte, 65<<10), good, 400},
		"no payment":          {hook, []byte(`{"id":"x","type":"charge.paid"}`), s.signer.Sign([]byte(`{"id":"x","type":"charge.paid"}`), now), 400},
	} {
		if got := s.post(c.path, c.body, c.signature); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	if n := s.db.Ent.PaymentEvent.Query().CountX(t.Context()); n != 0 {
		t.Fatalf("%d events were stored", n)
	}
	other := []byte(`{"id":"x","type":"charge.reviewed"}`)
	for _, c := range []struct {
		body      []byte
		signature string
	}{{other, s.signer.Sign(other, now)}, {body, older.Sign(body, now)}, {body, good}} {
		if got := s.post(hook, c.body, c.signature); got != 200 {
			t.Errorf("%s: %d", c.body, got)
		}
	}
	if n := s.db.Ent.PaymentEvent.Query().CountX(t.Context()); n != 1 {
		t.Errorf("%d events were stored", n)
	}
	s.clock.Advance(10 * time.Second)
	if got := s.post(hook, body, "a guess"); got != 401 || !slices.Equal(s.forged, []int{1, 7}) {
		t.Errorf("%d; reports of forged call-backs: %v, want one, and one of the rest ten seconds later", got, s.forged)
	}
	s.step(s.pay.RetryEvents)
	s.wantOrder(o, order.Paid)
}

// Without storing the event, the reply is never 200.
func TestACallbackThatCannotBeStoredIsAskedForAgain(t *testing.T) {
	t.Parallel()
	s := newShop(t, 1)
	p := s.begin(s.buy(), "key-1")
	body := s.notice(p, "charge.paid")
	s.must(s.db.Close())
	if got := s.post(hook, body, s.signer.Sign(body, s.clock.Now())); got != 503 {
		t.Errorf("answer %d", got)
	}
}

func TestMessagesOfEventsThatMakeNoSenseAreSetAside(t *testing.T) {
	t.Parallel()
	s := newShop(t, 1)
	for _, payload := range []string{"", "{}", `{"v":2,"event":"01937b3c-0001-7abc-9def-0123456789ab"}`, `{"v":1}`} {
		if err := s.pay.Handle(stream.NewMessage("m", []byte(payload))); !stream.IsPermanent(err) || !errors.Is(err, payment.ErrMalformed) {
			t.Errorf("%q: %v", payload, err)
		}
	}
	msg, err := payment.Message(u("01937b3c-0001-7abc-9def-0123456789ab"))
	if want := `{"v":1,"event":"01937b3c-0001-7abc-9def-0123456789ab"}`; err != nil || string(msg.Payload) != want {
		t.Errorf("payload %s, %v, want %s", msg.Payload, err, want)
	}
}

// HeldSettled implements payment.Security.
func (s *shop) HeldSettled(_ context.Context, _ id.User, what string) {
	s.settled = append(s.settled, what)
}

// CallbacksForged implements payment.Security.
func (s *shop) CallbacksForged(_ context.Context, _ string, count int) {
	s.forged = append(s.forged, count)
}
