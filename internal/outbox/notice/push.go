package notice

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/SherClockHolmes/webpush-go"
	"github.com/google/uuid"

	"seckill/ent"
	"seckill/ent/pushsubscription"
	"seckill/internal/outbox/queue"
	"seckill/internal/outbox/webhook"
	"seckill/internal/platform/fault"
)

const (
	// maxTitle and maxBody bound the texts of a notice in a browser in bytes: a message has
	// at most 3,993 bytes (RFC 8291, section 4), and JSON doubles some characters.
	maxTitle = 400
	maxBody  = 1000
)

// Web is how notices reach browsers by Web Push.
type Web struct {
	PrivateKey string   // of VAPID (RFC 8292): base64url of a P-256 private key
	PublicKey  string   // base64url of its uncompressed public key
	Subject    string   // contact for the push services: mailto: or https:
	Services   []string // host names of push services; *.example.com permits all names below
}

// PushServices returns the push services of Chrome, Edge, Firefox and Safari, in the form of
// Web.Services. A browser's service does not differ by shop, and each further host is one more
// that any user can make the server call.
func PushServices() []string {
	return []string{"fcm.googleapis.com", "jmt17.google.com", "*.push.services.mozilla.com", "*.notify.windows.com",
		"*.push.apple.com"}
}

// pusher sends messages to push services.
type pusher struct {
	web    Web
	client webhook.Client
}

// check refuses an endpoint that is not at a known push service: any user can
// name one.
func (p *pusher) check(endpoint string) error {
	at := []string{"endpoint"}
	if err := p.client.Check(endpoint, at); err != nil {
		return err
	}
	u, err := url.Parse(endpoint)
	if err != nil || !slices.ContainsFunc(p.web.Services, func(s string) bool { return isAt(u.Hostname(), s) }) {
		return fault.BadField{At: at, Rule: fault.Rule{Code: "known push service"}}
	}
	return nil
}

// isAt reports whether a host name is that of a service, or below it.
func isAt(host, service string) bool {
	host = strings.ToLower(host)
	if domain, below := strings.CutPrefix(service, "*"); below {
		return strings.HasSuffix(host, domain)
	}
	return host == service
}

// pushMessage is what the service worker of the shop gets.
type pushMessage struct {
	Title    string `json:"title"`
	Body     string `json:"body"`
	Path     string `json:"path"`     // of the page that it opens
	Tag      string `json:"tag"`      // a newer one of the same subject replaces an older
	Language string `json:"language"` // BCP 47
}

func encodePush(n notice, sum summary) ([]byte, error) {
	m := pushMessage{Title: fault.Shorten(sum.title, maxTitle), Body: fault.Shorten(sum.text, maxBody),
		Path: n.content.Path, Tag: topicOf(n.subject), Language: sum.language}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(m); err != nil {
		return nil, fmt.Errorf("encode notice %s: %w", n.kind, err)
	}
	return b.Bytes(), nil
}

// topicOf returns the topic of a subject: of the messages with the same one, a push service
// keeps the newest (RFC 8030, section 5.4).
func topicOf(subject uuid.UUID) string { return base64.RawURLEncoding.EncodeToString(subject[:]) }

// urgencyOf returns how urgent a kind is: a device that saves its battery is not woken by
// one of normal urgency.
func urgencyOf(kind Kind) webpush.Urgency {
	switch kind {
	case PaymentDeadline, WaitlistOffer, SaleReminder, Admitted, ChargeFailed:
		return webpush.UrgencyHigh
	case OrderPlaced, Refund, OrderReview, DrawResult:
	}
	return webpush.UrgencyNormal
}

// send encrypts and sends a delivery, and returns the status of the response; 0 if there was
// none.
func (p *pusher) send(ctx context.Context, d *ent.NoticeDelivery, to *ent.PushSubscription, now time.Time) (int,
	error) {
	encode := base64.RawURLEncoding.EncodeToString
	subscription := &webpush.Subscription{Endpoint: to.Endpoint,
		Keys: webpush.Keys{P256dh: encode(to.P256dh), Auth: encode(to.Auth)}}
	transport := &poster{client: p.client}
	resp, err := webpush.SendNotificationWithContext(ctx, d.Payload, subscription, &webpush.Options{
		HTTPClient: transport, TTL: int(d.RetryUntil.Sub(now) / time.Second), Topic: topicOf(d.SubjectID),
		Urgency:        urgencyOf(Kind(d.Kind)),
		Subscriber:     strings.TrimPrefix(p.web.Subject, "mailto:"), // the library adds it
		VAPIDPublicKey: p.web.PublicKey, VAPIDPrivateKey: p.web.PrivateKey,
	})
	if resp != nil {
		_ = resp.Body.Close()
	}
	return transport.status, err
}

// poster sends the request of the library by the rules of webhooks: to public addresses,
// without redirects, in bounded time.
type poster struct {
	client webhook.Client
	status int
}

// Do implements webpush.HTTPClient. The response has no body.
func (p *poster) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err == nil {
		p.status, err = p.client.Post(r.Context(), r.URL.String(), r.Header, body)
	}
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: p.status, Body: http.NoBody}, nil
}

// pushTo sends a delivery to its browser. A subscription that its push service does not know
// any more is deleted.
func (s *Service) pushTo(ctx context.Context, d *ent.NoticeDelivery) error {
	if s.push == nil {
		return queue.ErrOver
	}
	to, err := s.cfg.DB.Ent.PushSubscription.Query().Where(pushsubscription.ID(*d.SubscriptionID), s.active()).Only(ctx)
	if ent.IsNotFound(err) {
		return queue.ErrOver
	}
	if err != nil {
		return fmt.Errorf("read subscription: %w", err)
	}
	status, err := s.push.send(ctx, d, to, s.now())
	switch {
	case status == http.StatusNotFound || status == http.StatusGone:
		if _, err := s.cfg.DB.Ent.PushSubscription.Delete().Where(pushsubscription.ID(to.ID)).Exec(ctx); err != nil {
			return fmt.Errorf("delete subscription: %w", err)
		}
		return fmt.Errorf("status %d: the subscription is %w", status, queue.ErrOver)
	case err != nil && status == 0 && Kind(d.Kind) == Admitted:
		return errors.Join(queue.ErrOver, err) // it may have arrived
	case err != nil:
		return err
	}
	// The notice was sent: an error here does not send it again.
	_ = s.cfg.DB.Ent.PushSubscription.Update().Where(pushsubscription.ID(to.ID)).SetSentAt(s.now()).Exec(ctx)
	return nil
}
