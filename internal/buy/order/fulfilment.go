package order

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"seckill/ent"
	"seckill/ent/fulfilment"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
	"seckill/internal/platform/typed"
)

// FulfilmentState is how far the goods of an order are.
type FulfilmentState string

// States of a fulfilment. The shop's own system decides about their order.
const (
	Preparing FulfilmentState = "PREPARING"
	Shipped   FulfilmentState = "SHIPPED"
	Delivered FulfilmentState = "DELIVERED"
	Returned  FulfilmentState = "RETURNED"
)

// Bounds of a fulfilment in characters.
const (
	maxCarrier  = 64
	maxTracking = 500
)

// maxFulfilmentTries bounds the attempts while the order changes at the same time.
const maxFulfilmentTries = 3

// Fulfilment is how far the goods of an order are.
type Fulfilment struct {
	State       FulfilmentState
	Carrier     string // "" = not known
	TrackingURL string // of https; "" = none
	UpdatedAt   time.Time
}

// Check returns all faults of what staff enter.
func (f Fulfilment) Check() error {
	_, err := f.ready()
	return err
}

func (f Fulfilment) ready() (Fulfilment, error) {
	f.Carrier, f.TrackingURL = typed.Line(f.Carrier), typed.Line(f.TrackingURL)
	var carrier, tracking error
	if rule := fault.Line(f.Carrier, 0, maxCarrier); rule != (fault.Rule{}) {
		carrier = fault.BadField{At: []string{"carrier"}, Rule: rule}
	}
	if u, err := url.Parse(f.TrackingURL); f.TrackingURL != "" && (err != nil || u.Scheme != "https" || u.Host == "" ||
		u.User != nil || len(f.TrackingURL) > maxTracking) {
		tracking = fault.BadField{At: []string{"trackingUrl"}, Rule: fault.HTTPSAddress}
	}
	return f, fault.All(carrier, tracking)
}

// Fulfilments stores how far the goods of orders are.
type Fulfilments struct {
	DB          *postgres.DB
	AfterCommit *AfterCommit
	Facts       Facts // nil = pass nothing on
	Clock       clock.Clock
}

// Set stores how far the goods of an order are, notes it in the order's log, and publishes the
// order. Setting the stored values again changes nothing. Refusals: INVALID_INPUT; NOT_FOUND;
// CONFLICT when the order was never paid.
func (s Fulfilments) Set(ctx context.Context, by Actor, orderID id.Order, f Fulfilment) (o *Order, err error) {
	if f, err = f.ready(); err != nil {
		return nil, err
	}
	changed := false
	for range maxFulfilmentTries {
		err = s.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) (err error) {
			o, changed, err = s.set(ctx, tx, Entry{By: by, Code: Code(f.State)}, orderID, f)
			return err
		})
		if !errors.Is(err, ErrMoved) && !postgres.IsUnique(err) {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	if changed {
		s.AfterCommit.Publish(ctx, o)
	}
	return o, nil
}

func (s Fulfilments) set(ctx context.Context, tx *ent.Tx, entry Entry, orderID id.Order, f Fulfilment) (o *Order,
	changed bool, err error) {
	row, err := tx.Order.Get(ctx, orderID)
	if ent.IsNotFound(err) {
		return nil, false, fault.Refused{Why: fault.Unknown, At: []string{"orderId"}}
	}
	if err != nil {
		return nil, false, fmt.Errorf("read order %s: %w", orderID, err)
	}
	if o = FromRow(row); o.PaidAt == nil {
		return nil, false, fault.Refused{Why: fault.Conflict, At: []string{"orderId"}}
	}
	before, err := tx.Fulfilment.Get(ctx, orderID)
	if err != nil && !ent.IsNotFound(err) {
		return nil, false, fmt.Errorf("read fulfilment of order %s: %w", orderID, err)
	}
	if before != nil && FulfilmentState(before.State) == f.State && before.Carrier == f.Carrier &&
		before.TrackingURL == f.TrackingURL {
		return o, false, nil
	}
	entry.Note = f.Carrier
	if o, err = Note(ctx, tx, o, s.Clock.Now(), entry); err != nil {
		return nil, false, err
	}
	if before == nil {
		err = tx.Fulfilment.Create().SetID(o.ID).SetState(fulfilment.State(f.State)).SetCarrier(f.Carrier).
			SetTrackingURL(f.TrackingURL).SetUpdatedAt(o.UpdatedAt).Exec(ctx)
	} else {
		err = tx.Fulfilment.UpdateOneID(o.ID).SetState(fulfilment.State(f.State)).SetCarrier(f.Carrier).
			SetTrackingURL(f.TrackingURL).SetUpdatedAt(o.UpdatedAt).Exec(ctx)
	}
	if err != nil {
		return nil, false, fmt.Errorf("write fulfilment of order %s: %w", orderID, err)
	}
	return o, true, orNone(s.Facts).FulfilmentChanged(ctx, tx, o)
}

// Fulfilment returns how far the goods of an order are; nil = the shop has not said.
func (s *Store) Fulfilment(ctx context.Context, o *Order) (*Fulfilment, error) {
	row, err := s.db.Ent.Fulfilment.Get(ctx, o.ID)
	if ent.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read fulfilment of order %s: %w", o.ID, err)
	}
	return &Fulfilment{State: FulfilmentState(row.State), Carrier: row.Carrier, TrackingURL: row.TrackingURL,
		UpdatedAt: row.UpdatedAt.UTC()}, nil
}
