package notice_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"seckill/ent"
	"seckill/ent/noticedelivery"
	"seckill/ent/order"
	"seckill/ent/session"
	"seckill/internal/outbox/notice"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

// pushing gives the environment a push service.
func pushing(e *env, statuses ...int) *pushService {
	e.Helper()
	s := &pushService{T: e.T, vapid: newKey(e.T), statuses: statuses, browsers: map[string]browser{}}
	s.server = httptest.NewServer(s)
	e.Cleanup(s.server.Close)
	e.web = &notice.Web{PrivateKey: encode(s.vapid.Bytes()), PublicKey: encode(s.vapid.PublicKey().Bytes()), Subject: "mailto:ops@shop.example", Services: []string{"127.0.0.1"}}
	e.notices = e.service(nil)
	return s
}

// browser returns what a new browser subscribed with.
func (s *pushService) browser() notice.Subscription {
	s.Helper()
	b := browser{key: newKey(s.T), secret: make([]byte, 16), path: "/send/" + uuid.NewString()}
	_, _ = rand.Read(b.secret)
	s.browsers[b.path] = b
	return notice.Subscription{Endpoint: s.server.URL + b.path, P256dh: encode(b.key.PublicKey().Bytes()), Auth: encode(b.secret), Label: "Chrome, Windows"}
}

// session signs the user in.
func (e *env) session() id.Session {
	e.Helper()
	ses, now := id.New[id.Session](), e.clock.Now()
	e.must(e.db.Ent.Session.Create().SetID(ses).SetUserID(e.user).SetTokenHash(ses[:]).SetCreatedAt(now).SetRotatedAt(now).SetExpiresAt(now.Add(24 * time.Hour)).Exec(e.Context()))
	return ses
}

// another places an order after the user cancelled the one before.
func (e *env) another() id.Order {
	e.Helper()
	e.must(e.db.Ent.Order.Update().SetStatus(order.StatusCANCELLED).Exec(e.Context()))
	return e.order()
}

func (e *env) subscribe(ses id.Session, in notice.Subscription) {
	e.Helper()
	e.must(e.notices.Subscribe(e.Context(), e.user, ses, in))
}

func (e *env) settings() notice.Settings {
	e.Helper()
	set, err := e.notices.Settings(e.Context(), e.user)
	e.must(err)
	return set
}

func TestABrowserGetsEncryptedNoticesOnceItSubscribed(t *testing.T) {
	onBoth(t, func(e *env) {
		s := pushing(e, http.StatusInternalServerError)
		e.must(e.db.Ent.User.Update().SetLanguage("zh").ClearVerifiedAt().Exec(e.Context()))
		e.order()
		e.step()
		e.send()
		if set := e.settings(); len(s.messages) != 0 || len(set.Channels) != 0 || slices.ContainsFunc(set.Choices, func(c notice.Choice) bool { return c.Push }) {
			e.Fatalf("before a browser subscribed: %d messages, %+v", len(s.messages), set)
		}
		e.subscribe(e.session(), s.browser())
		if set := e.settings(); !slices.Equal(set.Channels, []notice.Channel{notice.Push}) || len(set.Devices) != 1 || set.Devices[0].Label != "Chrome, Windows" ||
			slices.ContainsFunc(set.Choices, func(c notice.Choice) bool { return !c.Push || c.Mail == (c.Kind == notice.Admitted) }) {
			e.Fatalf("settings %+v", set)
		}
		orderID := e.another()
		e.step()
		e.notices = e.service(nil) // another process goes on
		e.send()                   // the push service is away
		e.send()                   // not due yet
		e.clock.Advance(10 * time.Second)
		e.send()
		e.send() // it was sent
		if len(s.messages) != 2 || s.messages[0].Title != s.messages[1].Title {
			e.Fatalf("messages %+v", s.messages)
		}
		m := s.messages[1]
		if m.Path != "/orders/"+orderID.Public() || m.Language != "zh" || !strings.Contains(m.Body, "Kettle") || m.Tag != encode(orderID[:]) ||
			m.header.Get("Topic") != m.Tag || m.header.Get("Urgency") != "normal" || m.header.Get("Ttl") != "890" {
			e.Errorf("message %+v", m)
		}
		e.clock.Advance(window - ahead)
		e.step()
		e.send()
		if m := s.messages[len(s.messages)-1]; !strings.Contains(m.Title, "付款时间还剩") || m.Tag != encode(orderID[:]) || m.header.Get("Urgency") != "high" {
			e.Errorf("message %+v", m)
		}
		if set := e.settings(); set.Devices[0].SentAt == nil {
			e.Error("the time of the last notice is not known")
		}
	})
}

func TestAProcessThatEndsDuringASendLeavesItToAnother(t *testing.T) {
	onBoth(t, func(e *env) {
		s := pushing(e)
		e.subscribe(e.session(), s.browser())
		e.offer()
		e.step()
		// As after a crash between the claim and the request.
		e.must(e.db.Ent.NoticeDelivery.Update().AddAttempts(1).SetDueAt(e.clock.Now().Add(30 * time.Second)).Exec(e.Context()))
		e.send()
		if len(s.messages) != 0 {
			e.Fatalf("messages %+v", s.messages)
		}
		e.clock.Advance(30 * time.Second)
		e.send()
		if len(s.messages) != 1 || s.messages[0].header.Get("Urgency") != "high" || s.messages[0].header.Get("Ttl") != "30" {
			e.Errorf("messages %+v", s.messages)
		}
	})
}

func TestASubscriptionEndsWithThePushServiceItsSessionAndItsUser(t *testing.T) {
	onBoth(t, func(e *env) {
		s := pushing(e, http.StatusGone)
		e.subscribe(e.session(), s.browser())
		e.order()
		e.step()
		e.send()
		e.clock.Advance(time.Minute)
		e.send()
		row, err := e.db.Ent.NoticeDelivery.Query().Only(e.Context())
		e.must(err)
		if len(s.messages) != 1 || len(e.settings().Devices) != 0 || row.State != noticedelivery.StateGIVEN_UP || !strings.Contains(row.Error, "410") {
			e.Errorf("after 410: %d messages, %+v", len(s.messages), row)
		}

		ses := e.session()
		e.subscribe(ses, s.browser())
		e.clock.Advance(25 * time.Hour) // the session expired, and the user did not sign out
		e.another()
		e.step()
		if len(e.settings().Devices) != 1 {
			e.Error("an expired session ended the notices")
		}
		e.must(e.db.Ent.Session.Update().Where(session.ID(ses)).SetRevokedAt(e.clock.Now()).Exec(e.Context()))
		e.send()
		e.another()
		e.step()
		e.send()
		if len(s.messages) != 1 || len(e.settings().Devices) != 0 {
			e.Errorf("after the user signed out: %+v", s.messages)
		}
		second := e.session()
		e.subscribe(second, s.browser())
		if counts, err := e.notices.Purge(e.Context()); err != nil || counts["push_subscriptions_deleted"] != 1 {
			e.Errorf("%v, %v", counts, err)
		}

		stored, err := notice.StoredOf(e.Context(), e.db.Ent, e.user)
		e.must(err)
		text, err := json.Marshal(stored)
		e.must(err)
		if len(stored.Devices) != 1 || stored.Devices[0].Service != "127.0.0.1" || strings.Contains(string(text), "/send/") {
			e.Errorf("personal data %s", text)
		}
		e.tx(func(ctx context.Context, tx *ent.Tx) error { return notice.SignedOutElsewhere(ctx, tx, e.user, second) })
		if len(e.settings().Devices) != 1 {
			e.Error("the browser of the session that stays is gone")
		}
		e.tx(func(ctx context.Context, tx *ent.Tx) error { return notice.Erase(ctx, tx, e.user) })
		if n, err := e.db.Ent.PushSubscription.Query().Count(e.Context()); err != nil || n != 0 {
			e.Errorf("%d subscriptions of an erased user, %v", n, err)
		}
	})
}

func TestAUserHasTenBrowsersAndASessionOne(t *testing.T) {
	onBoth(t, func(e *env) {
		s := pushing(e)
		first := e.session()
		e.subscribe(first, s.browser())
		oldest := e.settings().Devices[0].ID
		for range 9 {
			e.subscribe(e.session(), s.browser())
		}
		last, again := e.session(), s.browser()
		for range 2 {
			e.subscribe(last, again) // the page asks again
		}
		e.subscribe(last, s.browser()) // the browser got another address
		devices := e.settings().Devices
		if len(devices) != 10 || devices[0].Endpoint == again.Endpoint || slices.ContainsFunc(devices, func(d notice.Device) bool { return d.ID == oldest }) {
			e.Errorf("devices %+v", devices)
		}
		for range 2 {
			e.must(e.notices.Unsubscribe(e.Context(), e.user, devices[0].ID))
		}
		e.must(e.notices.Unsubscribe(e.Context(), id.New[id.User](), devices[1].ID)) // of another user
		e.choose(notice.Choice{Kind: notice.Refund, Push: true}, notice.Choice{Kind: notice.WaitlistOffer})
		e.subscribe(last, again)
		set := e.settings()
		if len(set.Devices) != 10 || set.Choices[2].Push || !set.Choices[3].Push {
			e.Errorf("choices after another browser: %+v", set)
		}
		e.offer()
		e.step()
		e.send()
		if len(s.messages) != 0 {
			e.Errorf("a notice that was turned off: %+v", s.messages)
		}
	})
}

func TestABrowserOfAFormerKeyGetsNothing(t *testing.T) {
	onBoth(t, func(e *env) {
		s := pushing(e)
		e.subscribe(e.session(), s.browser())
		e.order()
		e.step()
		s = pushing(e) // the operator replaced the key
		e.send()
		if len(s.messages) != 0 || len(e.settings().Channels) != 1 { // by e-mail
			e.Errorf("messages %+v, %+v", s.messages, e.settings().Channels)
		}
		e.web = nil // the operator removed it
		e.notices = e.service(nil)
		if why := fault.ReasonOf(e.notices.Subscribe(e.Context(), e.user, e.session(), s.browser())); why != fault.Conflict || e.notices.PushKey() != "" {
			e.Errorf("without the channel: %q", why)
		}
	})
}

func TestOnlyBrowsersAtPushServicesSubscribe(t *testing.T) {
	onBoth(t, func(e *env) {
		s := pushing(e)
		ses, good := e.session(), s.browser()
		e.web.Services = []string{"fcm.googleapis.com", "*.push.apple.com"}
		strict := e.service(nil)
		for _, c := range []struct {
			field  string
			change func(*notice.Subscription)
		}{
			{"", func(*notice.Subscription) {}},
			{"", func(in *notice.Subscription) { in.Endpoint, in.Auth = "https://WEB.push.apple.com/x", in.Auth+"==" }},
			{"endpoint", func(in *notice.Subscription) { in.Endpoint = s.server.URL }},
			{"endpoint", func(in *notice.Subscription) { in.Endpoint = "https://push.apple.com.example.com/x" }},
			{"endpoint", func(in *notice.Subscription) { in.Endpoint = "https://fcm.googleapis.com/" + strings.Repeat("x", 1024) }},
			{"endpoint", func(in *notice.Subscription) { in.Endpoint = "https://user@fcm.googleapis.com/" }},
			{"p256dh", func(in *notice.Subscription) { in.P256dh = encode(make([]byte, 65)) }},
			{"p256dh", func(in *notice.Subscription) { in.P256dh = "" }},
			{"auth", func(in *notice.Subscription) { in.Auth = encode(make([]byte, 15)) }},
			{"label", func(in *notice.Subscription) { in.Label = strings.Repeat("名", 101) }},
		} {
			in := good
			in.Endpoint = "https://fcm.googleapis.com/fcm/send/" + url.PathEscape(uuid.NewString())
			c.change(&in)
			err := strict.Subscribe(e.Context(), e.user, ses, in)
			refusal, refused := fault.AsRefusal(err)
			if (c.field == "") != (err == nil) || c.field != "" && (!refused || refusal.Reason() != fault.InvalidInput || refusal.Path()[0] != c.field) {
				e.Errorf("%+v: %v", in, err)
			}
		}
	})
}
