package webhook

import (
	"context"
	"fmt"
	"slices"
	"time"

	"entgo.io/ent/dialect"

	"seckill/ent"
	"seckill/ent/webhookdelivery"
	"seckill/ent/webhookendpoint"
	"seckill/ent/webhookevent"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/id"
)

const (
	// dispatchBatch bounds the events of one transaction; it has up to maxEndpoints
	// deliveries for each.
	dispatchBatch = 250
	// maxDispatches bounds one step: 5,000 events. The rest is left for the next step.
	maxDispatches = 20
	// insertRows bounds the deliveries of one statement: Postgres takes 65,535 parameters,
	// SQLite 32,766.
	insertRows = 1000
	// retryFor is how long a delivery is repeated.
	retryFor = 72 * time.Hour
	// dispatchLock is the key of the advisory lock that lets one process dispatch at a time.
	// Otherwise a later event could reach an endpoint before an earlier one.
	dispatchLock = 0x7765_6268_6f6f_6b73 // "webhooks"
)

// dispatch gives new events to the endpoints that receive them, in the order of the
// events. It returns the number of events.
func (s *Service) dispatch(ctx context.Context) (int, error) {
	// Most looks find nothing, and need neither a transaction nor the lock for that.
	if found, err := s.cfg.DB.Ent.WebhookEvent.Query().Where(webhookevent.Batch(0)).Exist(ctx); err != nil || !found {
		return 0, err
	}
	all := 0
	for range maxDispatches {
		n, err := s.dispatchSome(ctx)
		all += n
		if err != nil {
			return all, fmt.Errorf("dispatch events: %w", err)
		}
		if n < dispatchBatch {
			break
		}
	}
	return all, nil
}

func (s *Service) dispatchSome(ctx context.Context) (n int, err error) {
	err = s.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		n = 0
		if mine, err := s.lockDispatch(ctx, tx); err != nil || !mine {
			return err
		}
		events, err := tx.WebhookEvent.Query().Where(webhookevent.Batch(0)).Order(ent.Asc(webhookevent.FieldID)).
			Select(webhookevent.FieldID, webhookevent.FieldKind, webhookevent.FieldSubject).Limit(dispatchBatch).All(ctx)
		if err != nil || len(events) == 0 {
			return err
		}
		if err := s.addDeliveries(ctx, tx, events); err != nil {
			return err
		}
		n = len(events)
		return s.number(ctx, tx, events)
	})
	return n, err
}

// lockDispatch takes the right to dispatch until the transaction ends; false = another
// process has it. SQLite has one transaction at a time that writes.
func (s *Service) lockDispatch(ctx context.Context, tx *ent.Tx) (mine bool, err error) {
	if s.cfg.DB.Dialect != dialect.Postgres {
		return true, nil
	}
	rows, err := tx.QueryContext(ctx, "SELECT pg_try_advisory_xact_lock($1)", int64(dispatchLock))
	if err != nil {
		return false, err
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(&mine); err != nil {
			return false, err
		}
	}
	return mine, rows.Err()
}

// number gives the events the next number of a batch: a reader in the order of batch and
// id misses none, because batches are committed one after the other.
func (s *Service) number(ctx context.Context, tx *ent.Tx, events []*ent.WebhookEvent) error {
	last, err := tx.WebhookEvent.Query().Order(ent.Desc(webhookevent.FieldBatch)).Select(webhookevent.FieldBatch).
		First(ctx)
	if err != nil {
		return err
	}
	ids := collect.Map(events, func(e *ent.WebhookEvent) int64 { return e.ID })
	// The time keeps the numbers growing when all former events were purged.
	batch := max(last.Batch+1, s.now().UnixMilli())
	return tx.WebhookEvent.Update().Where(webhookevent.IDIn(ids...)).SetBatch(batch).Exec(ctx)
}

func (s *Service) addDeliveries(ctx context.Context, tx *ent.Tx, events []*ent.WebhookEvent) error {
	endpoints, err := tx.WebhookEndpoint.Query().Where(webhookendpoint.StateEQ(webhookendpoint.StateENABLED)).
		Select(webhookendpoint.FieldID, webhookendpoint.FieldKinds).Limit(maxEndpoints).All(ctx)
	if err != nil {
		return err
	}
	now := s.now()
	var rows []*ent.WebhookDeliveryCreate
	for _, endpoint := range endpoints {
		kinds := kindsOf(endpoint.Kinds)
		for _, e := range events {
			if slices.Contains(kinds, Kind(e.Kind)) {
				rows = append(rows, tx.WebhookDelivery.Create().SetID(id.New[id.Delivery]()).SetEndpointID(endpoint.ID).
					SetEventID(e.ID).
					SetSubject(e.Subject).SetDueAt(now).SetRetryUntil(now.Add(retryFor)).SetCreatedAt(now))
			}
		}
	}
	for some := range slices.Chunk(rows, insertRows) {
		if err := tx.WebhookDelivery.CreateBulk(some...).Exec(ctx); err != nil {
			return err
		}
	}
	return nil
}

// lag returns the age of the oldest event that an enabled endpoint has not received; 0
// without one.
func (s *Service) lag(ctx context.Context, enabled []id.Endpoint) (time.Duration, error) {
	if len(enabled) == 0 {
		return 0, nil
	}
	oldest := s.now()
	undispatched, err := s.cfg.DB.Ent.WebhookEvent.Query().Where(webhookevent.Batch(0)).
		Order(ent.Asc(webhookevent.FieldID)).Select(webhookevent.FieldCreatedAt).First(ctx)
	switch {
	case err == nil && undispatched.CreatedAt.Before(oldest):
		oldest = undispatched.CreatedAt
	case err != nil && !ent.IsNotFound(err):
		return 0, fmt.Errorf("read oldest event: %w", err)
	}
	waiting, err := s.cfg.DB.Ent.WebhookDelivery.Query().
		Where(webhookdelivery.StateEQ(webhookdelivery.StatePENDING), webhookdelivery.EndpointIDIn(enabled...)).
		Order(ent.Asc(webhookdelivery.FieldCreatedAt)).Select(webhookdelivery.FieldCreatedAt).First(ctx)
	switch {
	case err == nil && waiting.CreatedAt.Before(oldest):
		oldest = waiting.CreatedAt
	case err != nil && !ent.IsNotFound(err):
		return 0, fmt.Errorf("read oldest delivery: %w", err)
	}
	return s.now().Sub(oldest), nil
}
