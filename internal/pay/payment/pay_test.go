package payment_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"seckill/ent"
	entpayment "seckill/ent/payment"
	"seckill/internal/buy/order"
	"seckill/internal/pay/payment"
	"seckill/internal/pay/payment/sandbox"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/locale"
	"seckill/internal/testenv"
)

func TestAnApprovedPaymentPaysTheOrder(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, s *shop) {
		o := s.buy()
		p := s.begin(o, "key-1")
		if p.Status != payment.Pending || p.AmountMinor != 1999 || p.Currency != "EUR" || p.QRCode == "" ||
			p.RedirectURL == "" || !p.ExpiresAt.Equal(*o.PaymentDeadline) {
			t.Errorf("payment %+v", p)
		}
		s.approve(p, sandbox.Prompt)
		s.work()
		s.clock.Advance(4 * time.Second)
		s.work() // no message was published: the loop finds the event
		paid := s.wantOrder(o, order.Paid)
		s.wantPayment(p, payment.Succeeded)
		s.wantFigures(figures{available: 1, sold: 1, stock: 1, reserved: 1, holders: 1})
		if paid.PaidAt == nil || paid.PaymentDeadline != nil {
			t.Errorf("order %+v", paid)
		}
		s.expirePayments()
		s.wantOrder(o, order.Paid)
	})
}

func TestOneKeyIsOnePaymentAndAnOrderHasOneOpen(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, s *shop) {
		o := s.buy()
		var mu sync.Mutex
		seen := map[id.Payment]int{}
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				in := payment.PayInput{Order: o.ID, User: o.User, Provider: sandbox.Name, IdempotencyKey: fmt.Sprintf("key-%d", i%4)}
				p, err := s.pay.Pay(t.Context(), in)
				if err != nil {
					t.Errorf("pay: %v", err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				seen[p.Payment.ID]++
			})
		}
		wg.Wait()
		if len(seen) != 1 || s.db.Ent.SandboxCharge.Query().CountX(t.Context()) != 1 {
			t.Errorf("payments %v", seen)
		}
		all, err := s.db.Ent.Payment.Query().Where(entpayment.OrderID(o.ID)).All(t.Context())
		if err != nil || len(all) != 1 {
			t.Errorf("%d payments, %v", len(all), err)
		}
	})
}

func TestWhoMayPayWhat(t *testing.T) {
	t.Parallel()
	s := newShop(t, 10)
	try := func(o id.Order, user id.User) fault.Refusal {
		t.Helper()
		_, err := s.pay.Pay(t.Context(), payment.PayInput{Order: o, User: user, Provider: sandbox.Name, IdempotencyKey: id.New[uuid.UUID]().String()})
		return testenv.Refusal(s.t, err)
	}
	mine, cancelled, expired := s.buy(), s.buy(), s.buy()
	s.wantRefused(try(mine.ID, id.New[id.User]()), fault.Unknown)
	s.wantRefused(try(id.New[id.Order](), mine.User), fault.Unknown)
	_, err := s.pay.Cancel(t.Context(), cancelled.ID, cancelled.User, "")
	if err != nil {
		t.Fatal(err)
	}
	s.wantRefused(try(cancelled.ID, cancelled.User), fault.Conflict)
	_, err = s.pay.Pay(t.Context(), payment.PayInput{Order: mine.ID, User: mine.User, Provider: "cash", IdempotencyKey: "k"})
	s.wantRefused(err, fault.InvalidInput)
	paid := s.buy()
	s.payNow(paid)
	s.wantRefused(try(paid.ID, paid.User), fault.Conflict)
	s.clock.Advance(window - 3*time.Second)
	s.wantRefused(try(mine.ID, mine.User), fault.OrderExpired) // too close to the deadline
	s.expirePayments()
	s.wantRefused(try(expired.ID, expired.User), fault.OrderExpired)
}

// payNow pays an order and delivers the call-back.
func (s *shop) payNow(o *order.Order) *payment.Payment {
	s.t.Helper()
	p := s.begin(o, "pay-"+o.ID.String()[:8])
	s.approve(p, sandbox.Prompt)
	s.work()
	s.clock.Advance(4 * time.Second)
	s.work()
	s.wantOrder(o, order.Paid)
	return p
}

func TestADeclinedPaymentLeavesTheOrderToBePaid(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, s *shop) {
		o := s.buy()
		first := s.begin(o, "key-1")
		s.must(s.bank.Decline(t.Context(), s.charge(first).ID, "CARD_DECLINED"))
		s.work()
		s.clock.Advance(4 * time.Second)
		s.work()
		s.wantPayment(first, payment.Closed)
		s.wantOrder(o, order.PendingPayment)
		second := s.begin(o, "key-2")
		if second.ID == first.ID {
			t.Error("the declined payment came again")
		}
		s.approve(second, sandbox.Prompt)
		s.settleDown()
		s.wantOrder(o, order.Paid)
		var codes []order.Code
		log, err := s.orders.Timeline(t.Context(), s.order(o))
		s.must(err)
		for _, e := range log {
			codes = append(codes, e.Code)
		}
		if d := cmp.Diff([]order.Code{"", order.CodePaymentDeclined, order.CodePaid}, codes); d != "" {
			t.Error(d)
		}
	})
}

// A declined buyer starts a new payment before the bank reports the decline.
func TestADeclineIsKnownBeforeItIsReported(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, s *shop) {
		o := s.buy()
		first := s.begin(o, "key-1")
		s.must(s.bank.Decline(t.Context(), s.charge(first).ID, "CARD_DECLINED"))
		second := s.begin(o, "key-2")
		if second.ID == first.ID || second.Status != payment.Pending {
			t.Errorf("payment %s is %s, after %s", second.ID, second.Status, first.ID)
		}
		s.wantPayment(first, payment.Closed)
		s.work() // the report arrives
		s.approve(second, sandbox.Prompt)
		s.settleDown()
		s.wantOrder(o, order.Paid)
		// Money that is paid but not yet reported does not lead to a second payment
		// either.
		another := s.buy()
		s.approve(s.begin(another, "key-1"), sandbox.Delayed)
		_, err := s.pay.Pay(t.Context(), payment.PayInput{Order: another.ID, User: another.User, Provider: sandbox.Name, IdempotencyKey: "key-2"})
		s.wantRefused(err, fault.Conflict)
		s.wantOrder(another, order.Paid)
	})
}

func TestRepeatedCallbacksPayOnce(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, s *shop) {
		o := s.buy()
		p := s.begin(o, "key-1")
		s.approve(p, sandbox.Duplicate)
		for range 4 {
			s.work()
		}
		s.settleDown()
		s.wantOrder(o, order.Paid)
		if n := s.db.Ent.PaymentEvent.Query().CountX(t.Context()); n != 1 {
			t.Errorf("%d events", n)
		}
		if v := s.order(o).Version; v != 2 {
			t.Errorf("version %d", v)
		}
		// Another event with the same content changes nothing.
		event, err := s.pay.Record(t.Context(), sandbox.Name, payment.Event{
			ID: "another", Payment: p.ID, Kind: payment.EventSucceeded, Transaction: s.charge(p).Transaction,
			AmountMinor: 1999, Currency: "EUR", At: s.clock.Now(),
		})
		s.must(err)
		s.must(s.pay.Settle(t.Context(), event))
		if row := s.db.Ent.PaymentEvent.GetX(t.Context(), event); row.State != "HANDLED" || row.Outcome != "known already" {
			t.Errorf("event %+v", row)
		}
		s.wantFigures(figures{available: 1, sold: 1, stock: 1, reserved: 1, holders: 1})
	})
}

func TestManyHandlersOfOneEventPayOnce(t *testing.T) {
	onBoth(t, 50, func(t *testing.T, s *shop) {
		for range 10 {
			o := s.buy()
			p := s.begin(o, "key-1")
			event, err := s.pay.Record(t.Context(), sandbox.Name, payment.Event{
				ID: p.ID.String(), Payment: p.ID, Kind: payment.EventSucceeded, Transaction: "t", AmountMinor: 1999, Currency: "EUR", At: s.clock.Now(),
			})
			s.must(err)
			msg, err := payment.Message(event)
			s.must(err)
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					if err := s.pay.Handle(msg); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if now := s.wantOrder(o, order.Paid); now.Version != 2 {
				t.Errorf("version %d", now.Version)
			}
		}
	})
}

// A call-back is lost: the provider is queried.
func TestALostCallbackIsAskedFor(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, s *shop) {
		o := s.buy()
		p := s.begin(o, "key-1")
		s.approve(p, sandbox.Prompt)
		s.step(s.check)
		s.wantOrder(o, order.PendingPayment) // too early to query
		s.clock.Advance(21 * time.Second)
		s.step(s.check)
		s.wantOrder(o, order.Paid)
		s.settleDown() // and then the call-back arrives
		s.wantOrder(o, order.Paid)
	})
}

// A round of the loop is logged only if it changed something.
func TestAPaymentThatIsStillOpenChangesNothing(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, s *shop) {
		s.begin(s.buy(), "key-1")
		s.clock.Advance(21 * time.Second)
		counts, err := s.check(t.Context())
		s.must(err)
		if len(counts) != 0 {
			t.Errorf("counted %v", counts)
		}
	})
}

// Without a reply of the provider, the state stays unchanged.
func TestALostAnswerOfTheProviderIsFoundOutLater(t *testing.T) {
	for name, f := range map[string]fate{"unsent": unsent, "replyLost": replyLost} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, 2, func(t *testing.T, s *shop) {
				o := s.buy()
				in := payment.PayInput{Order: o.ID, User: o.User, Provider: sandbox.Name, IdempotencyKey: "key-1"}
				s.flaky.lose(func(string) fate { return f })
				if _, err := s.pay.Pay(t.Context(), in); fault.CodeOf(err) != fault.Unavailable {
					t.Fatalf("pay: %v", err)
				}
				if _, err := s.pay.Cancel(t.Context(), o.ID, o.User, ""); fault.CodeOf(err) != fault.Unavailable {
					t.Fatalf("cancel: %v", err)
				}
				s.flaky.lose(nil)
				if f == replyLost {
					// The bank closed it, and our record does not show it.
					if got, err := s.pay.Cancel(t.Context(), o.ID, o.User, ""); err != nil || got.Status != order.Cancelled {
						t.Errorf("cancel again: %+v, %v", got, err)
					}
					return
				}
				p, err := s.pay.Pay(t.Context(), in)
				if err != nil || !p.Replayed || p.Payment.Status != payment.Pending {
					t.Fatalf("pay again: %+v, %v", p, err)
				}
				s.approve(p.Payment, sandbox.Prompt)
				s.settleDown()
				s.wantOrder(o, order.Paid)
				if n := s.db.Ent.SandboxCharge.Query().CountX(t.Context()); n != 1 {
					t.Errorf("%d charges", n)
				}
			})
		})
	}
}

// A payment with a different amount or currency is held.
func TestMoneyThatDoesNotMatchIsHeld(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, s *shop) {
		for _, c := range []struct {
			amount   int64
			currency string
		}{{1998, "EUR"}, {2000, "EUR"}, {1999, "USD"}} {
			o := s.place(id.New[id.User](), 1)
			p := s.begin(o, "key-1")
			event, err := s.pay.Record(t.Context(), sandbox.Name, payment.Event{
				ID: "e" + p.ID.String(), Payment: p.ID, Kind: payment.EventSucceeded, Transaction: "t", AmountMinor: c.amount, Currency: c.currency, At: s.clock.Now(),
			})
			s.must(err)
			s.must(s.pay.Settle(t.Context(), event))
			s.wantOrder(o, order.PendingPayment)
			held, err := s.pay.HeldEvents(t.Context(), payment.HeldList{Limit: 10})
			if err != nil || len(held) != 1 || held[0].AmountMinor != c.amount || held[0].Payment != p.ID {
				t.Fatalf("held %+v, %v", held, err)
			}
			s.expirePayments()
			s.wantOrder(o, order.Expired) // the order expires and releases its unit
			if _, err := s.pay.ReturnHeld(t.Context(), held[0].ID, id.New[id.User](), "wrong sum"); err != nil {
				t.Fatal(err)
			}
			_, err = s.pay.ReturnHeld(t.Context(), held[0].ID, id.New[id.User](), "wrong sum")
			if err != nil {
				t.Errorf("return again: %v", err)
			}
			refunds, err := s.pay.RefundsOf(t.Context(), o.ID)
			s.must(err)
			if r := refunds[o.ID]; len(r) != 1 || r[0].AmountMinor != c.amount || r[0].Currency != c.currency {
				t.Errorf("refunds %+v", r)
			}
		}
	})
}

// An event for an unknown payment is stored and retried: the call-back may arrive
// before our own record is committed.
func TestAnEventAboutNothingKnownIsKeptAndTriedAgain(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, s *shop) {
		o := s.buy()
		later := id.New[id.Payment]()
		event, err := s.pay.Record(t.Context(), sandbox.Name, payment.Event{
			ID: "early", Payment: later, Kind: payment.EventSucceeded, Transaction: "t", AmountMinor: 1999, Currency: "EUR", At: s.clock.Now(),
		})
		s.must(err)
		s.must(s.pay.Settle(t.Context(), event))
		s.must(s.db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) error {
			return tx.Payment.Create().SetID(later).SetOrderID(o.ID).SetUserID(o.User).SetProvider(sandbox.Name).SetIdempotencyKey("k").
				SetAmountMinor(1999).SetCurrency("EUR").SetExpiresAt(*o.PaymentDeadline).SetCheckAt(s.clock.Now().Add(time.Hour)).
				SetCreatedAt(s.clock.Now()).SetUpdatedAt(s.clock.Now()).Exec(ctx)
		}))
		s.step(s.pay.RetryEvents)
		s.wantOrder(o, order.PendingPayment) // not due yet
		s.clock.Advance(time.Second)
		s.step(s.pay.RetryEvents)
		s.wantOrder(o, order.Paid)

	})
}

// Postgres may have lost the payment, or its order: waiting does not bring them back, and the
// money waits for an operator after 30 s.
func TestMoneyOfNothingKnownIsHeldAfterHalfAMinute(t *testing.T) {
	onBoth(t, 3, func(t *testing.T, s *shop) {
		paid, lost := s.buy(), s.buy()
		s.approve(s.begin(paid, "key-1"), sandbox.Prompt)
		s.settleDown()
		s.wantOrder(paid, order.Paid)
		known := s.begin(lost, "key-2")
		for _, o := range []*order.Order{paid, lost} { // lost
			s.must(s.db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) error { return tx.Order.DeleteOneID(o.ID).Exec(ctx) }))
		}
		of := s.db.Ent.Payment.Query().Where(entpayment.OrderID(paid.ID)).OnlyX(t.Context())
		events := map[string]id.Held{}
		for name, e := range map[string]payment.Event{
			"no payment":                 {Payment: id.New[id.Payment](), Kind: payment.EventSucceeded, Transaction: "t"},
			"no order":                   {Payment: known.ID, Kind: payment.EventSucceeded, Transaction: "u"},
			"no order of what is undone": {Payment: of.ID, Kind: payment.EventRefunded, Transaction: of.Transaction},
		} {
			e.ID, e.AmountMinor, e.Currency, e.At = name, of.AmountMinor, of.Currency, s.clock.Now()
			event, err := s.pay.Record(t.Context(), sandbox.Name, e)
			s.must(err)
			s.must(s.pay.Settle(t.Context(), event))
			events[name] = event
		}
		all := func(when, state string) {
			t.Helper()
			s.step(s.pay.RetryEvents)
			for name, event := range events {
				if row := s.db.Ent.PaymentEvent.GetX(t.Context(), event); string(row.State) != state {
					t.Errorf("%s, %s: %s %s", name, when, row.State, row.Outcome)
				}
			}
		}
		s.clock.Advance(29 * time.Second)
		all("after 29 s", "RECEIVED")
		s.clock.Advance(time.Minute)
		all("later", "HELD")
	})
}

// TestAProviderShowsWhatIsBought has what buyers read at a provider: product, quantity, and the
// number that the shop shows, in their language and without an id.
func TestAProviderShowsWhatIsBought(t *testing.T) {
	onBoth(t, 5, func(t *testing.T, s *shop) {
		for _, c := range []struct {
			quantity int
			language locale.Language
			want     string
		}{{1, locale.English, "Lamp <1> 灯 · Order "}, {2, locale.English, "Lamp <1> 灯 × 2 · Order "}, {2, locale.Chinese, "Lamp <1> 灯 × 2 · 订单 "}} {
			o := s.place(id.New[id.User](), c.quantity)
			paying, err := s.pay.Pay(t.Context(), payment.PayInput{Order: o.ID, User: o.User, Provider: sandbox.Name, IdempotencyKey: "key-1", Language: c.language})
			s.must(err)
			charge := s.charge(paying.Payment)
			if charge.Description != c.want+o.Number || o.Number == "" || charge.Language != string(c.language) || charge.ReturnURL != "/orders/"+o.ID.Public() {
				t.Errorf("the bank has %+v, want %q", charge, c.want+o.Number)
			}
		}
	})
}

// TestALongProductLeavesTheNumber cuts a description for providers with narrow bounds.
func TestALongProductLeavesTheNumber(t *testing.T) {
	t.Parallel()
	in := payment.CreateInput{Number: "2026-0001", Product: strings.Repeat("灯", 120), Quantity: 12, Language: locale.Chinese}
	got := in.Description(127)
	if len(got) > 127 || !utf8.ValidString(got) || !strings.HasSuffix(got, "灯… × 12 · 订单 2026-0001") {
		t.Errorf("%d bytes: %q", len(got), got)
	}
	if in.Product = ""; in.Description(127) != "订单 2026-0001" {
		t.Errorf("without a product: %q", in.Description(127))
	}
}

func TestAPaymentLeadsBackToThePageThatItsCallNames(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, s *shop) {
		o := s.buy()
		pay := func(key, page string) (payment.Paying, error) {
			return s.pay.Pay(t.Context(), payment.PayInput{Order: o.ID, User: o.User, Provider: sandbox.Name, IdempotencyKey: key, ReturnURL: page})
		}
		for _, bad := range []string{
			"/orders/1", "javascript:alert(1)", "//store.example/", "https://evil.example/", "https://me@store.example/", "https://store.example:8443/",
			"https://store.example@evil.example/", "https://ѕtore.example/", "https://store.example/\n", "http://store.example/",
		} {
			_, err := pay("key-1", bad)
			refusal := testenv.Refusal(t, err)
			s.wantRefused(refusal, fault.InvalidInput)
			if got := strings.Join(refusal.Path(), "."); got != "returnUrl" {
				t.Errorf("%q is refused at %q", bad, got)
			}
		}
		if n := s.db.Ent.Payment.Query().CountX(t.Context()); n != 0 {
			t.Errorf("%d payments were begun by refused calls", n)
		}
		const page = "https://store.example/thanks?order=1"
		first, err := pay("key-1", page)
		s.must(err)
		for _, key := range []string{"key-1", "key-2"} { // repeated, and from another tab
			again, err := pay(key, page)
			s.must(err)
			if again.Payment.ID != first.Payment.ID || s.charge(again.Payment).ReturnURL != page {
				t.Errorf("%s: %+v leads to %s", key, again.Payment, s.charge(again.Payment).ReturnURL)
			}
		}
		_, err = pay("key-1", "https://store.example/other")
		s.wantRefused(testenv.Refusal(t, err), fault.IdempotencyMismatch)
		other, err := pay("key-3", "")
		s.must(err)
		if other.Payment.ID == first.Payment.ID || s.charge(other.Payment).ReturnURL != "/orders/"+o.ID.Public() {
			t.Errorf("without an address: %+v", other.Payment)
		}
		s.wantPayment(first.Payment, payment.Closed)
	})
}
