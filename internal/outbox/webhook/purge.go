package webhook

import (
	"context"
	"maps"
	"time"

	"entgo.io/ent/dialect/sql"

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
	now := s.now()
	// A delivery that waits at a disabled endpoint goes as well.
	old := webhookdelivery.And(webhookdelivery.CreatedAtLT(now.Add(-keepDeliveries)), webhookdelivery.RetryUntilLT(now))
	counts, err := s.db.Purge(ctx, "deliveries_deleted", webhookdelivery.Table, webhookdelivery.Or(old, ofDeletedEndpoint))
	if err != nil {
		return counts, err
	}
	events, err := s.db.Purge(ctx, "events_deleted", webhookevent.Table,
		webhookevent.CreatedAtLT(now.Add(-KeepEvents)), dispatched)
	maps.Copy(counts, events)
	if err != nil {
		return counts, err
	}
	_, err = s.db.Purge(ctx, "endpoints_deleted", webhookendpoint.Table,
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
