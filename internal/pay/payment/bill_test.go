package payment_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"seckill/internal/buy/order"
	"seckill/internal/pay/payment"
	"seckill/internal/pay/payment/providertest"
	"seckill/internal/platform/id"
)

// billDay is the date in Beijing of the opening.
var billDay = time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)

// Numbers of the rigs whose providers have bills.
const (
	weChatRig = 1
	alipayRig = 3
)

// withBills runs a test at each provider that has bills.
func withBills(t *testing.T, test func(t *testing.T, a *abroad)) {
	t.Helper()
	t.Parallel()
	for name, number := range map[string]int{"wechat": weChatRig, "alipay": alipayRig} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, _ := newAbroad(t, number)
			a.newSale(10)
			test(t, a)
		})
	}
}

// pays begins a payment, pays it at the provider, and delivers the report unless it is lost.
func (a *abroad) pays(reported bool) (*order.Order, *payment.Payment) {
	a.t.Helper()
	o := a.buy()
	p := a.attempt(o, "key-1")
	charge, _ := a.rig.Charge(p.ID)
	a.rig.Pay(p.ID, charge.AmountMinor, charge.Currency)
	if reported {
		charge, _ = a.rig.Charge(p.ID)
		a.reports = append(a.reports, report{"evt_" + id.New[uuid.UUID]().String(), charge})
		a.deliver()
	}
	return o, p
}

func (a *abroad) bill() payment.Reconciled {
	a.t.Helper()
	found, err := a.pay.Reconcile(a.t.Context(), a.rig.Name, billDay)
	a.must(err)
	return found
}

func TestABillThatAgreesHasNoFindingsAndHasTheFees(t *testing.T) {
	withBills(t, func(t *testing.T, a *abroad) {
		o, p := a.pays(true)
		a.wantOrder(o, order.Paid)
		a.approveRefund(a.askRefund(o), false)
		a.settleDown()
		a.wantOrder(o, order.Refunded)
		kept, _ := a.pays(true)
		for range 2 {
			if found := a.bill(); len(found.Findings) != 0 || found.Bill.Lines != 3 || found.Bill.Others != 0 || found.Bill.Error != nil {
				t.Fatalf("bill %+v, findings %+v", found.Bill, found.Findings)
			}
		}
		ledger, err := a.pay.Ledger(t.Context(), kept.ID)
		a.must(err)
		totals := payment.TotalsOf(ledger)
		if want := []payment.Totals{{Currency: "CNY", Charged: 1999, Fees: 12}}; len(totals) != 1 || totals[0] != want[0] {
			t.Errorf("totals %+v, want %+v", totals, want)
		}
		of, err := a.pay.SaleTotals(t.Context(), a.sale)
		a.must(err)
		if want := (payment.Totals{Currency: "CNY", Charged: 2 * 1999, Refunded: 1999, Fees: 2 * 12}); len(of) != 1 || of[0] != want {
			t.Errorf("totals of the sale %+v, want %+v", of, want)
		}
		if c, _ := a.rig.Charge(p.ID); c.Refunded != 1999 {
			t.Errorf("charge %+v", c)
		}
	})
}

func TestWhatABillHasAndTheShopHasNotIsFound(t *testing.T) {
	withBills(t, func(t *testing.T, a *abroad) {
		lost, missed := a.pays(false)
		_, unbilled := a.pays(true)
		a.rig.Change(unbilled.ID, func(c *providertest.Charge) { c.Unbilled = true })
		given, byStaff := a.pays(true)
		a.must(a.rig.GiveBack(byStaff.ID, 500))
		other := a.rig.OpenOther("another-shop-7", a.rig.Currency)
		a.rig.Pay(other, 300, a.rig.Currency)
		stranger := a.rig.OpenOther("", a.rig.Currency)
		a.rig.Pay(stranger, 700, a.rig.Currency)

		found := a.bill()
		got := map[id.Payment]payment.Mismatch{}
		for _, f := range found.Findings {
			got[f.Payment] = f.Mismatch
		}
		want := map[id.Payment]payment.Mismatch{
			missed.ID: payment.MoneyMissed, unbilled.ID: payment.MoneyMissing, byStaff.ID: payment.RefundUnknown, stranger: payment.MoneyUnknown,
		}
		for p, mismatch := range want {
			if got[p] != mismatch {
				t.Errorf("payment %s is %q, want %q", p, got[p], mismatch)
			}
		}
		if len(got) != len(want) || found.Bill.Others != 1 {
			t.Errorf("%d lines of other software, findings %+v", found.Bill.Others, found.Findings)
		}
		a.settleDown()
		a.wantOrder(lost, order.Paid)
		a.wantOrder(given, order.Paid)
		for range 2 { // the second comparison holds it no second time
			held, err := a.pay.HeldEvents(t.Context(), payment.HeldList{Limit: 10})
			a.must(err)
			waiting := map[id.Payment]int64{}
			for _, h := range held {
				waiting[h.Payment] += h.AmountMinor
			}
			if len(held) != 2 || waiting[stranger] != 700 || waiting[byStaff.ID] != 500 {
				t.Errorf("unmatched %+v", held)
			}
			a.bill()
		}
	})
}

// Parts may go back on several days, the later ones smaller than what went back before them.
func TestRefundsOfSeveralDaysAreNoted(t *testing.T) {
	withBills(t, func(t *testing.T, a *abroad) {
		_, p := a.pays(true)
		for n, amount := range []int64{300, 200, 100} {
			a.must(a.rig.GiveBack(p.ID, amount))
			for run, want := range []int{1, 0} { // the second comparison finds nothing
				found, err := a.pay.Reconcile(t.Context(), a.rig.Name, billDay.AddDate(0, 0, n))
				a.must(err)
				if len(found.Findings) != want || found.Bill.Error != nil {
					t.Errorf("day %d, comparison %d: %+v, %+v", n+1, run+1, found.Findings, found.Bill)
				}
			}
			a.clock.Advance(24 * time.Hour)
		}
		held, err := a.pay.HeldEvents(t.Context(), payment.HeldList{Limit: 10})
		a.must(err)
		var sum int64
		for _, h := range held {
			sum += h.AmountMinor
		}
		if sum != 600 {
			t.Errorf("%d went back by %+v, want 600", sum, held)
		}
	})
}

func TestABillThatCannotBeReadIsReported(t *testing.T) {
	withBills(t, func(t *testing.T, a *abroad) {
		a.pays(true)
		a.away.Store(true)
		if found := a.bill(); found.Bill.Error == nil || len(found.Findings) != 0 {
			t.Errorf("bill %+v", found.Bill)
		}
	})
}

// The shop writes a payment before its provider hears of it: what it does not know it will
// never know.
func TestMoneyOfAnUnknownPaymentIsHeldWithinAMinute(t *testing.T) {
	onBoth(t, 1, func(t *testing.T, s *shop) {
		event, err := s.pay.Record(t.Context(), "sandbox", payment.Event{
			ID: "evt-1", Payment: id.New[id.Payment](), Kind: payment.EventSucceeded, Transaction: "tx-1", AmountMinor: 100, Currency: "EUR", At: s.clock.Now(),
		})
		s.must(err)
		for range 12 {
			s.clock.Advance(5 * time.Second)
			s.step(s.pay.RetryEvents)
		}
		held, err := s.pay.HeldEvents(t.Context(), payment.HeldList{Limit: 10})
		s.must(err)
		if len(held) != 1 || held[0].ID != event {
			t.Errorf("unmatched %+v", held)
		}
	})
}
