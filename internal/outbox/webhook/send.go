package webhook

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"entgo.io/ent/dialect/sql"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"golang.org/x/sync/errgroup"

	"seckill/ent"
	"seckill/ent/webhookdelivery"
	"seckill/ent/webhookendpoint"
	"seckill/ent/webhookevent"
	"seckill/internal/outbox/delivery"
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

var pauses = delivery.Pauses{First: 5 * time.Second, Most: 6 * time.Hour}

// Run sends events to endpoints until ctx ends. Any number of processes share the work.
// An endpoint that is slow or down delays no other.
func (s *Service) Run(ctx context.Context) error {
	loop := periodic.Loop{Name: "webhooks", Every: sendEvery, Idle: idleSend, Timeout: sendTimeout, Busy: s.busy.Load, Log: s.log}
	loop.Step = func(step context.Context) (map[string]int, error) { return s.step(ctx, step) }
	err := loop.Run(ctx)
	s.senders.Wait()
	return err
}

// step dispatches new events, and starts a sender for each endpoint with deliveries that
// has none. The senders end with run.
func (s *Service) step(run, ctx context.Context) (map[string]int, error) {
	n, err := s.dispatch(ctx)
	if err != nil {
		return nil, err
	}
	enabled, err := s.db.Ent.WebhookEndpoint.Query().
		Where(webhookendpoint.StateEQ(webhookendpoint.StateENABLED)).Limit(maxEndpoints).IDs(ctx)
	if err != nil {
		return nil, fmt.Errorf("read webhook endpoints: %w", err)
	}
	lag, err := s.lag(ctx, enabled)
	if err != nil {
		return nil, err
	}
	s.metrics.lag.Set(lag.Seconds())
	for _, endpoint := range enabled {
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
			s.log.ErrorContext(ctx, "send webhooks", slog.String("endpoint", endpoint.Public()), slog.Any("error", err))
		}
		if err != nil || n == 0 {
			return
		}
	}
}

// sendSome claims due deliveries of an endpoint and sends them. It returns their number.
func (s *Service) sendSome(ctx context.Context, endpoint id.Endpoint) (n int, err error) {
	defer periodic.Recover(&err)
	to, err := s.db.Ent.WebhookEndpoint.Get(ctx, endpoint)
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
	claimed, err := s.claim(ctx, endpoint)
	if err != nil || len(claimed) == 0 {
		return 0, err
	}
	events, err := s.eventsOf(ctx, claimed)
	if err != nil {
		return 0, err
	}
	var tasks errgroup.Group
	tasks.SetLimit(parallel)
	for _, d := range claimed {
		tasks.Go(func() (err error) {
			defer periodic.Recover(&err)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return s.attempt(ctx, d, request{to: to, signers: signers, event: events[d.EventID]})
		})
	}
	return len(claimed), tasks.Wait()
}

// claim reserves due deliveries of an endpoint for this process. A delivery of a subject
// with an earlier one that has not ended is not due.
func (s *Service) claim(ctx context.Context, endpoint id.Endpoint) (claimed []*ent.WebhookDelivery, err error) {
	err = s.db.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		now := s.now()
		query := tx.WebhookDelivery.Query().Where(
			webhookdelivery.EndpointID(endpoint), webhookdelivery.StateEQ(webhookdelivery.StatePENDING),
			webhookdelivery.DueAtLTE(now), isFirst,
		).Order(ent.Asc(webhookdelivery.FieldDueAt, webhookdelivery.FieldEventID)).Limit(claimBatch)
		postgres.SkipLocked(s.db.Dialect, query)
		var err error
		if claimed, err = query.All(ctx); err != nil || len(claimed) == 0 {
			return err
		}
		ids := make([]id.Delivery, len(claimed))
		for i, d := range claimed {
			ids[i] = d.ID
			d.Attempts++
		}
		return tx.WebhookDelivery.Update().Where(webhookdelivery.IDIn(ids...)).AddAttempts(1).SetDueAt(now.Add(lease)).Exec(ctx)
	})
	if err != nil {
		return nil, fmt.Errorf("claim deliveries: %w", err)
	}
	return claimed, nil
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

func (s *Service) eventsOf(ctx context.Context, deliveries []*ent.WebhookDelivery) (map[int64]*ent.WebhookEvent, error) {
	ids := make([]int64, len(deliveries))
	for i, d := range deliveries {
		ids[i] = d.EventID
	}
	rows, err := s.db.Ent.WebhookEvent.Query().Where(webhookevent.IDIn(ids...)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read events: %w", err)
	}
	events := make(map[int64]*ent.WebhookEvent, len(rows))
	for _, row := range rows {
		events[row.ID] = row
	}
	return events, nil
}

// request is what the attempts at one endpoint share, and the event of one of them.
type request struct {
	to      *ent.WebhookEndpoint
	signers []*standardwebhooks.Webhook
	event   *ent.WebhookEvent // nil = it is gone
}

// attempt sends a delivery once and records the result.
func (s *Service) attempt(ctx context.Context, d *ent.WebhookDelivery, r request) error {
	if r.event == nil {
		return s.record(ctx, d, r.to, result{outcome: givenUp, err: "the event was purged"})
	}
	header, err := r.header(s.now())
	if err != nil {
		return err
	}
	began := time.Now()
	status, err := s.target.post(ctx, r.to.URL, header, r.event.Payload)
	res := result{outcome: delivered, status: status, took: time.Since(began)}
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err() // the process ends: another one repeats the delivery after its lease
		}
		res.outcome, res.err = failed, delivery.Reason(err)
	}
	return s.record(ctx, d, r.to, res)
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
		if err := s.db.Ent.WebhookEndpoint.Update().Where(webhookendpoint.ID(to.ID), webhookendpoint.Secret(to.Secret)).SetSecret(sealed).Exec(ctx); err != nil {
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
