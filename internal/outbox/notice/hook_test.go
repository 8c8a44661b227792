package notice_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"seckill/ent"
	"seckill/ent/noticedelivery"
	"seckill/ent/user"
	"seckill/internal/outbox/mail"
	"seckill/internal/outbox/notice"
	"seckill/internal/platform/id"
	"seckill/internal/platform/locale"
	"seckill/internal/platform/money"
	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

const hookSecret = "whsec_c2VjcmV0IG9mIHRoZSBvcGVyYXRvciBhbmQgdXM="

// operator is the operator's service.
type operator struct {
	server *httptest.Server

	mu       sync.Mutex
	statuses []int // guarded by mu; of the next responses, then 204
	ids      []string
	messages []message
}

type message struct {
	Type string
	Data struct {
		UserID, ExternalID, Account, Language, Title, Text, URL string
		Verified                                                bool
		ExpiresAt                                               time.Time
	}
}

func newOperator(t *testing.T, statuses ...int) *operator {
	t.Helper()
	o := &operator{statuses: statuses}
	verifier, err := standardwebhooks.NewWebhook(hookSecret)
	if err != nil {
		t.Fatal(err)
	}
	o.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var m message
		if err := verifier.VerifyIgnoringTimestamp(body, r.Header); err != nil || json.Unmarshal(body, &m) != nil {
			t.Errorf("request %s: %v", body, err)
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		status := http.StatusNoContent
		if len(o.statuses) > 0 {
			status, o.statuses = o.statuses[0], o.statuses[1:]
		}
		o.ids, o.messages = append(o.ids, r.Header.Get(standardwebhooks.HeaderWebhookID)), append(o.messages, m)
		w.WriteHeader(status)
	}))
	t.Cleanup(o.server.Close)
	return o
}

func (e *env) hooked(o *operator) {
	e.Helper()
	e.notices = e.service(&notice.Target{URL: o.server.URL, Secret: hookSecret})
}

func (e *env) send() {
	e.Helper()
	_, err := e.notices.Send(e.Context())
	e.must(err)
}

func TestTheOperatorsServiceGetsTheLinksOfPhoneAccounts(t *testing.T) {
	t.Parallel()
	e := setup(t, testdb.Postgres(t))
	if e.notices.Texts() != nil {
		t.Fatal("texts without the service")
	}
	o := newOperator(t)
	e.hooked(o)
	text := mail.Text{
		ID: uuid.New(), User: e.user, To: "+12065550123", Kind: mail.ResetPassword, Language: locale.English, Title: "Choose a new password", Body: "Open this link",
		URL: shop + "/reset-password#x", CreatedAt: e.clock.Now(), ExpiresAt: e.clock.Now().Add(time.Minute),
	}
	for range 2 {
		e.must(e.notices.Texts().SendText(t.Context(), text))
	}
	e.must(e.db.Ent.User.Update().Where(user.ID(e.user)).SetAccount(text.To).SetVerifiedAt(e.clock.Now()).SetExternalID("crm-7").Exec(e.Context()))
	e.must(e.notices.Texts().SendText(t.Context(), text))
	text.To = "+12065550199" // a number that the account had, or is to have
	e.must(e.notices.Texts().SendText(t.Context(), text))
	if len(o.messages) != 4 || o.ids[0] != o.ids[1] {
		t.Fatalf("messages %v", o.ids)
	}
	m := o.messages[0]
	if d := m.Data; m.Type != "account.reset" || d.Account != "+12065550123" || d.URL != text.URL || d.UserID != e.user.Public() || !d.ExpiresAt.Equal(text.ExpiresAt) ||
		d.Verified || d.ExternalID != "" {
		t.Errorf("message %+v", m)
	}
	if d := o.messages[2].Data; !d.Verified || d.ExternalID != "crm-7" {
		t.Errorf("to the verified number of a customer of the shop's systems: %+v", d)
	}
	if d := o.messages[3].Data; d.Verified || d.ExternalID != "crm-7" {
		t.Errorf("to another number: %+v", d)
	}
}

func TestTheOperatorsServiceGetsSignedNoticesOfThoseWhoChoseIt(t *testing.T) {
	onBoth(t, func(e *env) {
		o := newOperator(e.T, http.StatusServiceUnavailable)
		e.hooked(o)
		e.must(e.db.Ent.User.Update().Where(user.ID(e.user)).SetAccount("+8613800000000").ClearVerifiedAt().SetLanguage("zh").SetExternalID("crm-7").Exec(e.Context()))
		orderID := e.order()
		e.step()
		e.send()
		if len(o.messages) != 0 {
			e.Errorf("a message that was not chosen: %+v", o.messages)
		}
		e.choose(notice.Choice{Kind: notice.PaymentDeadline, Hook: true})
		e.clock.Advance(window - ahead)
		e.has(e.step(), "")
		e.send()
		e.send() // not due yet
		e.clock.Advance(10 * time.Second)
		e.send()
		e.send() // it was sent
		if len(o.messages) != 2 || o.ids[0] != o.ids[1] {
			e.Fatalf("messages %v %+v", o.ids, o.messages)
		}
		m := o.messages[1]
		if d := m.Data; m.Type != "notice.payment_deadline" || d.UserID != e.user.Public() || d.ExternalID != "crm-7" || d.Account != "+8613800000000" ||
			d.Verified || d.Language != "zh" || !strings.Contains(d.Title, "付款时间还剩 3 分钟") || !strings.Contains(d.Text, "Kettle 为您保留至") ||
			d.URL != shop+"/orders/"+orderID.Public() || !d.ExpiresAt.After(e.clock.Now()) {
			e.Errorf("message %+v", m)
		}
		row, err := e.db.Ent.NoticeDelivery.Query().Only(e.Context())
		e.must(err)
		if row.State != noticedelivery.StateSENT || len(row.Payload) != 0 || row.Attempts != 2 {
			e.Errorf("row %+v", row)
		}
	})
}

func TestADeliveryEndsWithItsSubjectAndWithItsTime(t *testing.T) {
	onBoth(t, func(e *env) {
		o := newOperator(e.T, 500, 500, 500, 500, 500, 500)
		e.hooked(o)
		e.choose(notice.Choice{Kind: notice.PaymentDeadline, Hook: true}, notice.Choice{Kind: notice.OrderPlaced, Hook: true})
		orderID := e.order()
		e.step()
		e.pay(orderID) // before the message was sent
		e.send()
		if len(o.messages) != 0 {
			e.Errorf("messages %+v", o.messages)
		}
		e.offer()
		e.choose(notice.Choice{Kind: notice.WaitlistOffer, Hook: true})
		e.step()
		for range 20 {
			e.send()
			e.clock.Advance(5 * time.Second)
		}
		if len(o.messages) < 2 || len(o.messages) > 5 {
			e.Errorf("%d attempts", len(o.messages))
		}
		if open, err := e.db.Ent.NoticeDelivery.Query().Where(noticedelivery.StateNEQ(noticedelivery.StateGIVEN_UP)).Count(e.Context()); err != nil || open > 0 {
			e.Errorf("%d deliveries are open, %v", open, err)
		}
		e.clock.Advance(8 * 24 * time.Hour)
		if counts, err := e.notices.Purge(e.Context()); err != nil || counts["notice_deliveries_deleted"] != 2 {
			e.Errorf("%v, %v", counts, err)
		}
	})
}

func TestARefundGoesToTheServiceOnly(t *testing.T) {
	onBoth(t, func(e *env) {
		o := newOperator(e.T)
		e.hooked(o)
		orderID := e.order()
		e.pay(orderID)
		e.choose(notice.Choice{Kind: notice.Refund, Mail: true, Hook: true})
		e.tx(refunded(e, orderID, money.Amount{Minor: 1200, Currency: "CNY"}))
		e.has(e.step(), "") // the e-mail is a receipt
		e.send()
		if len(o.messages) != 1 || !strings.Contains(o.messages[0].Data.Text, "CNY 12.00") {
			e.Errorf("messages %+v", o.messages)
		}
	})
}

func TestTheServiceIsNotInsideOfTheInstallation(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"http://127.0.0.1/x", "https://10.0.0.1/x", "https://user@example.com/", "ftp://example.com"} {
		_, err := notice.New(notice.Config{Keys: testenv.Keys(t), Hook: &notice.Target{URL: url, Secret: hookSecret}, Log: slog.New(slog.DiscardHandler)})
		if err == nil {
			t.Errorf("%s is a service", url)
		}
	}
}

func refunded(e *env, orderID id.Order, amount money.Amount) func(context.Context, *ent.Tx) error {
	return func(ctx context.Context, tx *ent.Tx) error {
		return e.outbox.Refunded(ctx, tx, notice.Refunded{Order: orderID, User: e.user, Amount: amount, At: e.clock.Now()})
	}
}
