package payment_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"seckill/ent"
	"seckill/ent/refund"
	entsale "seckill/ent/sale"
	"seckill/internal/buy/order"
	"seckill/internal/buy/reservation"
	"seckill/internal/buy/sale"
	"seckill/internal/buy/waitlist"
	"seckill/internal/pay/payment"
	"seckill/internal/pay/payment/providertest"
	"seckill/internal/pay/payment/stripe"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/stream"
	"seckill/internal/testenv"
)

// raffle is a draw whose entries need a card, at an imitated Stripe.
type raffle struct {
	*shop

	cards  *providertest.Cards
	closes time.Time
	window time.Duration // of the first draw of a crash test
	events int
	read   string // position in the stream of orders
}

// newRaffle returns a draw of units whose entries close after some time.
func newRaffle(t *testing.T, units int, entries time.Duration) *raffle {
	t.Helper()
	s := newShop(t, units)
	r := &raffle{shop: s, cards: providertest.NewCards(s.clock.Now), closes: opening.Add(entries), read: "-"}
	client := &http.Client{Transport: inMemory(r.cards.ServeHTTP)}
	provider := stripe.New(stripe.Config{Key: "sk_test_1", PublishableKey: "pk_test_1", WebhookSecret: providertest.StripeSecret,
		APIURL: "http://provider.example", Client: client, Clock: s.clock})
	s.flaky.Provider, s.flaky.whole = provider, true
	s.provider = flakyAuthorizer{s.flaky, provider, provider}
	s.prompt.Store(true)
	r.rise()
	r.rules()
	return r
}

// rules makes the sale a draw.
func (r *raffle) rules() {
	r.t.Helper()
	r.must(r.db.WithTx(r.t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		return tx.Sale.Update().Where(entsale.ID(r.sale)).SetEntrySeconds(int(r.closes.Sub(opening) / time.Second)).
			SetAuthorizeEntries(true).SetOfferSeconds(24 * 3600).SetEndsAt(r.closes.Add(48 * time.Hour)).Exec(ctx)
	}))
}

// rise replaces the processes.
func (r *raffle) rise() {
	r.draws = waitlist.New(waitlist.Config{DB: r.db, Gate: r.gate(), Timeout: testenv.Wait, Clock: r.clock, Log: quiet})
	r.restart()
}

func (r *raffle) gate() *reservation.Gate {
	return reservation.NewGate(reservation.GateConfig{Client: r.conn.Script, Keys: r.keys, Timeout: testenv.Wait, Log: quiet})
}

func (r *raffle) enter() *waitlist.Entry {
	r.t.Helper()
	user := id.New[id.User]()
	e, err := r.draws.Join(r.t.Context(), waitlist.JoinInput{Sale: r.sale, Item: r.item, User: user, Quantity: 1, Waived: true,
		Nonce: "nonce of " + user.String(), Closes: r.closes, Card: true})
	r.must(err)
	return e
}

func (r *raffle) authorize(e *waitlist.Entry, key string) *payment.Payment {
	r.t.Helper()
	p, err := r.pay.Authorize(r.t.Context(), payment.AuthorizeInput{Entry: e.ID, User: e.User, IdempotencyKey: key})
	r.must(err)
	return p
}

// confirm is the buyer with a card, and Stripe's report of it.
func (r *raffle) confirm(p *payment.Payment, card string) {
	r.t.Helper()
	if !r.cards.Confirm(p.ID, card) {
		r.t.Fatal("not open at the provider")
	}
	r.report(p)
}

func (r *raffle) report(p *payment.Payment) {
	r.t.Helper()
	r.events++
	header, body := r.cards.Report(fmt.Sprint("evt_", r.events), p.ID)
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.door.URL+"/webhooks/payments/stripe", bytes.NewReader(body))
	r.must(err)
	req.Header = header
	res, err := r.door.Client().Do(req)
	r.must(err)
	r.must(res.Body.Close())
	if res.StatusCode != http.StatusOK {
		r.t.Fatalf("call-back: %s", res.Status)
	}
}

// in adds entries whose cards are authorized.
func (r *raffle) in(n int) (entries []*waitlist.Entry, payments []*payment.Payment) {
	r.t.Helper()
	for i := range n {
		e := r.enter()
		p := r.authorize(e, "key-1")
		r.confirm(p, fmt.Sprint("card-", i))
		entries, payments = append(entries, e), append(payments, p)
	}
	return entries, payments
}

// drawn closes the entries, draws, and makes the offers.
func (r *raffle) drawn() {
	r.t.Helper()
	if left := r.closes.Sub(r.clock.Now()); left > 0 {
		r.clock.Advance(left)
	}
	r.step(r.draws.DrawStep)
	r.step(r.draws.Step)
}

// drain writes the orders of the stream, as a worker does.
func (r *raffle) drain() {
	r.t.Helper()
	read, err := r.conn.Cmd.XRange(r.t.Context(), r.keys.Orders(id.ShardOf(r.sale)), r.read, "+").Result()
	r.must(err)
	for _, m := range read {
		name, _ := m.Values[stream.FieldID].(string)
		text, _ := m.Values[stream.FieldPayload].(string)
		requests, err := order.Decode(stream.NewMessage(name, []byte(text)))
		r.must(err)
		for _, request := range requests {
			_, err := patiently(func() (order.Result, error) {
				end := r.writer.Write(r.t.Context(), request)[0]
				return end, end.Err
			})
			r.must(err)
		}
	}
}

// pass runs every loop once, and lets time pass.
func (r *raffle) pass() {
	r.t.Helper()
	r.clock.Advance(5 * time.Second)
	r.drain()
	for _, step := range []func(context.Context) (map[string]int, error){
		r.draws.Step, r.pay.FollowEntries, r.check, r.pay.RetryEvents, r.refund, r.pay.ExpireOverdue, r.returner.Step,
	} {
		r.step(step)
	}
}

func (r *raffle) passes() {
	r.t.Helper()
	for range 6 {
		r.pass()
	}
}

// passes that a process may not survive; a provider that did not answer is asked again.
func (r *raffle) tryPass() {
	r.t.Helper()
	r.clock.Advance(time.Minute)
	r.survives(r.drain)
	for _, step := range []func(context.Context) (map[string]int, error){
		r.draws.Step, r.pay.FollowEntries, r.check, r.pay.RetryEvents, r.refund, r.pay.ExpireOverdue, r.returner.Step,
	} {
		r.survives(func() {
			_, err := step(r.t.Context())
			if err != nil && strings.Contains(err.Error(), "panic: "+errDied.Error()) {
				panic(errDied)
			}
		})
	}
}

func (r *raffle) entry(e *waitlist.Entry, status waitlist.Status, card waitlist.Card) *waitlist.Entry {
	r.t.Helper()
	now, err := r.draws.Entry(r.t.Context(), e.ID)
	r.must(err)
	if now.Status != status || now.Card != card {
		r.t.Errorf("entry is %s with card %s, want %s with %s", now.Status, now.Card, status, card)
	}
	return now
}

// held checks how many cards are held and charged at the provider.
func (r *raffle) held(held, charged int) {
	r.t.Helper()
	if h, c := r.cards.Held(); h != held || c != charged {
		r.t.Errorf("%d cards are held and %d charged, want %d and %d", h, c, held, charged)
	}
}

// Both windows: money is held for the short one, the card is saved for the long one.
func eachHold(t *testing.T, units int, test func(t *testing.T, r *raffle)) {
	t.Parallel()
	for name, window := range map[string]time.Duration{"money": time.Hour, "card": 30 * 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newRaffle(t, units, window))
		})
	}
}

func TestADrawnEntryIsChargedAndTheOthersAreReleased(t *testing.T) {
	eachHold(t, 2, func(t *testing.T, r *raffle) {
		entries, payments := r.in(5)
		due := r.enter() // authorizes no card
		d, err := r.draws.Drawing(t.Context(), r.item)
		if r.must(err); d.Entries != 5 {
			t.Errorf("%d entries count, want 5", d.Entries)
		}
		r.held(5, 0)
		r.drawn()
		r.entry(due, waitlist.Left, waitlist.CardDue)
		r.passes()
		won := 0
		for i, e := range entries {
			now, err := r.draws.Entry(t.Context(), e.ID)
			r.must(err)
			if now.Status != waitlist.Redeemed {
				r.entry(e, waitlist.Waiting, waitlist.CardAuthorized)
				r.wantPayment(payments[i], payment.Authorized)
				continue
			}
			won++
			r.wantPayment(payments[i], payment.Succeeded)
			o, err := r.orders.Reload(t.Context(), id.Order(*now.Task))
			if r.must(err); o == nil || o.Status != order.Paid || o.User != e.User {
				t.Errorf("order of the drawn entry: %+v", o)
			}
			ledger, err := r.pay.Ledger(t.Context(), o.ID)
			if r.must(err); len(ledger) != 1 || ledger[0].Kind != payment.LedgerCharged || ledger[0].Amount.Minor != 1999 {
				t.Errorf("ledger %+v", ledger)
			}
		}
		if won != 2 {
			t.Fatalf("%d entries were charged, want 2", won)
		}
		r.held(3, 2)
		r.endSale()
		r.passes()
		r.held(0, 2)
		for i, e := range entries {
			if now, _ := r.draws.Entry(t.Context(), e.ID); now.Status != waitlist.Redeemed {
				r.entry(e, waitlist.Expired, waitlist.CardDone)
				r.wantPayment(payments[i], payment.Closed)
			}
		}
	})
}

func (r *raffle) endSale() {
	r.t.Helper()
	r.must(r.db.WithTx(r.t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		return tx.Sale.Update().Where(entsale.ID(r.sale)).SetStatus(entsale.StatusENDED).Exec(ctx)
	}))
	r.step(r.draws.DrawStep)
}

// Whatever ends an entry before the draw releases its card.
func TestAnEntryThatEndsReleasesItsCard(t *testing.T) {
	eachHold(t, 1, func(t *testing.T, r *raffle) {
		entries, payments := r.in(3)
		left := entries[0]
		_, err := r.draws.Leave(t.Context(), left.ID, left.User)
		r.must(err)
		begun := r.enter() // withdrawn while the buyer is at the provider
		open := r.authorize(begun, "key-1")
		_, err = r.draws.Leave(t.Context(), begun.ID, begun.User)
		r.must(err)
		r.pass()
		r.entry(left, waitlist.Left, waitlist.CardDone)
		r.wantPayment(payments[0], payment.Closed)
		r.wantPayment(open, payment.Closed)
		r.held(2, 0)
		if d, err := r.draws.Drawing(t.Context(), r.item); err != nil || d.Entries != 2 {
			t.Errorf("drawing %+v %v", d, err)
		}
		r.must(r.db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) error {
			return tx.Sale.Update().Where(entsale.ID(r.sale)).SetStatus(entsale.StatusCANCELLED).Exec(ctx)
		}))
		r.step(r.draws.DrawStep)
		r.pass()
		r.held(0, 0)
		for _, e := range entries[1:] {
			r.entry(e, waitlist.Expired, waitlist.CardDone)
		}
	})
}

// Money that the shop captures in Stripe's dashboard, before its entry is drawn or after it has ended, goes
// back, and the sale's money says so. An operator sends a refund that fails again.
func TestMoneyCapturedAtStripeBeforeTheDrawGoesBack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before  func(r *raffle, e *waitlist.Entry)
		amount  int64
		fails   bool // the refund, at first
		lost    bool // the report
		status  waitlist.Status
		card    waitlist.Card
		payment payment.Status
	}{
		"entered": {amount: 1999, status: waitlist.Entered, card: waitlist.CardDue, payment: payment.Refunded},
		"drawn without an offer": {before: func(r *raffle, _ *waitlist.Entry) { r.drawn() }, amount: 1999,
			status: waitlist.Waiting, card: waitlist.CardDone, payment: payment.Refunded},
		"withdrawn": {before: func(r *raffle, e *waitlist.Entry) {
			_, err := r.draws.Leave(r.t.Context(), e.ID, e.User)
			r.must(err)
		}, amount: 1999, status: waitlist.Left, card: waitlist.CardDone, payment: payment.Refunded},
		"withdrawn, and the report is lost": {before: func(r *raffle, e *waitlist.Entry) {
			_, err := r.draws.Leave(r.t.Context(), e.ID, e.User)
			r.must(err)
		}, amount: 1999, lost: true, status: waitlist.Left, card: waitlist.CardDone, payment: payment.Refunded},
		"a part of it":               {amount: 500, status: waitlist.Entered, card: waitlist.CardDue, payment: payment.Refunded},
		"and the refund fails first": {amount: 1999, fails: true, status: waitlist.Entered, card: waitlist.CardDue, payment: payment.Refunded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRaffle(t, 0, time.Hour)
			entries, payments := r.in(1)
			e, p := entries[0], payments[0]
			if c.before != nil {
				c.before(r, e)
			}
			r.cards.Capture(p.ID, c.amount)
			if c.fails {
				r.cards.Decline(p.ID)
			}
			if !c.lost {
				r.report(p)
			}
			r.passes()
			if c.fails {
				r.cards.Accept(p.ID)
				r.decidedAgain(p)
				r.passes()
			}
			r.entry(e, c.status, c.card)
			r.wantPayment(p, c.payment)
			if back := r.cards.Hold(p.ID).Refunded; back != c.amount {
				t.Errorf("%d went back, want %d", back, c.amount)
			}
			held, err := r.pay.CountHeld(t.Context(), payment.HeldList{})
			if r.must(err); held != 0 {
				t.Errorf("%d events wait for an operator", held)
			}
			totals, err := r.pay.SaleTotals(t.Context(), r.sale)
			if r.must(err); len(totals) != 1 || totals[0].Charged != c.amount || totals[0].Refunded != c.amount {
				t.Errorf("money of the sale: %+v", totals)
			}
		})
	}
}

// decidedAgain is an operator who sends a failed refund again.
func (r *raffle) decidedAgain(p *payment.Payment) {
	r.t.Helper()
	failed, err := r.db.Ent.Refund.Query().Where(refund.PaymentID(p.ID), refund.StatusEQ(refund.StatusFAILED)).Only(r.t.Context())
	r.must(err)
	own := payment.Decision{Refund: failed.ID, Operator: p.User, Approve: true, Note: "again"}
	if _, err := r.pay.DecideRefund(r.t.Context(), own); fault.ReasonOf(err) != fault.Conflict {
		r.t.Errorf("an operator decided about the own money: %v", err)
	}
	own.Operator = id.New[id.User]()
	_, err = r.pay.DecideRefund(r.t.Context(), own)
	r.must(err)
}

func TestAnAuthorizationThatComesTooLateIsReleased(t *testing.T) {
	eachHold(t, 1, func(t *testing.T, r *raffle) {
		r.in(1)
		late := r.enter()
		r.clock.Advance(r.closes.Sub(r.clock.Now()) - time.Minute)
		p := r.authorize(late, "key-1")
		r.drawn()
		r.cards.Confirm(p.ID, "card-9")
		r.report(p)
		r.passes()
		if now := r.entry(late, waitlist.Left, waitlist.CardDone); now.Skipped == "" {
			t.Error("the entry does not say why it ended")
		}
		r.wantPayment(p, payment.Closed)
		r.held(0, 1)
	})
}

// A second entry with the card of another one is refused, where the limits of the sale count cards.
func TestACardCountsForTheLimitOfEntries(t *testing.T) {
	eachHold(t, 2, func(t *testing.T, r *raffle) {
		r.limitBy(sale.LimitBy{Payment: true})
		first, second := r.enter(), r.enter()
		p1, p2 := r.authorize(first, "key-1"), r.authorize(second, "key-1")
		r.confirm(p1, "card-1")
		r.confirm(p2, "card-1")
		r.pass()
		r.entry(first, waitlist.Entered, waitlist.CardAuthorized)
		if now := r.entry(second, waitlist.Left, waitlist.CardDone); now.Skipped != "LIMIT" {
			t.Errorf("the second entry was skipped for %q", now.Skipped)
		}
		r.wantPayment(p2, payment.Closed)
		r.held(1, 0)
		third := r.enter()
		r.confirm(r.authorize(third, "key-1"), "card-2")
		r.entry(third, waitlist.Entered, waitlist.CardAuthorized)
		r.drawn()
		r.passes()
		r.held(0, 2)
	})
}

// A hold that lapses before the closing can be replaced; one that lapses later leaves an entry that
// its buyer pays.
func TestALapsedAuthorization(t *testing.T) {
	t.Parallel()
	r := newRaffle(t, 2, time.Hour)
	entries, payments := r.in(2)
	r.cards.Lapse(payments[0].ID)
	r.report(payments[0])
	r.entry(entries[0], waitlist.Entered, waitlist.CardDue)
	if d, err := r.draws.Drawing(t.Context(), r.item); err != nil || d.Entries != 1 {
		t.Errorf("drawing %+v %v", d, err)
	}
	again := r.authorize(entries[0], "key-2")
	if again.ID == payments[0].ID {
		t.Fatal("the same payment again")
	}
	r.confirm(again, "card-0")
	r.entry(entries[0], waitlist.Entered, waitlist.CardAuthorized)
	r.drawn()
	r.cards.Lapse(again.ID)
	r.passes()
	now := r.entry(entries[0], waitlist.Redeemed, waitlist.CardDone)
	o, err := r.orders.Reload(t.Context(), id.Order(*now.Task))
	if r.must(err); o.Status != order.PendingPayment {
		t.Errorf("order is %s, want unpaid", o.Status)
	}
	if left := o.PaymentDeadline.Sub(r.clock.Now()); left < 23*time.Hour || left > 24*time.Hour {
		t.Errorf("%s are left to pay, want those of the offer", left)
	}
	log, err := r.orders.Timeline(t.Context(), o)
	if r.must(err); len(log) == 0 || log[len(log)-1].Code != order.CodePaymentDeclined {
		t.Errorf("log %+v", log)
	}
	r.held(0, 1)
	r.clock.Advance(25 * time.Hour)
	r.passes()
	if o, err = r.orders.Reload(t.Context(), o.ID); err != nil || o.Status != order.Expired {
		t.Errorf("order %+v, %v", o, err)
	}
}

func TestADeclinedSavedCardLeavesAnUnpaidOrder(t *testing.T) {
	t.Parallel()
	r := newRaffle(t, 1, 30*24*time.Hour)
	entries, payments := r.in(1)
	r.cards.Decline(payments[0].ID)
	r.drawn()
	r.passes()
	now := r.entry(entries[0], waitlist.Redeemed, waitlist.CardDone)
	p, err := r.pay.Payment(t.Context(), payments[0].ID)
	if r.must(err); p.Status != payment.Closed || p.Decline != payment.InsufficientFunds {
		t.Errorf("payment %+v", p)
	}
	o, err := r.orders.Reload(t.Context(), id.Order(*now.Task))
	if r.must(err); o.Status != order.PendingPayment {
		t.Errorf("order is %s", o.Status)
	}
	r.held(0, 0)
	if !r.cards.Hold(p.ID).Detached {
		t.Error("the card is still saved")
	}
}

func TestAuthorizeRefuses(t *testing.T) {
	t.Parallel()
	r := newRaffle(t, 1, time.Hour)
	e := r.enter()
	ask := func(in payment.AuthorizeInput) error {
		_, err := r.pay.Authorize(t.Context(), in)
		return err
	}
	r.wantRefused(ask(payment.AuthorizeInput{Entry: e.ID, User: id.New[id.User](), IdempotencyKey: "key-1"}), fault.Unknown)
	p := r.authorize(e, "key-1")
	if same, other := r.authorize(e, "key-1"), r.authorize(e, "key-2"); same.ID != p.ID || other.ID != p.ID {
		t.Errorf("payments %s, %s and %s", p.ID, same.ID, other.ID)
	}
	if p.ClientSecret == "" || p.AmountMinor != 1999 {
		t.Errorf("payment %+v", p)
	}
	r.confirm(p, "card-1")
	r.wantRefused(ask(payment.AuthorizeInput{Entry: e.ID, User: e.User, IdempotencyKey: "key-3"}), fault.Conflict)
	late := r.enter()
	r.clock.Advance(r.closes.Sub(r.clock.Now()))
	r.wantRefused(ask(payment.AuthorizeInput{Entry: late.ID, User: late.User, IdempotencyKey: "key-1"}), fault.EntriesClosed)
}

// A process is killed at each call to the provider, before and after it: nothing is charged
// twice, and no card is held in the end.
func TestACrashAtAnyCallChargesOnceAndLeavesNoHold(t *testing.T) {
	eachHold(t, 1, func(t *testing.T, r *raffle) {
		for _, call := range []string{"create", "query", "close", "capture"} {
			for became := unsent; became < fate(allFates); became++ {
				r.crash(call, became)
			}
		}
	})
}

// crash draws one of two entries while a call has a fate once.
func (r *raffle) crash(call string, became fate) {
	r.t.Helper()
	window := r.closes.Sub(r.clock.Now())
	if call != "create" || became != unsent { // the first has the sale of the shop
		window = r.window
		r.newSale(1)
		r.closes = r.clock.Now().Add(window)
		r.rules()
	}
	r.window = window
	_, before := r.cards.Held()
	lost := false
	r.flaky.lose(func(name string) fate {
		if name == call && !lost {
			lost = true
			return became
		}
		return fine
	})
	var entries []*waitlist.Entry
	for i := range 2 {
		e := r.enter()
		entries = append(entries, e)
		for {
			var p *payment.Payment
			if r.survives(func() {
				p, _ = r.pay.Authorize(r.t.Context(), payment.AuthorizeInput{Entry: e.ID, User: e.User, IdempotencyKey: "key-1"})
			}) && p != nil {
				r.cards.Confirm(p.ID, fmt.Sprint("card-", i)) // its report is lost
				break
			}
		}
	}
	for range 5 {
		r.tryPass()
	}
	r.drawn()
	for range 12 {
		r.tryPass()
	}
	r.endSale()
	for range 12 {
		r.tryPass()
	}
	if !lost && call != "query" {
		r.t.Errorf("%s: it was not called", call)
	}
	if held, charged := r.cards.Held(); held != 0 || charged != before+1 {
		r.t.Errorf("%s %d: %d cards are held and %d charged", call, became, held, charged-before)
	}
	paid := 0
	for _, e := range entries {
		now, err := r.draws.Entry(r.t.Context(), e.ID)
		r.must(err)
		if now.Task == nil {
			continue
		}
		if o, err := r.orders.Reload(r.t.Context(), id.Order(*now.Task)); err == nil && o != nil && o.Status == order.Paid {
			paid++
		}
	}
	if paid != 1 {
		r.t.Errorf("%s %d: %d orders are paid", call, became, paid)
	}
}

// survives does something in a process that may be killed, and replaces it then.
func (r *raffle) survives(do func()) (lived bool) {
	defer func() {
		if p := recover(); p != nil {
			if p != errDied { //nolint:errorlint // what was thrown is the value itself
				panic(p)
			}
			r.rise()
		}
	}()
	do()
	return true
}
