package webhook

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"entgo.io/ent/dialect/sql"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"seckill/ent"
	"seckill/ent/webhookdelivery"
	"seckill/ent/webhookendpoint"
	"seckill/ent/webhookevent"
	"seckill/internal/outbox/queue"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/id"
	"seckill/internal/platform/periodic"
	"seckill/internal/platform/postgres"
)

const (
	// parallel is how many requests a process makes at a time to one endpoint.
	parallel = 16
	// claimBatch bounds the deliveries that a process claims at a time.
	claimBatch = 4 * parallel
	// lease is how long a claimed delivery belongs to its process: longer than all attempts
	// of a batch take. Afterwards another process repeats it.
	lease = (claimBatch/parallel + 2) * AttemptTimeout
	// failingFor is how long all attempts at an endpoint fail before it is disabled.
	failingFor = 24 * time.Hour
	// sendEvery and idleSend bound the pause between two looks for new events.
	sendEvery = 250 * time.Millisecond
	idleSend  = time.Second
	// sendTimeout bounds one look. It does not include the requests.
	sendTimeout = 20 * time.Second
	// userAgent names the sender to receivers.
	userAgent = "Seckill-Webhooks/1"
)

func (s *Service) newQueue() *queue.Queue {
	return &queue.Queue{
		DB: s.cfg.DB, Now: s.now, Table: webhookdelivery.Table, Done: string(webhookdelivery.StateDELIVERED),
		Pauses: queue.Pauses{First: 5 * time.Second, Most: 6 * time.Hour}, Lease: lease, Batch: claimBatch,
		Parallel: parallel,
	}
}

// Run sends events to endpoints until ctx ends. Any number of processes share the work.
// An endpoint that is slow or down delays no other.
func (s *Service) Run(ctx context.Context) error {
	loop := periodic.Loop{Name: "webhooks", Every: sendEvery, Idle: idleSend, Timeout: sendTimeout, Busy: s.busy.Load,
		HasWork: s.cfg.DB.AnyRows(func() *sql.Selector { return postgres.Rows(webhookevent.Table, webhookevent.Batch(0)) },
			func() *sql.Selector { return postgres.Rows(webhookendpoint.Table, isEnabled) }),
		Log: s.cfg.Log}
	loop.Step = func(step context.Context) (map[string]int, error) { return s.step(ctx, step) }
	err := loop.Run(ctx)
	s.senders.Wait()
	return err
}

var isEnabled = webhookendpoint.StateEQ(webhookendpoint.StateENABLED)

// step dispatches new events, and starts a sender for each endpoint with deliveries that
// has none. The senders end with run.
func (s *Service) step(run, ctx context.Context) (map[string]int, error) {
	n, err := s.dispatch(ctx)
	if err != nil {
		return nil, err
	}
	endpoints, err := s.cfg.DB.Ent.WebhookEndpoint.Query().Where(isEnabled).Limit(maxEndpoints).IDs(ctx)
	if err != nil {
		return nil, fmt.Errorf("read webhook endpoints: %w", err)
	}
	lag, err := s.lag(ctx, endpoints)
	if err != nil {
		return nil, err
	}
	s.metrics.lag.Set(lag.Seconds())
	for _, endpoint := range endpoints {
		s.mu.Lock()
		busy := s.sending[endpoint]
		s.sending[endpoint] = true
		s.mu.Unlock()
		if !busy {
			s.senders.Go(func() { s.drain(run, endpoint) })
		}
	}
	s.busy.Store(n > 0)
	return nil, nil // metrics count the deliveries
}

// drain sends the due deliveries of an endpoint until there are none.
func (s *Service) drain(ctx context.Context, endpoint id.Endpoint) {
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.sending, endpoint)
	}()
	for ctx.Err() == nil {
		n, err := s.sendSome(ctx, endpoint)
		if err != nil && ctx.Err() == nil {
			s.cfg.Log.ErrorContext(ctx, "send webhooks", slog.String("endpoint", endpoint.Public()), slog.Any("error", err))
		}
		if err != nil || n == 0 {
			return
		}
	}
}

// sendSome claims due deliveries of an endpoint and sends them. It returns their number.
func (s *Service) sendSome(ctx context.Context, endpoint id.Endpoint) (n int, err error) {
	defer periodic.Recover(&err)
	to, err := s.cfg.DB.Ent.WebhookEndpoint.Get(ctx, endpoint)
	if err != nil {
		return 0, fmt.Errorf("read endpoint: %w", err)
	}
	if to.State != webhookendpoint.StateENABLED {
		return 0, nil
	}
	signers, err := s.signers(ctx, to)
	if err != nil {
		return 0, err
	}
	var events map[int64]*ent.WebhookEvent
	read := func(ctx context.Context, ids ...id.Delivery) ([]*ent.WebhookDelivery, error) {
		rows, err := s.cfg.DB.Ent.WebhookDelivery.Query().Where(webhookdelivery.IDIn(ids...)).All(ctx)
		if err == nil {
			events, err = s.eventsOf(ctx, rows)
		}
		return rows, err
	}
	return queue.Work(ctx, s.queue, read, func(ctx context.Context, d *ent.WebhookDelivery) error {
		return s.attempt(ctx, d, request{to: to, signers: signers, event: events[d.EventID]})
	}, webhookdelivery.EndpointID(endpoint), isFirst)
}

// isFirst matches deliveries without an earlier one of the same endpoint and subject that
// has not ended.
func isFirst(s *sql.Selector) {
	earlier := sql.Table(webhookdelivery.Table).As("earlier")
	s.Where(sql.NotExists(sql.Dialect(s.Dialect()).Select(earlier.C(webhookdelivery.FieldID)).From(earlier).Where(sql.And(
		sql.ColumnsEQ(earlier.C(webhookdelivery.FieldEndpointID), s.C(webhookdelivery.FieldEndpointID)),
		sql.ColumnsEQ(earlier.C(webhookdelivery.FieldSubject), s.C(webhookdelivery.FieldSubject)),
		sql.ColumnsLT(earlier.C(webhookdelivery.FieldEventID), s.C(webhookdelivery.FieldEventID)),
		sql.EQ(earlier.C(webhookdelivery.FieldState), string(webhookdelivery.StatePENDING)),
	))))
}

func (s *Service) eventsOf(ctx context.Context, deliveries []*ent.WebhookDelivery) (map[int64]*ent.WebhookEvent,
	error) {
	ids := collect.Map(deliveries, func(d *ent.WebhookDelivery) int64 { return d.EventID })
	rows, err := s.cfg.DB.Ent.WebhookEvent.Query().Where(webhookevent.IDIn(ids...)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read events: %w", err)
	}
	return collect.Index(rows, func(row *ent.WebhookEvent) int64 { return row.ID }), nil
}

// result is the response to an attempt.
type result struct {
	status int // 0 = no response
	took   time.Duration
}

// Reasons for which endpoints are disabled.
const (
	reasonFailing = "all deliveries failed for a day"
	reasonGone    = "the endpoint answered 410 Gone"
)

// request is what the attempts at one endpoint share, and the event of one of them.
type request struct {
	to      *ent.WebhookEndpoint
	signers []*standardwebhooks.Webhook
	event   *ent.WebhookEvent // nil = it is gone
}

// attempt sends a delivery once and records the result, also on the endpoint.
func (s *Service) attempt(ctx context.Context, d *ent.WebhookDelivery, r request) error {
	var res result
	reason := ""
	attempt := &queue.Attempt{ID: d.ID.UUID(), Number: d.Attempts, RetryUntil: d.RetryUntil}
	attempt.Then = func(ctx context.Context, tx *ent.Tx, outcome string) (err error) {
		reason, err = s.rate(ctx, tx, r.to, outcome, res)
		return err
	}
	outcome, err := s.queue.Try(ctx, attempt, func(ctx context.Context) (err error) {
		res, err = s.post(ctx, r)
		attempt.Columns = map[string]any{
			webhookdelivery.FieldStatusCode: res.status, webhookdelivery.FieldDurationMs: res.took.Milliseconds(),
		}
		return err
	})
	if err != nil {
		return err
	}
	s.metrics.attempts.WithLabelValues(outcome).Inc()
	s.metrics.seconds.Observe(res.took.Seconds())
	if reason != "" {
		s.cfg.Outbox.Forget()
		s.metrics.disabled.Inc()
		s.reportChange(ctx)
		s.cfg.Log.ErrorContext(ctx, "webhook endpoint disabled", slog.String("endpoint", r.to.ID.Public()),
			slog.String("reason", reason))
	}
	return nil
}

func (s *Service) post(ctx context.Context, r request) (res result, err error) {
	if r.event == nil {
		return res, queue.Final(errors.New("the event was purged"))
	}
	header, err := r.header(s.now())
	if err != nil {
		return res, err
	}
	began := time.Now()
	res.status, err = s.target.post(ctx, r.to.URL, header, r.event.Payload)
	res.took = time.Since(began)
	return res, err
}

// rate notes on the endpoint whether deliveries succeed, and disables it when they do not.
// It returns the reason when this call did. The row changes only with the first success
// or failure of a series.
func (s *Service) rate(ctx context.Context, tx *ent.Tx, to *ent.WebhookEndpoint, outcome string,
	res result) (reason string, err error) {
	update := tx.WebhookEndpoint.Update().Where(webhookendpoint.ID(to.ID))
	now, delivered := s.now(), outcome != queue.Failed && outcome != queue.GivenUp
	switch {
	case delivered && to.FailingSince == nil, outcome == queue.GivenUp && res.status == 0 && res.took == 0:
		return "", nil
	case delivered:
		return "", update.Where(webhookendpoint.FailingSinceNotNil()).ClearFailingSince().Exec(ctx)
	case res.status == http.StatusGone:
		reason = reasonGone
	case to.FailingSince == nil:
		return "", update.Where(webhookendpoint.FailingSinceIsNil()).SetFailingSince(now).Exec(ctx)
	case now.Sub(*to.FailingSince) < failingFor:
		return "", nil
	default:
		reason = reasonFailing
		update.Where(webhookendpoint.FailingSinceLTE(now.Add(-failingFor)))
	}
	n, err := update.Where(webhookendpoint.StateEQ(webhookendpoint.StateENABLED)).
		SetState(webhookendpoint.StateDISABLED).SetReason(reason).SetUpdatedAt(now).Save(ctx)
	if n == 0 {
		reason = ""
	}
	return reason, err
}

// header returns the header of a request, with a signature of each secret.
func (r request) header(now time.Time) (http.Header, error) {
	return signedHeader(r.signers, publicID(r.event.MessageID), now, r.event.Payload)
}

// signers returns one signer for each secret of an endpoint that is in use. A secret that
// is sealed with a former signing key is sealed again.
func (s *Service) signers(ctx context.Context, to *ent.WebhookEndpoint) ([]*standardwebhooks.Webhook, error) {
	secret, old, err := s.sealer.Open(to.ID.UUID(), to.Secret)
	if err != nil {
		return nil, fmt.Errorf("open secret: %w", err)
	}
	if old {
		sealed, err := s.sealer.Seal(to.ID.UUID(), secret)
		if err != nil {
			return nil, err
		}
		if err := s.cfg.DB.Ent.WebhookEndpoint.Update().Where(webhookendpoint.ID(to.ID), webhookendpoint.Secret(to.Secret)).
			SetSecret(sealed).Exec(ctx); err != nil {
			return nil, fmt.Errorf("seal secret again: %w", err)
		}
	}
	secrets := [][]byte{secret}
	if to.PreviousUntil != nil && s.now().Before(*to.PreviousUntil) {
		if previous, _, err := s.sealer.Open(to.ID.UUID(), to.PreviousSecret); err == nil {
			secrets = append(secrets, previous)
		}
	}
	signers := make([]*standardwebhooks.Webhook, len(secrets))
	for i, secret := range secrets {
		if signers[i], err = standardwebhooks.NewWebhookRaw(secret); err != nil {
			return nil, fmt.Errorf("signer: %w", err)
		}
	}
	return signers, nil
}
