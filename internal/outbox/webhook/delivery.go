package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"seckill/ent"
	"seckill/ent/webhookdelivery"
	"seckill/ent/webhookendpoint"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

// DeliveryState is the state of a delivery.
type DeliveryState string

// States of a delivery.
const (
	Pending   DeliveryState = "PENDING" // waits for its first or next attempt
	Delivered DeliveryState = "DELIVERED"
	GivenUp   DeliveryState = "GIVEN_UP" // repeated for three days in vain
)

// Delivery is an event on its way to one endpoint, or a line of the delivery log.
type Delivery struct {
	ID         id.Delivery
	Endpoint   id.Endpoint
	Event      id.Event // the receiver's key against duplicates
	Kind       Kind
	Subject    string
	Payload    json.RawMessage
	State      DeliveryState
	Attempts   int
	StatusCode int // of the last response; 0 = none
	Error      string
	Duration   time.Duration // of the last attempt
	DueAt      time.Time     // of the next attempt, while pending
	CreatedAt  time.Time
	EndedAt    *time.Time
}

// DeliveriesInput selects a page of the delivery log of an endpoint, newest first.
type DeliveriesInput struct {
	Endpoint id.Endpoint
	State    *DeliveryState // nil = all
	After    id.Delivery    // only deliveries older than this one; Nil = from the newest
	Limit    int            // 1 to 100
}

// maxPage bounds a page of the delivery log.
const maxPage = 100

// Deliveries returns a page of the delivery log, and whether there are older ones.
func (s *Service) Deliveries(ctx context.Context, in DeliveriesInput) (page []*Delivery, more bool, err error) {
	if in.Limit < 1 || in.Limit > maxPage {
		return nil, false, fmt.Errorf("list deliveries: page of %d, want 1 to %d", in.Limit, maxPage)
	}
	query := s.cfg.DB.Ent.WebhookDelivery.Query().Where(webhookdelivery.EndpointID(in.Endpoint)).
		Order(ent.Desc(webhookdelivery.FieldID)).Limit(in.Limit + 1)
	if in.State != nil {
		query.Where(webhookdelivery.StateEQ(webhookdelivery.State(*in.State)))
	}
	if !in.After.IsZero() {
		query.Where(webhookdelivery.IDLT(in.After))
	}
	rows, err := query.All(ctx)
	if err != nil {
		return nil, false, fmt.Errorf("list deliveries: %w", err)
	}
	more = len(rows) > in.Limit
	page, err = s.deliveries(ctx, rows[:min(len(rows), in.Limit)])
	return page, more, err
}

// Replay sends a delivery again that has ended, with the same event id, at once and for
// up to three days. Replaying one that waits makes it due now. Refusals: NOT_FOUND, and
// CONFLICT when the endpoint is disabled or deleted.
func (s *Service) Replay(ctx context.Context, delivery id.Delivery) (*Delivery, error) {
	at := []string{"deliveryId"}
	err := s.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		row, err := tx.WebhookDelivery.Get(ctx, delivery)
		if ent.IsNotFound(err) {
			return fault.Refused{Why: fault.Unknown, At: at}
		}
		if err != nil {
			return err
		}
		if _, err := enabled(ctx, tx, row.EndpointID, at); err != nil {
			return err
		}
		now := s.now()
		update := tx.WebhookDelivery.Update().Where(webhookdelivery.ID(delivery), webhookdelivery.Attempts(row.Attempts)).
			SetDueAt(now).SetRetryUntil(now.Add(retryFor))
		if row.State != webhookdelivery.StatePENDING {
			update.SetState(webhookdelivery.StatePENDING).SetAttempts(0).ClearEndedAt()
		}
		return update.Exec(ctx)
	})
	if err != nil {
		return nil, fmt.Errorf("replay delivery %s: %w", delivery, err)
	}
	return s.delivery(ctx, delivery)
}

func (s *Service) delivery(ctx context.Context, delivery id.Delivery) (*Delivery, error) {
	row, err := s.cfg.DB.Ent.WebhookDelivery.Get(ctx, delivery)
	if err != nil {
		return nil, fmt.Errorf("read delivery %s: %w", delivery, err)
	}
	page, err := s.deliveries(ctx, []*ent.WebhookDelivery{row})
	if err != nil {
		return nil, err
	}
	return page[0], nil
}

// enabled returns an endpoint that receives events. Refusals: NOT_FOUND, and CONFLICT when it is
// disabled or deleted.
func enabled(ctx context.Context, tx *ent.Tx, endpoint id.Endpoint, at []string) (*ent.WebhookEndpoint, error) {
	row, err := tx.WebhookEndpoint.Get(ctx, endpoint)
	if ent.IsNotFound(err) {
		return nil, fault.Refused{Why: fault.Unknown, At: at}
	}
	if err != nil {
		return nil, err
	}
	if row.State != webhookendpoint.StateENABLED {
		return nil, fault.Refused{Why: fault.Conflict, At: at}
	}
	return row, nil
}

func (s *Service) deliveries(ctx context.Context, rows []*ent.WebhookDelivery) ([]*Delivery, error) {
	events, err := s.eventsOf(ctx, rows)
	if err != nil {
		return nil, err
	}
	out := make([]*Delivery, len(rows))
	for i, row := range rows {
		out[i] = &Delivery{
			ID: row.ID, Endpoint: row.EndpointID, Subject: row.Subject, State: DeliveryState(row.State), Attempts: row.Attempts,
			StatusCode: row.StatusCode, Error: row.Error, Duration: time.Duration(row.DurationMs) * time.Millisecond,
			DueAt: row.DueAt.UTC(), CreatedAt: row.CreatedAt.UTC(), EndedAt: clock.UTC(row.EndedAt),
		}
		if e := events[row.EventID]; e != nil {
			out[i].Event, out[i].Kind, out[i].Payload = e.MessageID, Kind(e.Kind), e.Payload
		}
	}
	return out, nil
}
