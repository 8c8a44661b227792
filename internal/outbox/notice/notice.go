// Package notice owns the notices that a buyer can choose: about an order, its payment
// deadline, a waitlist offer, a refund, the opening of a sale and an admission from its
// waiting room. They are sent by e-mail, through the operator's own service, such as SMS,
// and by Web Push to browsers.
//
// It does not own the facts, which the domains write in their transactions, or how an
// e-mail is sent.
//
//	fact + NoticeFact ──► Mail             (package mail sends it)
//	(one transaction) └─► NoticeDelivery   PENDING ──► SENT
//	                      (to the service      └─────► GIVEN_UP
//	                      or one browser)
//
// A fact is deleted in the transaction that writes its notices, so that each is written
// once. A request to the operator's service or a push service is sent at least once.
//
// Admissions happen in Redis and have no NoticeFact: Admissions keeps them in memory until
// their notices are written. Such a notice is written and sent at most once.
package notice

import (
	"context"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"time"

	"entgo.io/ent/dialect/sql"
	"github.com/prometheus/client_golang/prometheus"

	"seckill/ent"
	"seckill/ent/noticedelivery"
	"seckill/ent/sale"
	"seckill/ent/salereminder"
	"seckill/internal/outbox/mail"
	"seckill/internal/outbox/queue"
	"seckill/internal/outbox/webhook"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/postgres"
	"seckill/internal/platform/telemetry"
)

// Kind is what a notice is about.
type Kind string

// Kinds of notices.
const (
	OrderPlaced     Kind = "ORDER_PLACED"
	PaymentDeadline Kind = "PAYMENT_DEADLINE" // shortly before an unpaid order expires
	WaitlistOffer   Kind = "WAITLIST_OFFER"
	Refund          Kind = "REFUND"
	SaleReminder    Kind = "SALE_REMINDER" // shortly before the opening of a sale
	OrderReview     Kind = "ORDER_REVIEW"  // an unpaid order is held for review
	DrawResult      Kind = "DRAW_RESULT"   // an item was drawn, and the buyer has no offer yet
	ChargeFailed    Kind = "CHARGE_FAILED" // the card of a drawn entry was declined: its order is unpaid
	Admitted        Kind = "ADMITTED"      // from the waiting room, for about a minute
)

// Kinds lists every kind of notice.
func Kinds() []Kind {
	return []Kind{OrderPlaced, PaymentDeadline, WaitlistOffer, Refund, SaleReminder, Admitted, OrderReview,
		DrawResult, ChargeFailed}
}

// Channel is how a notice arrives.
type Channel string

// Channels of notices.
const (
	Mail Channel = "MAIL"
	Hook Channel = "HOOK" // through the operator's own service
	Push Channel = "PUSH" // to browsers, by Web Push
)

// Target is the operator's service that sends messages.
type Target struct {
	URL    string
	Secret string // signs the requests as Standard Webhooks defines: whsec_ and base64
}

// Config holds the dependencies of a Service.
type Config struct {
	DB   *postgres.DB
	Keys auth.Keys    // seal the links that end e-mails
	Mail *mail.Outbox // nil = no e-mails
	Hook *Target      // nil = no messages
	Web  *Web         // nil = nothing is sent to browsers
	// Admissions are those of the waiting rooms that this process serves; nil = none.
	Admissions *Admissions
	// Networks are private networks in which the operator's service and push services may
	// be, besides public ones. When there are any, they may use http.
	Networks []netip.Prefix
	Opening  time.Duration // how long before the opening of a sale its reminders are sent
	Shop     string        // address of the shop, without a slash at the end
	Page     mail.OrderPage
	Clock    clock.Clock // nil = clock.System
	// Registerer registers the metrics; nil = metrics are not exported.
	Registerer prometheus.Registerer
	Log        *slog.Logger
}

// Service keeps what users chose, and writes and sends notices. It is safe for concurrent
// use by any number of processes.
type Service struct {
	cfg     Config
	clock   clock.Clock
	links   auth.Sealer // of links that end e-mails
	hook    *hook       // nil = none
	push    *pusher     // nil = none
	queue   *queue.Queue
	metrics metrics
}

// New returns a Service.
func New(cfg Config) (*Service, error) {
	s := &Service{
		cfg: cfg, clock: clock.OrSystem(cfg.Clock), links: auth.NewSealer(cfg.Keys, "unsubscribe links"),
	}
	s.queue = s.newQueue()
	s.metrics = newMetrics(cfg.Registerer, s.queue)
	client := webhook.NewClient(cfg.Networks)
	if cfg.Web != nil {
		s.push = &pusher{web: *cfg.Web, client: client}
	}
	if cfg.Hook == nil {
		return s, nil
	}
	sign, err := webhook.NewSigner(cfg.Hook.Secret)
	if err != nil {
		return nil, err
	}
	s.hook = &hook{url: cfg.Hook.URL, sign: sign, client: client}
	return s, s.hook.client.Check(cfg.Hook.URL, []string{"SECKILL_NOTICE_HOOK_URL"})
}

// Channels returns the channels of this installation.
func (s *Service) Channels() []Channel {
	channels := []Channel{}
	if s.cfg.Mail != nil {
		channels = append(channels, Mail)
	}
	if s.hook != nil {
		channels = append(channels, Hook)
	}
	if s.push != nil {
		channels = append(channels, Push)
	}
	return channels
}

// ChannelsOf returns the channels of this installation for a kind of notice.
func (s *Service) ChannelsOf(kind Kind) []Channel {
	return slices.DeleteFunc(s.Channels(), func(c Channel) bool { return !kind.arrivesBy(c) })
}

// arrivesBy reports whether notices of a kind are sent by a channel. An admission lasts a
// minute, and people read other messages later than that.
func (k Kind) arrivesBy(channel Channel) bool { return k != Admitted || channel == Push }

// now returns the time of an operation, in the precision of the database.
func (s *Service) now() time.Time { return s.clock.Now().UTC().Truncate(time.Microsecond) }

type metrics struct {
	written  *prometheus.CounterVec // by kind and channel
	attempts *prometheus.CounterVec // by outcome, to the operator's service
	pushes   *prometheus.CounterVec // by outcome, to push services
	lost     prometheus.Counter     // admissions
}

func newMetrics(reg prometheus.Registerer, q *queue.Queue) metrics {
	of := telemetry.For(reg, "notice")
	return metrics{
		written: of.Counters("written_total",
			"Notices that were written for a channel. Labels kind, and channel: MAIL, HOOK or PUSH. The e-mails of refunds are receipts and not counted.", "kind", "channel"),
		attempts: q.Attempts(of, "hook_attempts_total", "Requests to the operator's service for notices."),
		pushes:   q.Attempts(of, "push_attempts_total", "Requests to push services for notices, one for each browser."),
		lost: of.Counter("admissions_lost_total",
			"Admissions from waiting rooms for which no notice was written: Postgres did not answer, or 20,000 others waited."),
	}
}

// of returns the attempts by the channel of a delivery.
func (m metrics) of(d *ent.NoticeDelivery) *prometheus.CounterVec {
	if d.SubscriptionID != nil {
		return m.pushes
	}
	return m.attempts
}

// keep is the retention of deliveries that have ended, and of reminders after the opening.
const keep = 7 * 24 * time.Hour

// Purge deletes old deliveries and reminders, and the browsers of ended sessions, in batches. It is a periodic.Step.
func (s *Service) Purge(ctx context.Context) (map[string]int, error) {
	before := s.now().Add(-keep)
	opened := func(r *sql.Selector) {
		sales := sql.Table(sale.Table)
		r.Where(sql.In(r.C(salereminder.FieldSaleID),
			sql.Dialect(r.Dialect()).Select(sales.C(sale.FieldID)).From(sales).
				Where(sql.LT(sales.C(sale.FieldStartsAt), before))))
	}
	counts, err := s.cfg.DB.Purge(ctx, "notice_deliveries_deleted", noticedelivery.Table, noticedelivery.EndedAtLT(before))
	if err != nil {
		return counts, err
	}
	reminders, err := s.cfg.DB.Purge(ctx, "reminders_deleted", salereminder.Table, opened)
	maps.Copy(counts, reminders)
	if err != nil {
		return counts, err
	}
	subscriptions, err := s.purgeSubscriptions(ctx)
	maps.Copy(counts, subscriptions)
	return counts, err
}
