package payment_test

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"seckill/internal/buy/order"
	"seckill/internal/pay/payment"
	"seckill/internal/pay/payment/providertest"
	"seckill/internal/platform/id"
)

var atEach = flag.Int("at-each", manyAtEach, "payments to make at each provider")

// abroad is a shop that is paid at an imitated provider over the network.
type abroad struct {
	*shop
	rig     providertest.Rig
	away    atomic.Bool // the provider answers nothing
	mu      sync.Mutex
	reports []report // on their way, in any order; guarded by mu
	kinds   map[string]int
}

// report is a report of the provider on its way. It is signed when it is sent.
type report struct {
	id     string
	charge providertest.Charge
}

// inMemory answers requests without a connection: the cost of many payments is that of the shop.
type inMemory http.HandlerFunc

func (serve inMemory) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		r.Body = http.NoBody
	}
	served := r.Clone(r.Context())
	if served.Host = r.Host; served.Host == "" {
		served.Host = r.URL.Host
	}
	served.RequestURI = r.URL.RequestURI()
	w := httptest.NewRecorder()
	serve(w, served)
	res := w.Result()
	res.Request = r
	return res, nil
}

// newAbroad returns the shop of the rig with a number, which counts from 0; false when
// there are fewer.
func newAbroad(t *testing.T, number int) (*abroad, bool) {
	t.Helper()
	s := newShop(t, 1)
	rigs := providertest.Rigs(s.clock.Now)
	if number >= len(rigs) {
		return nil, false
	}
	a := &abroad{shop: s, rig: rigs[number], kinds: map[string]int{}}
	client := &http.Client{Transport: inMemory(func(w http.ResponseWriter, r *http.Request) {
		if a.away.Load() {
			http.Error(w, "down", http.StatusServiceUnavailable)
			return
		}
		a.rig.Service.ServeHTTP(w, r)
	})}
	provider, err := a.rig.Provider(providertest.Address{Service: "http://provider.example", Shop: "https://shop.example", Client: client, Clock: s.clock})
	s.must(err)
	s.currency, s.flaky.Provider, s.flaky.whole = a.rig.Currency, provider, true
	if b, ok := provider.(payment.Biller); ok {
		s.provider = flakyBiller{s.flaky, b}
	}
	s.prompt.Store(true)
	s.restart()
	return a, true
}

// The books of every provider equal ours to the cent, whatever happens: payments that are
// declined, late, paid twice, of a wrong amount or currency; reports that are lost,
// repeated, out of order; calls that are lost; processes that are killed at a call; a
// provider that is away for an hour; refunds that are asked for and sent twice.
func TestBooksOfEveryProviderAgreeAfterManyPayments(t *testing.T) {
	t.Parallel()
	for number := range len(providertest.Rigs(time.Now)) {
		t.Run(fmt.Sprint(number), func(t *testing.T) {
			t.Parallel()
			began, all := time.Now(), 0
			for left := *atEach; left > 0; left -= perShop {
				a, _ := newAbroad(t, number)
				a.live(min(perShop, left))
				all += min(perShop, left)
			}
			t.Logf("%d payments in %s", all, time.Since(began).Round(time.Second))
		})
	}
}

// live makes payments in rushes, lets everything come to its end, and compares the books.
func (a *abroad) live(payments int) {
	a.newSale(2 * payments)
	a.flaky.lose(func(string) fate {
		if rand.IntN(25) != 0 {
			return fine
		}
		return fate(rand.IntN(allFates))
	})
	for left := payments; left > 0; left -= perRush {
		spread(min(perRush, left), func(int) { a.mortally(a.customer) })
		if left <= perRush || left == payments {
			a.outage()
		}
		a.deliver()
		a.turn()
	}
	a.flaky.lose(nil)
	for range 3 { // refunds follow reports, which follow queries
		a.deliver()
		a.clock.Advance(window)
		a.settleDown()
		a.decide()
	}
	a.reconcile()
	a.settleDown()
	a.compare()
}

// reconcile finds money whose report was lost after its payment was closed.
func (a *abroad) reconcile() {
	for day := opening.Truncate(24 * time.Hour); day.Before(a.clock.Now()); day = day.Add(24 * time.Hour) {
		_, err := a.pay.Reconcile(a.t.Context(), a.rig.Name, day)
		a.must(err)
	}
}

// mortally does something in a process that may be killed at a call.
func (a *abroad) mortally(do func()) {
	defer func() {
		if p := recover(); p != nil && p != errDied { //nolint:errorlint // what was thrown is the value itself
			panic(p)
		}
	}()
	do()
}

// turn runs every loop once. A killed process is replaced.
func (a *abroad) turn() {
	for _, step := range []func(){
		func() { a.step(a.pay.RetryEvents) }, func() { a.step(a.refund) }, func() { a.step(a.pay.ExpireOverdue) },
		func() { a.step(a.returner.Step) }, func() { a.step(a.check) },
	} {
		a.clock.Advance(time.Second)
		a.mortally(step)
	}
	a.restart()
}

// outage lets the provider be away for an hour.
func (a *abroad) outage() {
	a.away.Store(true)
	for range 12 {
		a.clock.Advance(5 * time.Minute)
		a.patientTurn()
	}
	a.away.Store(false)
}

// patientTurn runs every loop; their errors are those of a provider that is away.
func (a *abroad) patientTurn() {
	ctx := a.t.Context()
	a.mortally(func() { _, _ = a.pay.RetryEvents(ctx) })
	a.mortally(func() { _, _ = a.pay.ExpireOverdue(ctx) })
	a.mortally(func() { _, _ = a.check(ctx) })
	a.mortally(func() { _, _ = a.refund(ctx) })
	a.mortally(func() { _, _ = a.returner.Step(ctx) })
}

// customer buys a unit and pays it in one of the ways.
func (a *abroad) customer() {
	o := a.place(id.New[id.User](), 1+rand.IntN(2))
	if o == nil {
		a.t.Error("too few left")
		return
	}
	p := a.attempt(o, "key-1")
	if p == nil {
		return
	}
	charge, _ := a.rig.Charge(p.ID)
	kind := rand.IntN(20)
	switch {
	case kind < 9:
		a.count1("paid")
		a.rig.Pay(p.ID, charge.AmountMinor, charge.Currency)
	case kind < 11:
		a.count1("declined, then paid twice")
		a.rig.Decline(p.ID)
		a.report(p.ID)
		a.deliver()
		if again := a.attempt(o, "key-2"); again != nil {
			a.rig.Pay(again.ID, charge.AmountMinor, charge.Currency)
			a.report(again.ID)
		}
		a.rig.Pay(p.ID, charge.AmountMinor, charge.Currency)
	case kind < 13:
		a.count1("late")
		a.late(o, p, charge)
	case kind < 14:
		a.count1("wrong amount")
		a.rig.Pay(p.ID, charge.AmountMinor-1, charge.Currency)
	case kind < 15 && a.rig.Name != "alipay": // whose reports name no currency
		a.count1("wrong currency")
		a.rig.Pay(p.ID, charge.AmountMinor, "USD")
	case kind < 17:
		a.count1("refunded")
		a.rig.Pay(p.ID, charge.AmountMinor, charge.Currency)
		a.report(p.ID)
		a.deliver()
		for range 2 {
			units := 1 + rand.IntN(o.Quantity)
			_, _ = a.pay.AskRefund(a.t.Context(), payment.RefundRequest{Order: o.ID, User: o.User, Quantity: &units, Reason: "x", IdempotencyKey: id.New[uuid.UUID]().String()})
		}
	case kind < 18:
		a.count1("declined")
		a.rig.Decline(p.ID)
	default:
		a.count1("not paid")
		return
	}
	a.report(p.ID)
	if rand.IntN(20) == 0 {
		_, _ = a.pay.Cancel(a.t.Context(), o.ID, o.User, "")
	}
}

// attempt begins a payment, also when replies are lost.
func (a *abroad) attempt(o *order.Order, key string) *payment.Payment {
	for range 5 {
		paying, err := a.pay.Pay(a.t.Context(), payment.PayInput{Order: o.ID, User: o.User, Provider: a.rig.Name, IdempotencyKey: key})
		if err == nil {
			return paying.Payment
		}
	}
	return nil // the buyer stops trying
}

// late cancels the order while its money is on its way.
func (a *abroad) late(o *order.Order, p *payment.Payment, c providertest.Charge) {
	_, _ = a.pay.Cancel(a.t.Context(), o.ID, o.User, "")
	a.rig.Pay(p.ID, c.AmountMinor, c.Currency)
}

// report sends the provider's report on its way: one in ten is lost, one in ten is there
// twice.
func (a *abroad) report(p id.Payment) {
	charge, ok := a.rig.Charge(p)
	if !ok {
		return
	}
	r := report{"evt_" + id.New[uuid.UUID]().String(), charge}
	copies := 1
	switch rand.IntN(10) {
	case 0:
		copies = 0
	case 1:
		copies = 2
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for range copies {
		a.reports = append(a.reports, r)
	}
}

// deliver delivers the reports in any order; some are refused and sent again.
func (a *abroad) deliver() {
	a.mu.Lock()
	reports := a.reports
	a.reports = nil
	a.mu.Unlock()
	rand.Shuffle(len(reports), func(i, j int) { reports[i], reports[j] = reports[j], reports[i] })
	handler := a.pay.Webhooks()
	for _, r := range reports {
		header, body, ok := a.rig.Service.Report(r.id, r.charge)
		if !ok {
			continue
		}
		a.mortally(func() {
			req := httptest.NewRequestWithContext(a.t.Context(), http.MethodPost, "/webhooks/payments/"+a.rig.Name, bytes.NewReader(body))
			req.Header = header
			res := httptest.NewRecorder()
			handler.ServeHTTP(res, req)
			if res.Code >= http.StatusBadRequest && res.Code != http.StatusServiceUnavailable {
				a.t.Errorf("a report got %d: %s", res.Code, res.Body)
			}
		})
	}
}

// decide lets operators decide on what waits for them, twice.
func (a *abroad) decide() {
	ctx, operator := a.t.Context(), id.New[id.User]()
	rows, err := a.books.QueryContext(ctx, `SELECT id FROM refunds WHERE status = 'REQUESTED'`)
	a.must(err)
	defer func() { _ = rows.Close() }()
	var refunds []id.Refund
	for rows.Next() {
		var refund id.Refund
		a.must(rows.Scan(&refund))
		refunds = append(refunds, refund)
	}
	a.must(rows.Err())
	for _, refund := range refunds {
		for range 2 {
			_, err := a.pay.DecideRefund(ctx, payment.Decision{Refund: refund, Operator: operator, Approve: true})
			a.must(unlessRefused(err))
		}
	}
	for held, err := a.pay.HeldEvents(ctx, payment.HeldList{Limit: 1000}); ; held, err = a.pay.HeldEvents(ctx, payment.HeldList{Limit: 1000}) {
		a.must(err)
		if len(held) == 0 {
			return
		}
		for _, h := range held {
			_, err := a.pay.ReturnHeld(ctx, h.ID, operator, "does not match")
			a.must(err)
		}
	}
}

// loose counts what has not come to its end.
const loose = `
SELECT (SELECT count(*) FROM payment_events WHERE state <> 'HANDLED') + (SELECT count(*) FROM refunds WHERE status IN ('REQUESTED', 'SENDING'))
     + (SELECT count(*) FROM orders WHERE status = 'PENDING_PAYMENT' OR return_due) + (SELECT count(*) FROM payments WHERE status IN ('CREATING', 'PENDING'))`

// compare compares the provider's books with ours, in all and payment by payment.
func (a *abroad) compare() {
	a.t.Helper()
	ours := int64(a.count(`SELECT COALESCE(sum(p.amount_minor - o.refunded_quantity * o.unit_price_minor), 0) FROM payments p JOIN orders o ON o.id = p.order_id
		WHERE p.status = 'SUCCEEDED' AND o.status = 'PAID'`, everything))
	a.t.Logf("%s: %v; it keeps %d, and we %d", a.rig.Name, a.kinds, a.rig.Kept(), ours)
	if wrong, open := a.count(wrong, everything), a.count(loose, everything); wrong+open != 0 {
		a.t.Errorf("%s: %d things are wrong, %d did not come to their end", a.rig.Name, wrong, open)
	}
	if ours != a.rig.Kept() {
		a.t.Errorf("%s keeps %d, and we %d", a.rig.Name, a.rig.Kept(), ours)
	}
	rows, err := a.books.QueryContext(a.t.Context(), `SELECT p.id, p.status, o.status, p.amount_minor - o.refunded_quantity * o.unit_price_minor FROM payments p JOIN orders o ON o.id = p.order_id`)
	a.must(err)
	defer rows.Close()
	for rows.Next() {
		var p id.Payment
		var status, of string
		var left int64
		a.must(rows.Scan(&p, &status, &of, &left))
		c, _ := a.rig.Charge(p)
		kept, should := int64(0), int64(0)
		if c.Phase == payment.PhasePaid {
			kept = c.AmountMinor - c.Refunded
		}
		if status == string(payment.Succeeded) && of == string(order.Paid) {
			should = left
		}
		if kept != should {
			a.t.Errorf("payment %s is %s, its order %s, and the provider keeps %d", p, status, of, kept)
		}
	}
	a.must(rows.Err())
}

func (a *abroad) count1(kind string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.kinds[kind]++
}
