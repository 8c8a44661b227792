package report_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"seckill/ent"
	entsale "seckill/ent/sale"
	"seckill/ent/waitlistentry"
	"seckill/internal/buy/order"
	"seckill/internal/buy/refusal"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/locale"
	"seckill/internal/staff/report"
)

// refuse writes a refusal of a user at a time after the opening.
func (e *env) refuse(user id.User, code fault.Reason, times int, after time.Duration) {
	e.t.Helper()
	at := e.opens.Add(after)
	e.must(e.db.Ent.RefusedAttempt.Create().SetID(id.New[uuid.UUID]()).SetUserID(user).SetSaleID(e.sale).SetItemID(e.item).
		SetStage("ORDER").SetCode(string(code)).SetTimes(times).SetFirstAt(at).SetLastAt(at).Exec(e.t.Context()))
}

// ordered writes an order of a user and moves it through states, each a minute after the one before.
func (e *env) ordered(user id.User, to ...order.Status) {
	e.t.Helper()
	var o *order.Order
	e.must(e.db.WithTx(e.t.Context(), func(ctx context.Context, tx *ent.Tx) (err error) {
		o, err = e.orderOf(ctx, tx, user, e.opens.Add(time.Second), 10*time.Millisecond)
		return err
	}))
	codes := map[order.Status]order.Code{order.Paid: order.CodePaid, order.Expired: order.CodeExpired}
	for i, status := range to {
		e.move(o, status, codes[status], o.CreatedAt.Add(time.Duration(i+1)*time.Minute))
	}
}

func TestTheFunnelCountsEachPersonOnceAtTheFurthestStep(t *testing.T) {
	t.Parallel()
	e := setup(t)
	user := id.New[id.User]
	for range 30 {
		soldOut := user()
		e.refuse(soldOut, fault.TooManyTries, 5, time.Second)
		e.refuse(soldOut, fault.SoldOut, 40, 2*time.Second) // the last one counts
	}
	for range 4 {
		e.refuse(user(), fault.AddressRequired, 1, time.Second)
	}
	waited, failed := user(), user()
	e.refuse(failed, fault.SoldOut, 1, time.Second)
	e.must(errors.Join(
		e.db.Ent.WaitlistEntry.Create().SetID(id.New[id.Waitlist]()).SetSaleID(e.sale).SetItemID(e.item).SetUserID(waited).SetQuantity(1).
			SetStatus(waitlistentry.StatusWAITING).SetCreatedAt(e.opens).SetUpdatedAt(e.opens).Exec(t.Context()),
		e.db.Ent.OrderFailure.Create().SetID(id.New[id.Task]()).SetSaleID(e.sale).SetItemID(e.item).SetUserID(failed).SetQuantity(1).
			SetCode("INTERNAL").SetReason("x").SetReservedAt(e.opens).SetCreatedAt(e.opens).Exec(t.Context()),
	))
	for range 3 {
		paid := user()
		e.refuse(paid, fault.TooManyTries, 3, time.Second)
		e.ordered(paid, order.Paid)
	}
	again := user()
	e.ordered(again, order.Expired)
	e.ordered(again, order.Paid) // the better of two orders counts
	e.ordered(user(), order.Expired)
	e.ordered(user())

	p := e.build().People
	want := report.People{Tried: 42, Ordered: 6, Paid: 4, Kept: 4, Complete: true, Lost: []report.Loss{
		{Step: report.StepOrdered, Reason: string(fault.SoldOut), People: 30}, {Step: report.StepOrdered, Reason: string(fault.AddressRequired), People: 4},
		{Step: report.StepOrdered, Reason: "ORDER_FAILED", People: 1}, {Step: report.StepOrdered, Reason: "WAITED", People: 1},
		{Step: report.StepPaid, Reason: "EXPIRED", People: 1}, {Step: report.StepPaid, Reason: "UNPAID", People: 1}}}
	if !equal(p, want) {
		t.Fatalf("people %+v\nwant   %+v", p, want)
	}
	page := e.page(e.build(), report.Reader{})
	for _, text := range []string{"Tried to buy 42", "36 fewer: Sold out 30 · No address 4 · Order failed 1 · Waited, no unit came 1 Got a unit 6 14.2% of the step before",
		"2 fewer: Not paid in time 1 · Not paid yet 1 Paid 4 66.6% of the step before", "Kept it 4 100% of the step before"} {
		if !strings.Contains(page, text) {
			t.Errorf("the page lacks %q:\n%s", text, page)
		}
	}
	e.clock.Advance(refusal.Keep)
	late := e.build()
	if late.People.Complete || !strings.Contains(e.page(late, report.Reader{}), "Refusals are kept for 30 days") {
		t.Errorf("after the retention: %+v", late.People)
	}
}

func equal(a, b report.People) bool {
	if len(a.Lost) != len(b.Lost) {
		return false
	}
	for i := range a.Lost {
		if a.Lost[i] != b.Lost[i] {
			return false
		}
	}
	return a.Tried == b.Tried && a.Ordered == b.Ordered && a.Paid == b.Paid && a.Kept == b.Kept && a.Complete == b.Complete
}

func TestRevenueIsWhatCameInAndDidNotGoBack(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.rush()
	r := e.build()
	last := r.Revenue[len(r.Revenue)-1]
	if len(r.Revenue) < 100 || last.Minor != 23453000 || r.Items[0].Net != r.Orders.Net || r.Orders.Net != "234530.00" {
		t.Errorf("%d points, last %+v; item %s, orders %s", len(r.Revenue), last, r.Items[0].Net, r.Orders.Net)
	}
	if r.Pay != (report.Pay{P50Ms: 120_000, P90Ms: 120_000, WindowMs: 900_000}) {
		t.Errorf("time to pay %+v", r.Pay)
	}
}

func TestAdviceFollowsFromTheFigures(t *testing.T) {
	t.Parallel()
	e := setup(t)
	if page := e.page(e.build(), report.Reader{}); !strings.Contains(page, "Fewer than 20 people tried to buy") {
		t.Errorf("of nobody:\n%s", page)
	}
	e.rush()
	if page := e.page(e.build(), report.Reader{}); !strings.Contains(page, "their order expire. 9 of 10 who paid did so within 2 min") {
		t.Errorf("of expired orders:\n%s", page)
	}
	for range stock + 1 {
		e.refuse(id.New[id.User](), fault.SoldOut, 1, 5*time.Second)
	}
	for range 100 {
		e.refuse(id.New[id.User](), fault.TooManyTries, 9, 5*time.Second)
	}
	page := e.page(e.build(), report.Reader{})
	for _, text := range []string{"and 501 people found nothing left for 500 units", "100 people stopped after the rate limit or the captcha refused them"} {
		if !strings.Contains(page, text) {
			t.Errorf("the page lacks %q:\n%s", text, page)
		}
	}
	if strings.Contains(page, "Offer fewer of it") {
		t.Error("an item that sold out should not be fewer")
	}
	if page := e.page(e.build(), report.Reader{Language: locale.Chinese}); !strings.Contains(page, "有 501 人未抢到（共 500 件）") {
		t.Errorf("in Chinese:\n%s", page)
	}
	e.must(errors.Join(e.db.Ent.Sale.UpdateOneID(e.sale).SetStatus(entsale.StatusENDED).Exec(t.Context()),
		e.db.Ent.SaleItem.UpdateOneID(e.item).SetTotal(5000).SetAvailable(4510).Exec(t.Context())))
	if page := e.page(e.build(), report.Reader{}); !strings.Contains(page, "<75%>” sold 470 of 5 000 units") {
		t.Errorf("of an item that hardly sold:\n%s", page)
	}
}
