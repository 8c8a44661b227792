package webhook

import (
	"context"
	"fmt"
	"slices"
	"time"

	"entgo.io/ent/dialect/sql"

	"seckill/ent"
	"seckill/ent/webhookdelivery"
	"seckill/ent/webhookevent"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

const (
	// ofTests is the batch of test events: those of facts have a number above 0, and other
	// endpoints and readers of pages do not receive a test.
	ofTests = -1
	// MaxReplayed bounds the events of one call of ReplayRange.
	MaxReplayed = 5000
)

// SendTest sends a test event to an endpoint. Refusals: NOT_FOUND, and CONFLICT when it is
// disabled.
func (s *Service) SendTest(ctx context.Context, endpoint id.Endpoint) (*Delivery, error) {
	now, delivery := s.now(), id.New[id.Delivery]()
	e := Event{Kind: Test, Subject: endpoint.Public(), At: now, Data: struct {
		Endpoint string `json:"endpointId"`
	}{endpoint.Public()}}
	body, err := e.payload()
	if err != nil {
		return nil, err
	}
	err = s.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		if _, err := enabled(ctx, tx, endpoint, []string{"endpointId"}); err != nil {
			return err
		}
		row, err := tx.WebhookEvent.Create().SetMessageID(id.New[id.Event]()).SetKind(string(e.Kind)).
			SetSubject(e.Subject).SetPayload(body).SetBatch(ofTests).SetCreatedAt(now).Save(ctx)
		if err != nil {
			return err
		}
		return tx.WebhookDelivery.Create().SetID(delivery).SetEndpointID(endpoint).SetEventID(row.ID).
			SetSubject(e.Subject).SetDueAt(now).SetRetryUntil(now.Add(retryFor)).SetCreatedAt(now).Exec(ctx)
	})
	if err != nil {
		return nil, fmt.Errorf("send a test event to %s: %w", endpoint, err)
	}
	return s.delivery(ctx, delivery)
}

// RangeInput selects the events of a period for an endpoint.
type RangeInput struct {
	Endpoint     id.Endpoint
	Since, Until time.Time // of the facts; Until is not part of it
	// All also sends what the endpoint accepted. Otherwise only what was given up, and what it
	// was not sent because it was disabled, or did not receive the kind.
	All bool
}

// ReplayRange sends the events of a period to an endpoint, oldest first, at once and for up to
// three days. Deliveries that wait are left as they are. It returns the number of events, and
// the time from which to continue when there are more than MaxReplayed. Refusals: INVALID_INPUT,
// NOT_FOUND, and CONFLICT when the endpoint is disabled.
func (s *Service) ReplayRange(ctx context.Context, in RangeInput) (n int, next *time.Time, err error) {
	if !in.Until.After(in.Since) {
		return 0, nil, fault.BadField{At: []string{"until"}, Rule: fault.AfterSince}
	}
	var last *ent.WebhookEvent
	for seen := 0; ; seen += dispatchBatch {
		var events []*ent.WebhookEvent
		err = s.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) (err error) {
			to, err := enabled(ctx, tx, in.Endpoint, []string{"endpointId"})
			if err != nil {
				return err
			}
			if events, err = eventsOfRange(ctx, tx, in, last); err != nil || len(events) == 0 || seen == MaxReplayed {
				return err
			}
			sent, err := s.sendAgain(ctx, tx, in, kindsOf(to.Kinds), events)
			n += sent
			return err
		})
		switch {
		case err != nil:
			return n, nil, fmt.Errorf("replay events to %s: %w", in.Endpoint, err)
		case len(events) == 0:
			return n, nil, nil
		case seen == MaxReplayed:
			at := events[0].CreatedAt.UTC()
			return n, &at, nil
		}
		last = events[len(events)-1]
	}
}

// eventsOfRange returns the next events of a period, oldest first.
func eventsOfRange(ctx context.Context, tx *ent.Tx, in RangeInput, after *ent.WebhookEvent) ([]*ent.WebhookEvent,
	error) {
	return tx.WebhookEvent.Query().Where(webhookevent.BatchGT(0), func(s *sql.Selector) {
		at, row := s.C(webhookevent.FieldCreatedAt), s.C(webhookevent.FieldID)
		from := in.Since.UTC()
		if after != nil {
			from = after.CreatedAt
			s.Where(sql.Or(sql.GT(at, from), sql.GT(row, after.ID)))
		}
		s.Where(sql.And(sql.GTE(at, from), sql.LT(at, in.Until.UTC())))
		s.OrderBy(sql.Asc(at), sql.Asc(row))
	}).Select(webhookevent.FieldID, webhookevent.FieldKind, webhookevent.FieldSubject, webhookevent.FieldCreatedAt).
		Limit(dispatchBatch).All(ctx)
}

// sendAgain makes the deliveries of events due, and adds those that are missing.
func (s *Service) sendAgain(ctx context.Context, tx *ent.Tx, in RangeInput, kinds []Kind,
	events []*ent.WebhookEvent) (int, error) {
	ids := collect.Map(events, func(e *ent.WebhookEvent) int64 { return e.ID })
	found, err := tx.WebhookDelivery.Query().Where(webhookdelivery.EndpointID(in.Endpoint), func(s *sql.Selector) {
		values := collect.Map(ids, func(v int64) any { return v })
		s.Where(sql.In(s.C(webhookdelivery.FieldEventID), values...))
	}).All(ctx)
	if err != nil {
		return 0, err
	}
	now, known := s.now(), map[int64]bool{}
	var again []id.Delivery
	for _, d := range found {
		known[d.EventID] = true
		if d.State == webhookdelivery.StateGIVEN_UP || in.All && d.State == webhookdelivery.StateDELIVERED {
			again = append(again, d.ID)
		}
	}
	if len(again) > 0 {
		err := tx.WebhookDelivery.Update().Where(webhookdelivery.IDIn(again...)).SetState(webhookdelivery.StatePENDING).
			SetAttempts(0).ClearEndedAt().SetDueAt(now).SetRetryUntil(now.Add(retryFor)).Exec(ctx)
		if err != nil {
			return 0, err
		}
	}
	var missing []*ent.WebhookDeliveryCreate
	for _, e := range events {
		if known[e.ID] || !slices.Contains(kinds, Kind(e.Kind)) {
			continue
		}
		missing = append(missing, tx.WebhookDelivery.Create().SetID(id.New[id.Delivery]()).SetEndpointID(in.Endpoint).
			SetEventID(e.ID).SetSubject(e.Subject).SetDueAt(now).SetRetryUntil(now.Add(retryFor)).SetCreatedAt(now))
	}
	if len(missing) > 0 {
		err = tx.WebhookDelivery.CreateBulk(missing...).Exec(ctx)
	}
	return len(again) + len(missing), err
}
