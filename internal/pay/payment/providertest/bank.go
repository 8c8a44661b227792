// Package providertest imitates the services of payment providers, for tests: each speaks
// its provider's protocol, checks the signatures of requests, and signs its replies and
// reports with keys made for the test. Behind all of them is the same bank. It is not part of
// the product, and does not prove how the real services behave.
package providertest

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"

	"seckill/internal/pay/payment"
	"seckill/internal/platform/id"
)

// Bank is the ledger behind an imitated service. It is safe for concurrent use.
type Bank struct {
	now     func() time.Time
	mu      sync.Mutex
	charges map[id.Payment]*Charge // guarded by mu
	back    map[id.Refund]back     // refunds by their id, guarded by mu
	byTx    map[string]id.Payment  // charges by their transaction, guarded by mu
}

// back is a refund in the ledger.
type back struct {
	of     id.Payment
	amount int64
	at     time.Time
}

// Charge is a payment in the ledger.
type Charge struct {
	Payment     id.Payment
	Phase       payment.Phase
	AmountMinor int64 // asked, and once paid what was received
	Currency    string
	ExpiresAt   time.Time
	Transaction string
	Refunded    int64
	Opened      bool // by the buyer
	PaidAt      time.Time
	Number      string // of the merchant; "" = that of Payment
	Unbilled    bool   // the bill lacks it
	Payer       string // means of payment; "" = Payer
}

// Refusals of the bank.
var (
	errUnknown = errors.New("no such charge")
	errTooMuch = errors.New("refund of more than was paid")
)

// NewBank returns an empty ledger.
func NewBank(now func() time.Time) *Bank {
	return &Bank{now: now, charges: map[id.Payment]*Charge{}, back: map[id.Refund]back{}, byTx: map[string]id.Payment{}}
}

// open adds a charge, unless it exists.
func (b *Bank) open(c Charge) Charge {
	b.mu.Lock()
	defer b.mu.Unlock()
	if known := b.charges[c.Payment]; known != nil {
		return *known
	}
	c.Phase = payment.PhaseOpen
	b.charges[c.Payment] = &c
	return c
}

// of returns a charge. One that was not paid in time is closed.
func (b *Bank) of(id id.Payment) (Charge, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.charges[id]
	if c == nil {
		return Charge{}, false
	}
	if c.Phase == payment.PhaseOpen && !c.ExpiresAt.IsZero() && !b.now().Before(c.ExpiresAt) {
		c.Phase = payment.PhaseClosed
	}
	return *c, true
}

func (b *Bank) byTransaction(transaction string) (Charge, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.charges[b.byTx[transaction]]; c != nil {
		return *c, true
	}
	return Charge{}, false
}

// close closes an open charge.
func (b *Bank) close(id id.Payment) (Charge, bool) {
	b.mu.Lock()
	if c := b.charges[id]; c != nil && c.Phase == payment.PhaseOpen {
		c.Phase = payment.PhaseClosed
	}
	b.mu.Unlock()
	return b.of(id)
}

func (b *Bank) refund(transaction string, id id.Refund, amount int64) error {
	c, ok := b.byTransaction(transaction)
	if !ok {
		return errUnknown
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	kept := b.charges[c.Payment]
	if before, again := b.back[id]; again {
		if before.amount != amount {
			return errTooMuch
		}
		return nil
	}
	if kept.Refunded+amount > kept.AmountMinor {
		return errTooMuch
	}
	kept.Refunded += amount
	b.back[id] = back{c.Payment, amount, b.now()}
	return nil
}

// refunds returns the ids of the refunds of a transaction.
func (b *Bank) refunds(transaction string) (ids []id.Refund) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, made := range b.back {
		if made.of == b.byTx[transaction] {
			ids = append(ids, id)
		}
	}
	return ids
}

// Open records that the buyer has seen the payment, without paying it.
func (b *Bank) Open(id id.Payment) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.charges[id].Opened = true
}

// Pay records money for a charge, also one that is closed: money can be on its way when a
// payment is closed. It reports whether the bank took it; a charge is paid once.
func (b *Bank) Pay(id id.Payment, amount int64, currency string) bool {
	return b.PayBy(id, amount, currency, "")
}

// PayBy is Pay with a means of payment; "" = Payer.
func (b *Bank) PayBy(id id.Payment, amount int64, currency, payer string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.charges[id]
	if c == nil || c.Phase == payment.PhasePaid {
		return false
	}
	c.Phase, c.AmountMinor, c.Currency, c.Opened, c.Payer = payment.PhasePaid, amount, currency, true, payer
	c.Transaction, c.PaidAt = "tx"+number(id), b.now()
	b.byTx[c.Transaction] = id
	return true
}

// Decline ends an open charge without money.
func (b *Bank) Decline(id id.Payment) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.charges[id]
	if c == nil || c.Phase != payment.PhaseOpen {
		return false
	}
	c.Phase, c.Opened = payment.PhaseDeclined, true
	return true
}

// Charge returns a charge.
func (b *Bank) Charge(id id.Payment) (Charge, bool) { return b.of(id) }

// Kept returns what the bank has received and not refunded, in minor units.
func (b *Bank) Kept() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	var sum int64
	for _, c := range b.charges {
		if c.Phase == payment.PhasePaid {
			sum += c.AmountMinor - c.Refunded
		}
	}
	return sum
}

// Service is an imitated service.
type Service interface {
	http.Handler
	// Report returns the signed report about a charge, as the service would send it to
	// the shop; ok is false when it reports nothing of the kind.
	Report(id string, c Charge) (header http.Header, body []byte, ok bool)
}

// maxBody bounds the bodies that are read, in bytes.
const maxBody = 64 << 10

// take returns the body of a request, which can be read again.
func take(r *http.Request) []byte {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return nil
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return body
}

func number[T ~[16]byte](id T) string {
	text := uuid.UUID(id).String()
	return text[:8] + text[9:13] + text[14:18] + text[19:23] + text[24:]
}

func parse(text string) id.Payment {
	ours, err := id.ParseUUID[id.Payment](text)
	if err != nil {
		return id.Payment{}
	}
	return ours
}

func minor(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return -1
	}
	return n
}
