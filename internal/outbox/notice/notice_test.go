package notice_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-smtp"
	"github.com/google/uuid"

	"seckill/ent"
	mails "seckill/ent/mail"
	"seckill/ent/order"
	"seckill/ent/sale"
	"seckill/ent/salereminder"
	"seckill/ent/user"
	"seckill/ent/waitlistentry"
	"seckill/internal/outbox/notice"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/testdb"
)

func TestAnUnpaidOrderGetsTwoNoticesEachOnce(t *testing.T) {
	onBoth(t, func(e *env) {
		orderID := e.order()
		e.has(e.step(), ": pay by ")
		m := e.last()
		if m.To != address || m.Link() != shop+"/orders/"+orderID.Public() || !strings.Contains(m.Plain, "Kettle is reserved for you. Pay CNY 49.00 by ") {
			e.Errorf("e-mail %+v", m)
		}
		e.has(e.step(), "")
		e.clock.Advance(window - ahead - time.Second)
		e.has(e.step(), "")
		e.clock.Advance(time.Second)
		e.has(e.step(), "3 minutes left to pay for order N-")
		e.clock.Advance(time.Minute)
		e.has(e.step(), "")
	})
}

// The order of a drawn entry has the deadline of its offer instead of its first.
func TestAnOrderIsRemindedOfItsPresentDeadlineAlone(t *testing.T) {
	onBoth(t, func(e *env) {
		orderID := e.order()
		e.has(e.step(), ": pay by ")
		later := e.clock.Now().Add(24 * time.Hour)
		e.must(e.db.Ent.Order.Update().Where(order.ID(orderID)).SetPaymentDeadline(later).Exec(e.Context()))
		e.tx(func(ctx context.Context, tx *ent.Tx) error {
			return e.outbox.ChargeFailed(ctx, tx, notice.Placed{Order: orderID, User: e.user, At: e.clock.Now(), Deadline: later})
		})
		e.has(e.step(), "your card was declined")
		e.clock.Advance(window - ahead)
		e.has(e.step(), "")
		e.clock.Advance(later.Add(-ahead).Sub(e.clock.Now()))
		e.has(e.step(), "3 minutes left to pay")
	})
}

func TestAPaidOrderGetsNoNoticeOfItsDeadline(t *testing.T) {
	onBoth(t, func(e *env) {
		orderID := e.order()
		e.has(e.step(), ": pay by ")
		e.pay(orderID)
		e.clock.Advance(window - ahead)
		e.has(e.step(), "")
	})
}

// An e-mail waits while the mail server refuses it, and the reason for it ends meanwhile.
func TestAnEMailIsNotSentOnceItsReasonHasEnded(t *testing.T) {
	onBoth(t, func(e *env) {
		later := func(string) error { return &smtp.SMTPError{Code: 451, Message: "later"} }
		wait := func(end func()) {
			e.Helper()
			e.server.Refuse(later)
			e.has(e.step(), "")
			end()
			e.server.Refuse(nil)
			e.clock.Advance(30 * time.Second)
			e.has(e.step(), "")
			row, err := e.db.Ent.Mail.Query().Order(ent.Desc(mails.FieldID)).First(e.Context())
			e.must(err)
			if row.State != mails.StateGIVEN_UP || row.Attempts != 2 || len(row.Content) != 0 {
				e.Errorf("row %+v", row)
			}
		}
		cancelled := e.order()
		wait(func() {
			e.must(e.db.Ent.Order.Update().Where(order.ID(cancelled)).SetStatus(order.StatusCANCELLED).Exec(e.Context()))
		})

		unpaid := e.order()
		e.has(e.step(), ": pay by ")
		e.clock.Advance(window - ahead)
		wait(func() { e.pay(unpaid) })

		entry := e.offer()
		wait(func() {
			e.must(e.db.Ent.WaitlistEntry.Update().Where(waitlistentry.ID(entry)).SetStatus(waitlistentry.StatusLEFT).Exec(e.Context()))
		})

		e.must(e.notices.Remind(e.Context(), e.user, notice.Opening{Sale: e.sale, At: e.opens}))
		e.clock.Advance(e.opens.Add(-opening).Sub(e.clock.Now()))
		wait(func() {
			e.must(e.db.Ent.Sale.Update().Where(sale.ID(e.sale)).SetStatus(sale.StatusCANCELLED).Exec(e.Context()))
		})
	})
}

// The buyer is told at once that the card of a drawn entry was declined, in both languages, and reminded before
// the deadline. An order that was cancelled meanwhile needs neither.
func TestADeclinedCardOfADrawnEntryIsMailed(t *testing.T) {
	onBoth(t, func(e *env) {
		declined := func() (orderID id.Order) {
			orderID = e.order()
			_, err := e.db.Ent.NoticeFact.Delete().Exec(e.Context()) // of the order itself
			e.must(err)
			e.tx(func(ctx context.Context, tx *ent.Tx) error {
				now := e.clock.Now()
				return e.outbox.ChargeFailed(ctx, tx, notice.Placed{Order: orderID, User: e.user, At: now, Deadline: now.Add(window)})
			})
			return orderID
		}
		gone := declined()
		cancel := func(orderID id.Order) {
			e.must(e.db.Ent.Order.Update().Where(order.ID(orderID)).SetStatus(order.StatusCANCELLED).Exec(e.Context()))
		}
		cancel(gone)
		e.has(e.step(), "")
		unpaid := declined()
		e.has(e.step(), "You were drawn, but your card was declined: pay by ")
		if m := e.last(); m.Link() != shop+"/orders/"+unpaid.Public() || !strings.Contains(m.Plain, "Kettle is yours if you pay CNY 49.00 for order N-") {
			e.Errorf("e-mail %+v", m)
		}
		e.clock.Advance(window - ahead)
		e.has(e.step(), "left to pay")
		cancel(unpaid)
		e.must(e.db.Ent.User.Update().Where(user.ID(e.user)).SetLanguage("zh").Exec(e.Context()))
		declined()
		e.has(e.step(), "您已中签，但扣款失败")
	})
}

func TestAnOfferIsMailedWithALinkToItsItem(t *testing.T) {
	onBoth(t, func(e *env) {
		e.must(e.db.Ent.User.Update().Where(user.ID(e.user)).SetLanguage("zh").Exec(e.Context()))
		e.offer()
		e.has(e.step(), "您候补的 Kettle 有货了")
		if m := e.last(); m.Link() != shop+"/s/spring?item="+e.item.Public() || !strings.Contains(m.Plain, "北京时间") {
			e.Errorf("e-mail %+v", m)
		}
		e.must(e.db.Ent.WaitlistEntry.Update().SetStatus(waitlistentry.StatusEXPIRED).Exec(e.Context()))
		entry := e.offer()
		e.must(e.db.Ent.WaitlistEntry.Update().Where(waitlistentry.ID(entry)).SetStatus(waitlistentry.StatusLEFT).Exec(e.Context()))
		e.has(e.step(), "")
	})
}

func TestNothingGoesToAnAddressThatWasNotVerifiedOrIsOfABlockedUser(t *testing.T) {
	onBoth(t, func(e *env) {
		e.must(e.db.Ent.User.Update().Where(user.ID(e.user)).ClearVerifiedAt().Exec(e.Context()))
		e.order()
		e.has(e.step(), "")
		set, err := e.notices.Settings(e.Context(), e.user)
		e.must(err)
		if len(set.Channels) != 0 || len(set.Choices) != len(notice.Kinds()) {
			e.Errorf("settings %+v", set)
		}
		e.must(e.db.Ent.User.Update().Where(user.ID(e.user)).SetVerifiedAt(e.clock.Now()).SetDisabledAt(e.clock.Now()).Exec(e.Context()))
		e.clock.Advance(window - ahead)
		e.has(e.step(), "")
	})
}

func TestChoicesOfOneKindLeaveTheOthers(t *testing.T) {
	onBoth(t, func(e *env) {
		e.choose(notice.Choice{Kind: notice.OrderPlaced}, notice.Choice{Kind: notice.Refund, Hook: true})
		e.choose(notice.Choice{Kind: notice.OrderPlaced})
		set, err := e.notices.Settings(e.Context(), e.user)
		e.must(err)
		for _, c := range set.Choices {
			want := notice.Choice{Kind: c.Kind, Mail: true}
			switch c.Kind {
			case notice.OrderPlaced:
				want.Mail = false
			case notice.Refund:
				want.Mail, want.Hook = false, true
			case notice.Admitted:
				want.Mail = false
			case notice.PaymentDeadline, notice.WaitlistOffer, notice.SaleReminder, notice.OrderReview, notice.DrawResult, notice.ChargeFailed:
			}
			if c != want {
				e.Errorf("choice %+v, want %+v", c, want)
			}
		}
		e.order()
		e.has(e.step(), "")
		e.clock.Advance(window - ahead)
		e.has(e.step(), "left to pay")
	})
}

func TestAReminderIsSentOnceBeforeTheOpening(t *testing.T) {
	onBoth(t, func(e *env) {
		at := notice.Opening{Sale: e.sale, At: e.opens}
		for range 2 {
			e.must(e.notices.Remind(e.Context(), e.user, at))
		}
		got, err := e.notices.Reminder(e.Context(), e.user, at)
		e.must(err)
		if !got.Set || !got.At.Equal(e.opens.Add(-opening)) || len(got.Channels) != 1 || got.Channels[0] != notice.Mail {
			e.Errorf("reminder %+v", got)
		}
		e.has(e.step(), "")
		e.clock.Advance(time.Hour - opening)
		e.has(e.step(), "Spring sale opens in 10 minutes")
		if m := e.last(); m.Link() != shop+"/s/spring" {
			e.Errorf("link %s", m.Link())
		}
		e.has(e.step(), "")

		// The sale is postponed: the reminder was wrong, and another one follows.
		e.must(e.db.Ent.Sale.Update().Where(sale.ID(e.sale)).SetStartsAt(e.opens.Add(time.Hour)).Exec(e.Context()))
		e.has(e.step(), "")
		e.clock.Advance(time.Hour)
		e.has(e.step(), "Spring sale opens in 10 minutes")

		e.clock.Advance(opening)
		err = e.notices.Remind(e.Context(), e.user, notice.Opening{Sale: e.sale, At: e.opens.Add(time.Hour)})
		if refusal, ok := fault.AsRefusal(err); !ok || refusal == nil {
			e.Errorf("a reminder of a sale that has opened: %v", err)
		}
		e.clock.Advance(8 * 24 * time.Hour)
		if counts, err := e.notices.Purge(e.Context()); err != nil || counts["reminders_deleted"] != 1 {
			e.Errorf("%v, %v", counts, err)
		}
	})
}

func TestAForgottenReminderAndACancelledSaleAreNotReminded(t *testing.T) {
	onBoth(t, func(e *env) {
		at := notice.Opening{Sale: e.sale, At: e.opens}
		e.must(e.notices.Remind(e.Context(), e.user, at))
		for range 2 {
			e.must(e.notices.ForgetReminder(e.Context(), e.user, e.sale))
		}
		e.clock.Advance(time.Hour - opening)
		e.has(e.step(), "")
		e.must(e.notices.Remind(e.Context(), e.user, at))
		e.must(e.db.Ent.Sale.Update().Where(sale.ID(e.sale)).SetStatus(sale.StatusCANCELLED).Exec(e.Context()))
		e.has(e.step(), "")
	})
}

func TestProcessesWriteEachNoticeOnce(t *testing.T) {
	t.Parallel()
	e := setup(t, testdb.Postgres(t))
	const users = 250
	e.tx(func(ctx context.Context, tx *ent.Tx) error {
		now := e.clock.Now()
		people, wishes := make([]*ent.UserCreate, users), make([]*ent.SaleReminderCreate, users)
		for i := range users {
			userID := id.New[id.User]()
			people[i] = tx.User.Create().SetID(userID).SetAccount(userID.String() + "@example.com").SetDisplayName("x").SetPasswordHash("x").SetVerifiedAt(now).SetCreatedAt(now)
			wishes[i] = tx.SaleReminder.Create().SetID(id.New[uuid.UUID]()).SetUserID(userID).SetSaleID(e.sale).SetCreatedAt(now)
		}
		if err := tx.User.CreateBulk(people...).Exec(ctx); err != nil {
			return err
		}
		return tx.SaleReminder.CreateBulk(wishes...).Exec(ctx)
	})
	e.order()
	e.clock.Advance(time.Hour - opening)
	var all sync.WaitGroup
	for range 4 {
		other := e.service(nil)
		all.Go(func() {
			for range 3 {
				if _, err := other.Collect(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	mails, err := e.db.Ent.Mail.Query().All(t.Context())
	e.must(err)
	seen := map[string]int{}
	for _, m := range mails {
		seen[m.Recipient+m.Kind]++
	}
	if len(mails) != users || len(seen) != users {
		t.Errorf("%d e-mails to %d users, want %d", len(mails), len(seen), users)
	}
	if left, err := e.db.Ent.SaleReminder.Query().Where(salereminder.SentForIsNil()).Count(t.Context()); err != nil || left > 0 {
		t.Errorf("%d reminders are left, %v", left, err)
	}
}

func TestErasingAUserRemovesChoicesAndReminders(t *testing.T) {
	onBoth(t, func(e *env) {
		e.choose(notice.Choice{Kind: notice.Refund, Hook: true})
		e.must(e.notices.Remind(e.Context(), e.user, notice.Opening{Sale: e.sale, At: e.opens}))
		stored, err := notice.StoredOf(e.Context(), e.db.Ent, e.user)
		e.must(err)
		if len(stored.Choices) != 1 || len(stored.Reminders) != 1 {
			e.Errorf("stored %+v", stored)
		}
		e.tx(func(ctx context.Context, tx *ent.Tx) error { return notice.Erase(ctx, tx, e.user) })
		stored, err = notice.StoredOf(e.Context(), e.db.Ent, e.user)
		e.must(err)
		if len(stored.Choices) != 0 || len(stored.Reminders) != 0 {
			e.Errorf("after erasing %+v", stored)
		}
	})
}
