// Package webhook owns the events for other systems: the outbox that domains write in
// the transaction of a fact, the endpoints that receive events, their deliveries, and
// the sender.
//
// It does not own the facts or the content of events; the domains do.
//
//	fact + event ──► WebhookEvent ──► WebhookDelivery  PENDING ──► DELIVERED
//	(one transaction)   (dispatch)     one per endpoint    │  ▲
//	                                                       ▼  │ replay
//	                                                    GIVEN_UP, DELIVERED
//
// Delivery is at least once: a receiver recognises a repeated event by the header
// webhook-id. The events of one subject, such as an order, are delivered to an endpoint
// in their order: the next one is sent when the one before was delivered or given up.
// Requests are signed as Standard Webhooks defines.
package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"entgo.io/ent/dialect/sql"
	"github.com/prometheus/client_golang/prometheus"

	"seckill/ent/webhookdelivery"
	"seckill/ent/webhookendpoint"
	"seckill/ent/webhookevent"
	"seckill/internal/outbox/queue"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
	"seckill/internal/platform/telemetry"
)

// Kind is the type of an event, as receivers read it.
type Kind string

// Kinds of events.
const (
	OrderPlaced      Kind = "order.placed"
	OrderPaid        Kind = "order.paid"
	OrderExpired     Kind = "order.expired"
	OrderCancelled   Kind = "order.cancelled"
	OrderRefunded    Kind = "order.refunded"
	OrderRecipient   Kind = "order.recipient_changed"
	OrderFulfilment  Kind = "order.fulfilment_changed"
	SaleStateChanged Kind = "sale.state_changed"
	StockLow         Kind = "stock.low"
	PaymentUnmatched Kind = "payment.unmatched"
	// Test is of no fact: an administrator sends it to one endpoint, and no endpoint chooses it.
	Test Kind = "webhook.test"
)

// Kinds lists every kind of event that endpoints receive.
func Kinds() []Kind {
	return []Kind{OrderPlaced, OrderPaid, OrderExpired, OrderCancelled, OrderRefunded, OrderRecipient, OrderFulfilment,
		SaleStateChanged, StockLow, PaymentUnmatched}
}

// Valid reports whether endpoints receive k.
func (k Kind) Valid() bool { return slices.Contains(Kinds(), k) }

// maxPayload bounds the body of an event in bytes. The largest, an order, has less than
// 1 kB.
const maxPayload = 16 << 10

// Event is a fact for other systems.
type Event struct {
	Kind    Kind
	Subject string    // public id of the order, sale or item; its events are delivered in order
	At      time.Time // of the fact
	Data    any       // content, encoded as JSON
}

// payload returns the body of the event as it is sent.
func (e Event) payload() ([]byte, error) {
	body, err := json.Marshal(struct {
		Type      Kind      `json:"type"`
		Timestamp time.Time `json:"timestamp"`
		Data      any       `json:"data"`
	}{e.Kind, e.At.UTC(), e.Data})
	if err != nil {
		return nil, fmt.Errorf("encode event %s: %w", e.Kind, err)
	}
	if len(body) > maxPayload {
		return nil, fmt.Errorf("event %s of %s has %d bytes, at most %d are allowed", e.Kind, e.Subject, len(body),
			maxPayload)
	}
	return body, nil
}

// Config holds the dependencies of a Service.
type Config struct {
	DB   *postgres.DB
	Keys auth.Keys // seal the secrets of endpoints
	// Networks are private networks to which events may be sent although they are not
	// public. When there are any, endpoints may use http.
	Networks   []netip.Prefix
	Outbox     *Outbox               // of this process, which learns of a new endpoint at once; may be nil
	Security   Security              // nil = changes are not recorded
	Inbox      Inbox                 // nil = changes are not reported
	Clock      clock.Clock           // nil = clock.System
	Registerer prometheus.Registerer // nil = metrics are not exported
	Log        *slog.Logger
}

// Security records the changes of endpoints; account.SecurityLog implements it.
type Security interface {
	WebhookChanged(ctx context.Context, by id.User, what string)
}

// Inbox learns after the commit that an endpoint was changed or disabled;
// inbox.Reporter implements it.
type Inbox interface {
	Changed(ctx context.Context)
}

// Service manages endpoints and sends events to them. It is safe for concurrent use by
// any number of processes.
type Service struct {
	cfg     Config
	sealer  auth.Sealer
	target  target
	queue   *queue.Queue
	metrics metrics

	mu      sync.Mutex
	sending map[id.Endpoint]bool // guarded by mu; endpoints to which this process sends now
	senders sync.WaitGroup
	busy    atomic.Bool // there were new events
}

// New returns a Service.
func New(cfg Config) *Service {
	cfg.Clock = clock.OrSystem(cfg.Clock)
	s := &Service{
		cfg: cfg, sealer: auth.NewSealer(cfg.Keys, "webhook secrets"), target: newTarget(cfg.Networks),
		sending: map[id.Endpoint]bool{},
	}
	s.queue = s.newQueue()
	s.metrics = newMetrics(cfg.Registerer, s.queue)
	return s
}

// changed records and reports a change of an endpoint by a user.
func (s *Service) changed(ctx context.Context, by id.User, what string) {
	if s.cfg.Security != nil {
		s.cfg.Security.WebhookChanged(ctx, by, what)
	}
	s.reportChange(ctx)
}

// reportChange reports to the inbox that an endpoint was changed or disabled.
func (s *Service) reportChange(ctx context.Context) {
	if s.cfg.Inbox != nil {
		s.cfg.Inbox.Changed(ctx)
	}
}

// now returns the time of an operation, in the precision of the database.
func (s *Service) now() time.Time { return s.cfg.Clock.Now().UTC().Truncate(time.Microsecond) }

// publicID returns the id of an event that receivers see.
func publicID(message id.Event) string { return message.Public() }

type metrics struct {
	attempts *prometheus.CounterVec // by outcome
	seconds  prometheus.Histogram
	lag      prometheus.Gauge
	disabled prometheus.Counter
}

func newMetrics(reg prometheus.Registerer, q *queue.Queue) metrics {
	of := telemetry.For(reg, "webhook")
	return metrics{
		attempts: q.Attempts(of, "deliveries_total", "Attempts to deliver an event to an endpoint."),
		seconds: of.Histogram("delivery_seconds", "Duration of attempts to deliver an event.",
			[]float64{0.01, 0.03, 0.1, 0.3, 1, 3, 10}),
		lag: of.Gauge("lag_seconds",
			"Age of the oldest event that is not delivered to an enabled endpoint; 0 without one. The same in every worker."),
		disabled: of.Counter("endpoints_disabled_total",
			"Endpoints that were disabled because deliveries failed for a day, or because they answered 410."),
	}
}

const (
	// keepDeliveries is the retention of the delivery log.
	keepDeliveries = 14 * 24 * time.Hour
	// KeepEvents is the retention of events: a delivery that is replayed on its last day is
	// repeated for three more.
	KeepEvents = keepDeliveries + 4*24*time.Hour
)

// Purge deletes old events and deliveries, and what is left of deleted endpoints. It is a
// periodic.Step.
func (s *Service) Purge(ctx context.Context) (map[string]int, error) {
	now := s.now()
	// A delivery that waits at a disabled endpoint goes as well.
	old := webhookdelivery.And(webhookdelivery.CreatedAtLT(now.Add(-keepDeliveries)), webhookdelivery.RetryUntilLT(now))
	counts, err := s.cfg.DB.Purge(ctx, "deliveries_deleted", webhookdelivery.Table, webhookdelivery.Or(old,
		ofDeletedEndpoint))
	if err != nil {
		return counts, err
	}
	events, err := s.cfg.DB.Purge(ctx, "events_deleted", webhookevent.Table,
		webhookevent.CreatedAtLT(now.Add(-KeepEvents)), dispatched)
	maps.Copy(counts, events)
	if err != nil {
		return counts, err
	}
	_, err = s.cfg.DB.Purge(ctx, "endpoints_deleted", webhookendpoint.Table,
		webhookendpoint.StateEQ(webhookendpoint.StateDELETED), webhookendpoint.Not(hasDeliveries))
	return counts, err
}

func dispatched(e *sql.Selector) { e.Where(sql.NEQ(e.C(webhookevent.FieldBatch), 0)) }

func ofDeletedEndpoint(d *sql.Selector) {
	endpoints := sql.Table(webhookendpoint.Table)
	deleted := sql.Dialect(d.Dialect()).Select(endpoints.C(webhookendpoint.FieldID)).From(endpoints).
		Where(sql.EQ(endpoints.C(webhookendpoint.FieldState), string(webhookendpoint.StateDELETED)))
	d.Where(sql.In(d.C(webhookdelivery.FieldEndpointID), deleted))
}

func hasDeliveries(e *sql.Selector) {
	deliveries := sql.Table(webhookdelivery.Table)
	e.Where(sql.Exists(sql.Dialect(e.Dialect()).Select(deliveries.C(webhookdelivery.FieldID)).From(deliveries).
		Where(sql.ColumnsEQ(deliveries.C(webhookdelivery.FieldEndpointID), e.C(webhookendpoint.FieldID)))))
}
