package notice_test

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"

	"seckill/ent"
	"seckill/ent/noticedelivery"
	"seckill/ent/order"
	"seckill/ent/session"
	"seckill/internal/fault"
	"seckill/internal/id"
	"seckill/internal/notice"
)

var encode = base64.RawURLEncoding.EncodeToString

// newKey returns a private key of P-256.
func newKey(t *testing.T) *ecdh.PrivateKey {
	t.Helper()
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// browser is a browser, which decrypts what its push service gets for it (RFC 8291).
type browser struct {
	key    *ecdh.PrivateKey
	secret []byte
	path   string
}

func (b browser) open(body []byte) ([]byte, error) {
	const header = 16 + 4 + 1 + 65
	if len(body) < header || body[20] != 65 || int(binary.BigEndian.Uint32(body[16:])) < len(body) {
		return nil, fmt.Errorf("header of %d bytes", len(body))
	}
	salt, sender := body[:16], body[21:header]
	public, err := ecdh.P256().NewPublicKey(sender)
	if err != nil {
		return nil, err
	}
	shared, err := b.key.ECDH(public)
	if err != nil {
		return nil, err
	}
	derive := func(secret, salt []byte, info string, n int) []byte {
		out, derr := hkdf.Key(sha256.New, secret, salt, info, n)
		if derr != nil {
			err = derr
		}
		return out
	}
	ikm := derive(shared, b.secret, "WebPush: info\x00"+string(b.key.PublicKey().Bytes())+string(sender), 32)
	key, nonce := derive(ikm, salt, "Content-Encoding: aes128gcm\x00", 16), derive(ikm, salt, "Content-Encoding: nonce\x00", 12)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	plain, err := gcm.Open(nil, nonce, body[header:], nil)
	if err != nil {
		return nil, err
	}
	text := strings.TrimRight(string(plain), "\x00")
	if !strings.HasSuffix(text, "\x02") { // the last record
		return nil, fmt.Errorf("end of %q", text)
	}
	return []byte(text[:len(text)-1]), nil
}

// pushed is a message as a browser shows it, with the headers for the push service.
type pushed struct {
	Title, Body, Path, Tag, Language string
	header                           http.Header
}

// pushService is a push service with its browsers.
type pushService struct {
	*testing.T
	server *httptest.Server
	vapid  *ecdh.PrivateKey

	mu       sync.Mutex
	statuses []int // guarded by mu; of the next responses, then 201
	browsers map[string]browser
	messages []pushed
}

func (s *pushService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	if err := s.authorised(r.Header.Get("Authorization")); err != nil {
		s.Errorf("authorization %q: %v", r.Header.Get("Authorization"), err)
	}
	m := pushed{header: r.Header}
	plain, err := s.browsers[r.URL.Path].open(body)
	if err != nil || json.Unmarshal(plain, &m) != nil || r.Header.Get("Content-Encoding") != "aes128gcm" {
		s.Errorf("message %q: %v", plain, err)
	}
	status := http.StatusCreated
	if len(s.statuses) > 0 {
		status, s.statuses = s.statuses[0], s.statuses[1:]
	}
	s.messages = append(s.messages, m)
	w.WriteHeader(status)
}

// authorised checks the token of the shop (RFC 8292).
func (s *pushService) authorised(header string) error {
	token, key, ok := strings.Cut(strings.TrimPrefix(header, "vapid t="), ", k=")
	if public := s.vapid.PublicKey().Bytes(); !ok || key != encode(public) {
		return fmt.Errorf("the key is %q", key)
	}
	claims := jwt.RegisteredClaims{}
	_, err := jwt.ParseWithClaims(token, &claims, func(*jwt.Token) (any, error) {
		return ecdsa.ParseUncompressedPublicKey(elliptic.P256(), s.vapid.PublicKey().Bytes())
	}, jwt.WithValidMethods([]string{"ES256"}), jwt.WithAudience(s.server.URL), jwt.WithExpirationRequired(), jwt.WithSubject("mailto:ops@shop.example"))
	if err == nil && time.Until(claims.ExpiresAt.Time) > 24*time.Hour {
		err = fmt.Errorf("it expires at %s", claims.ExpiresAt)
	}
	return err
}

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
func (e *env) session() uuid.UUID {
	e.Helper()
	ses, now := id.New(), e.clock.Now()
	e.must(e.db.Ent.Session.Create().SetID(ses).SetUserID(e.user).SetTokenHash(ses[:]).SetCreatedAt(now).SetRotatedAt(now).SetExpiresAt(now.Add(24 * time.Hour)).Exec(e.Context()))
	return ses
}

// another places an order after the user cancelled the one before.
func (e *env) another() uuid.UUID {
	e.Helper()
	e.must(e.db.Ent.Order.Update().SetStatus(order.StatusCANCELLED).Exec(e.Context()))
	return e.order()
}

func (e *env) subscribe(ses uuid.UUID, in notice.Subscription) {
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
			slices.ContainsFunc(set.Choices, func(c notice.Choice) bool { return !c.Push || !c.Mail }) {
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
		if m.Path != "/orders/"+id.Format(id.Order, orderID) || m.Language != "zh" || !strings.Contains(m.Body, "Kettle") || m.Tag != encode(orderID[:]) ||
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
		e.another()
		e.step()
		e.must(e.db.Ent.Session.Update().Where(session.ID(ses)).SetRevokedAt(e.clock.Now()).Exec(e.Context()))
		e.send()
		e.another()
		e.step()
		e.send()
		if len(s.messages) != 1 || len(e.settings().Devices) != 0 {
			e.Errorf("after the user signed out: %+v", s.messages)
		}
		e.subscribe(e.session(), s.browser())
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
		if len(devices) != 10 || devices[0].Session != last || slices.ContainsFunc(devices, func(d notice.Device) bool { return d.ID == oldest }) {
			e.Errorf("devices %+v", devices)
		}
		for range 2 {
			e.must(e.notices.Unsubscribe(e.Context(), e.user, devices[0].ID))
		}
		e.must(e.notices.Unsubscribe(e.Context(), id.New(), devices[1].ID)) // of another user
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
			if (c.field == "") != (err == nil) || c.field != "" && (!refused || refusal.Reason() != fault.InvalidInput || refusal.Path()[1] != c.field) {
				e.Errorf("%+v: %v", in, err)
			}
		}
	})
}
