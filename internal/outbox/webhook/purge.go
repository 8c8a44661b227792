package webhook

import (
	"context"
	"maps"
	"time"

	"seckill/ent"
	"seckill/ent/webhookdelivery"
	"seckill/ent/webhookendpoint"
	"seckill/ent/webhookevent"
)

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
	counts, err := s.db.Purge(ctx, "deliveries_deleted", s.purgeDeliveries)
	if err != nil {
		return counts, err
	}
	events, err := s.db.Purge(ctx, "events_deleted", s.purgeEvents)
	maps.Copy(counts, events)
	if err != nil {
		return counts, err
	}
	return counts, s.purgeEndpoints(ctx)
}

func (s *Service) purgeDeliveries(ctx context.Context, tx *ent.Tx, limit int) (int, error) {
	deleted, err := tx.WebhookEndpoint.Query().Where(webhookendpoint.StateEQ(webhookendpoint.StateDELETED)).IDs(ctx)
	if err != nil {
		return 0, err
	}
	// One that waits at a disabled endpoint goes as well.
	ids, err := tx.WebhookDelivery.Query().Where(webhookdelivery.Or(
		webhookdelivery.EndpointIDIn(deleted...),
		webhookdelivery.And(webhookdelivery.CreatedAtLT(s.now().Add(-keepDeliveries)), webhookdelivery.RetryUntilLT(s.now())),
	)).Limit(limit).IDs(ctx)
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	return tx.WebhookDelivery.Delete().Where(webhookdelivery.IDIn(ids...)).Exec(ctx)
}

func (s *Service) purgeEvents(ctx context.Context, tx *ent.Tx, limit int) (int, error) {
	ids, err := tx.WebhookEvent.Query().Where(webhookevent.CreatedAtLT(s.now().Add(-KeepEvents)), webhookevent.BatchGT(0)).
		Limit(limit).IDs(ctx)
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	return tx.WebhookEvent.Delete().Where(webhookevent.IDIn(ids...)).Exec(ctx)
}

// purgeEndpoints deletes the rows of deleted endpoints without deliveries.
func (s *Service) purgeEndpoints(ctx context.Context) error {
	return s.db.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		gone, err := tx.WebhookEndpoint.Query().Where(webhookendpoint.StateEQ(webhookendpoint.StateDELETED)).IDs(ctx)
		if err != nil {
			return err
		}
		for _, endpoint := range gone {
			left, err := tx.WebhookDelivery.Query().Where(webhookdelivery.EndpointID(endpoint)).Exist(ctx)
			if err != nil {
				return err
			}
			if left {
				continue
			}
			if err := tx.WebhookEndpoint.DeleteOneID(endpoint).Exec(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}
