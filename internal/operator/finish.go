package operator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"seckill/ent"
	"seckill/ent/intervention"
	"seckill/internal/auth"
	"seckill/internal/periodic"
	"seckill/internal/reservation"
	"seckill/internal/sale"
)

const (
	// finishEvery is the pause between steps: how long a change of stock may lie
	// after a crash before another process goes on with it.
	finishEvery = time.Second
	// finishBatch bounds one step.
	finishBatch = 100
	// finishAfter leaves fresh acts to the process that began them.
	finishAfter = 2 * time.Second
)

// Loop returns the loop that finishes interventions. Any number of processes may
// run it at once.
func (s *Service) Loop() periodic.Loop {
	return periodic.Loop{Name: "finish interventions", Every: finishEvery, Step: s.Step, Log: s.cfg.Log}
}

// Step goes on with interventions that were left half way.
func (s *Service) Step(ctx context.Context) (map[string]int, error) {
	rows, err := s.cfg.DB.Ent.Intervention.Query().Where(
		intervention.StateIn(intervention.StateTAKING, intervention.StateRETURNING, intervention.StateREFUNDING, intervention.StateFINISHING),
		intervention.UpdatedAtLTE(s.cfg.Clock.Now().Add(-finishAfter)),
	).Order(ent.Asc(intervention.FieldUpdatedAt)).Limit(finishBatch).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("find interventions to finish: %w", err)
	}
	counts := map[string]int{}
	var errs []error
	for _, row := range rows {
		act := fromRow(row)
		now, err := s.finish(ctx, act)
		if err != nil {
			errs = append(errs, fmt.Errorf("finish intervention %s: %w", act.ID, err))
		} else if now.State != act.State {
			counts[string(now.State)]++
			continue
		}
		if _, err := s.move(ctx, act, act.State); err != nil { // to the end of the line
			errs = append(errs, err)
		}
	}
	return counts, errors.Join(errs...)
}

// finish goes on with an intervention as far as it can, and returns it as it
// stands then. One that has to wait stays as it is.
func (s *Service) finish(ctx context.Context, act *Intervention) (*Intervention, error) {
	if act.Kind == VoidOrder && (act.State == Finishing || act.State == Refunding) {
		return s.finishVoid(ctx, act)
	}
	switch act.State {
	case Taking:
		return s.finishTaking(ctx, act)
	case Returning:
		return s.finishReturning(ctx, act)
	case Finishing:
		return s.finishAdding(ctx, act)
	case Requested, Declined, Refunding, Done, Refused:
	}
	return act, nil
}

// finishAdding adds written units to the gate.
func (s *Service) finishAdding(ctx context.Context, act *Intervention) (*Intervention, error) {
	r, err := s.cfg.Gate.Adjust(ctx, act.adjustment())
	if err != nil {
		return nil, err
	}
	if !r.Counted() {
		// Without a gate there is nothing to follow, unless one is to be built: the
		// build then has the units in it, and this act finds itself counted.
		v, err := s.cfg.Sales.ByID(ctx, act.Sale)
		if err != nil || r.Code != reservation.AdjustNotLoaded || v == nil || v.Status.Loaded() {
			return act, err
		}
	}
	return s.move(ctx, act, Done)
}

// finishTaking takes units off the gate, and then off the record.
func (s *Service) finishTaking(ctx context.Context, act *Intervention) (*Intervention, error) {
	v, err := s.cfg.Sales.ByID(ctx, act.Sale)
	if err != nil {
		return nil, err
	}
	if v == nil || len(sale.Targets(sale.ActAdjust, v.Status)) == 0 {
		return s.giveBack(ctx, act) // the sale is over
	}
	r, err := s.cfg.Gate.Adjust(ctx, act.adjustment())
	switch {
	case err != nil:
		return nil, err
	case r.Code == reservation.AdjustTooFew:
		return s.move(ctx, act, Refused)
	case !r.Counted():
		return act, nil // the gate is being built: later
	case r.Epoch != v.Epoch:
		return act, nil // the gate was built anew since the sale was read: later
	}
	err = s.writeStock(ctx, act.actor(), v, act, Done)
	switch {
	case errors.Is(err, errConflict):
	case errors.Is(err, sale.ErrMoved):
		return act, nil // the sale was changed, or its gate built anew: later
	case errors.Is(err, errTooFew):
		return s.giveBack(ctx, act)
	case err != nil:
		return nil, err
	}
	return s.Intervention(ctx, act.ID)
}

// giveBack gives units that were taken off the gate back to it, because the
// record does not let them go.
func (s *Service) giveBack(ctx context.Context, act *Intervention) (*Intervention, error) {
	now, err := s.move(ctx, act, Returning)
	if err != nil || now.State != Returning {
		return now, err
	}
	return s.finishReturning(ctx, now)
}

func (s *Service) finishReturning(ctx context.Context, act *Intervention) (*Intervention, error) {
	r, err := s.cfg.Gate.Adjust(ctx, reservation.Adjustment{
		Sale: act.Sale, Item: act.Item, Act: uuid.NewSHA1(act.ID, []byte("back")), Units: -act.Units, TakesBack: act.ID,
	})
	if err != nil {
		return nil, err
	}
	if r.Code == reservation.AdjustBuilding {
		return act, nil
	}
	return s.move(ctx, act, Refused) // given back, or there is no gate that took them
}

// actor is in whose name an act is written: the person who let it happen.
func (act *Intervention) actor() sale.Actor {
	by := sale.Actor{ID: act.RequestedBy, Role: auth.Operator}
	if act.DecidedBy != nil {
		by.ID = *act.DecidedBy
	}
	return by
}
