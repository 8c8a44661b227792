package providertest

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"seckill/internal/pay/payment"
	"seckill/internal/platform/id"
)

// SignedSecret is the secret of the imitated service over signed HTTP.
var SignedSecret = []byte("the secret of a payment service")

// Signed imitates a service over signed HTTP.
type Signed struct {
	*Bank
	signer *standardwebhooks.Webhook
}

// NewSigned returns the service on a bank.
func NewSigned(b *Bank) *Signed {
	signer, _ := standardwebhooks.NewWebhookRaw(SignedSecret) // it checks nothing
	return &Signed{b, signer}
}

func (s *Signed) sign(header http.Header, id string, body []byte) {
	now := s.now()
	signature, _ := s.signer.Sign(id, now, body)
	header.Set(standardwebhooks.HeaderWebhookID, id)
	header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	header.Set(standardwebhooks.HeaderWebhookSignature, signature)
}

// ServeHTTP answers create, query, close and refund.
func (s *Signed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body := take(r)
	var in struct {
		Payment, Refund, Transaction, Currency string
		AmountMinor                            int64
		ExpiresAt                              time.Time
	}
	if s.signer.VerifyIgnoringTimestamp(body, r.Header) != nil || json.Unmarshal(body, &in) != nil {
		http.Error(w, "not signed", http.StatusUnauthorized)
		return
	}
	var reply any = struct{}{}
	paymentID := parse(in.Payment)
	switch r.URL.Path {
	case "/create":
		s.open(Charge{Payment: paymentID, AmountMinor: in.AmountMinor, Currency: in.Currency, ExpiresAt: in.ExpiresAt})
		reply = map[string]string{"ref": in.Payment, "redirectUrl": "https://pay.example/" + in.Payment}
	case "/query":
		reply = signedState(s.of(paymentID))
	case "/close":
		reply = signedState(s.close(paymentID))
	case "/refund":
		if err := s.refund(in.Transaction, id.Refund(parse(in.Refund)), in.AmountMinor); err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
			return
		}
	}
	text, _ := json.Marshal(reply)
	s.sign(w.Header(), r.Header.Get(standardwebhooks.HeaderWebhookID), text)
	_, _ = w.Write(text)
}

func signedState(c Charge, ok bool) any {
	if !ok {
		return map[string]string{"phase": string(payment.PhaseUnknown)}
	}
	return map[string]any{"phase": c.Phase, "ref": c.Payment, "transaction": c.Transaction, "amountMinor": c.AmountMinor,
		"currency": c.Currency, "payer": cmp.Or(c.Payer, Payer)}
}

// ReportRefund returns a webhook about how much went back of a charge.
func (s *Signed) ReportRefund(id string, c Charge, back int64) (http.Header, []byte) {
	body, _ := json.Marshal(map[string]any{
		"type": "payment.refunded", "payment": c.Payment, "ref": c.Payment, "transaction": c.Transaction,
		"amountMinor": c.AmountMinor, "refundedMinor": back,
		"currency": c.Currency, "at": s.now(),
	})
	header := http.Header{}
	s.sign(header, id, body)
	return header, body
}

// Report returns a webhook.
func (s *Signed) Report(id string, c Charge) (http.Header, []byte, bool) {
	kind, ok := map[payment.Phase]string{
		payment.PhasePaid: "payment.succeeded", payment.PhaseDeclined: "payment.declined",
		payment.PhaseClosed: "payment.closed",
	}[c.Phase]
	body, _ := json.Marshal(map[string]any{
		"type": kind, "payment": c.Payment, "ref": c.Payment, "transaction": c.Transaction, "amountMinor": c.AmountMinor,
		"currency": c.Currency, "at": s.now(),
		"payer": cmp.Or(c.Payer, Payer),
	})
	header := http.Header{}
	s.sign(header, id, body)
	return header, body, ok
}
