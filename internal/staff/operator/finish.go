package operator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"seckill/ent"
	"seckill/ent/intervention"
	entsale "seckill/ent/sale"
	"seckill/internal/buy/reservation"
	"seckill/internal/buy/sale"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/periodic"
	"seckill/internal/platform/postgres"
)

const (
	// finishEvery is the pause between steps: the delay until another process continues a
	// change of stock after a crash.
	finishEvery = time.Second
	// idleFinish is the longest pause while there is none to continue.
	idleFinish = 5 * time.Second
	// finishBatch limits one step.
	finishBatch = 100
	// finishAfter leaves recent interventions to the process that started them.
	finishAfter = 2 * time.Second
)

// Loop returns the loop that finishes interventions. It may run in any number of
// processes.
func (s *Service) Loop() periodic.Loop {
	return periodic.Loop{Name: "finish interventions", Every: finishEvery, Idle: idleFinish, Step: s.Step, Log: s.cfg.Log,
		HasWork: s.cfg.DB.AnyRows(func() *sql.Selector {
			return postgres.Rows(intervention.Table, intervention.StateIn(append(unfinished, intervention.StateREQUESTED)...))
		})}
}

var unfinished = []intervention.State{
	intervention.StateTAKING, intervention.StateRETURNING, intervention.StateREFUNDING, intervention.StateFINISHING,
}

// Step continues interventions that were interrupted, and refuses requests whose sale has
// ended before they were decided.
func (s *Service) Step(ctx context.Context) (map[string]int, error) {
	refused, err := s.refuseOutdated(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := s.cfg.DB.Ent.Intervention.Query().Where(
		intervention.StateIn(unfinished...),
		intervention.UpdatedAtLTE(s.cfg.Clock.Now().Add(-finishAfter)),
	).Order(ent.Asc(intervention.FieldUpdatedAt)).Limit(finishBatch).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("find interventions to finish: %w", err)
	}
	counts := map[string]int{}
	if refused > 0 {
		counts[string(Refused)] = refused
	}
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
		if _, err := s.move(ctx, act, act.State); err != nil { // moves it to the end of the queue
			errs = append(errs, err)
		}
	}
	return counts, errors.Join(errs...)
}

// refuseOutdated refuses requests to change sales that have ended, and returns how many. The void
// of an order stays: money goes back also afterwards.
// Texts of a sale change after its end, too.
func (s *Service) refuseOutdated(ctx context.Context) (int, error) {
	n, err := s.cfg.DB.Ent.Intervention.Update().Where(
		intervention.StateEQ(intervention.StateREQUESTED),
		intervention.KindIn(intervention.KindADJUST_STOCK, intervention.KindEXTEND_SALE, intervention.KindCHANGE_GOODS,
			intervention.KindDRAW_VALUE),
		func(q *sql.Selector) {
			sales := sql.Table(entsale.Table)
			q.Where(sql.In(q.C(intervention.FieldSaleID), sql.Select(sales.C(entsale.FieldID)).From(sales).
				Where(sql.In(sales.C(entsale.FieldStatus), string(sale.Ended), string(sale.Cancelled)))))
		},
	).SetState(intervention.StateREFUSED).SetUpdatedAt(s.cfg.Clock.Now()).Save(ctx)
	if err != nil {
		return 0, fmt.Errorf("refuse outdated requests: %w", err)
	}
	if n > 0 {
		s.reportChange(ctx)
	}
	return n, nil
}

// finish continues an intervention as far as possible, and returns its new state. One
// that has to wait remains unchanged.
func (s *Service) finish(ctx context.Context, act *Intervention) (*Intervention, error) {
	if act.Kind == VoidOrder && (act.State == Finishing || act.State == Refunding) {
		return s.finishVoid(ctx, act)
	}
	if act.Kind.ofMoney() && act.State == Refunding {
		done, err := s.returnMoney(ctx, act)
		if _, refused := fault.AsRefusal(err); err != nil && !refused {
			return nil, err
		}
		return done.Intervention, nil
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

// finishAdding adds units to the gate that are in Postgres already.
func (s *Service) finishAdding(ctx context.Context, act *Intervention) (*Intervention, error) {
	r, err := s.cfg.Gate.Adjust(ctx, act.adjustment())
	if err != nil {
		return nil, err
	}
	if !r.Counted() {
		// Without a gate there is nothing to update, unless one is being built: that gate
		// then includes the units, and this intervention is found counted.
		v, err := s.cfg.Sales.ByID(ctx, act.Sale)
		if err != nil || r.Code != reservation.AdjustNotLoaded || v == nil || v.Status.Loaded() {
			return act, err
		}
	}
	return s.move(ctx, act, Done)
}

// finishTaking takes units from the gate, and then from Postgres.
func (s *Service) finishTaking(ctx context.Context, act *Intervention) (*Intervention, error) {
	v, err := s.cfg.Sales.ByID(ctx, act.Sale)
	if err != nil {
		return nil, err
	}
	if v == nil || len(sale.Targets(sale.ActAdjust, v.Status)) == 0 {
		return s.giveBack(ctx, act) // the sale has ended
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
		return act, nil // the gate was rebuilt since the sale was read: later
	}
	err = s.writeStock(ctx, act.actor(), v, act, Done)
	switch {
	case errors.Is(err, errConflict):
	case errors.Is(err, sale.ErrMoved):
		return act, nil // the sale was changed, or its gate rebuilt: later
	case errors.Is(err, errTooFew):
		return s.giveBack(ctx, act)
	case err != nil:
		return nil, err
	}
	return s.Intervention(ctx, act.ID)
}

// giveBack returns units to the gate that were taken from it, because Postgres cannot
// release them.
func (s *Service) giveBack(ctx context.Context, act *Intervention) (*Intervention, error) {
	now, err := s.move(ctx, act, Returning)
	if err != nil || now.State != Returning {
		return now, err
	}
	return s.finishReturning(ctx, now)
}

func (s *Service) finishReturning(ctx context.Context, act *Intervention) (*Intervention, error) {
	r, err := s.cfg.Gate.Adjust(ctx, reservation.Adjustment{
		Sale: act.Sale, Item: act.Item, Act: id.Act(uuid.NewSHA1(act.ID.UUID(), []byte("back"))), Units: -act.Units,
		Undoes: act.ID,
	})
	if err != nil {
		return nil, err
	}
	if r.Code == reservation.AdjustBuilding {
		return act, nil
	}
	return s.move(ctx, act, Refused) // returned, or the gate that they were taken from is gone
}

// actor returns the actor for the log: the user who confirmed, else the requester.
func (act *Intervention) actor() sale.Actor {
	by := sale.Actor{ID: act.RequestedBy, Role: auth.Operator}
	if act.DecidedBy != nil {
		by.ID = *act.DecidedBy
	}
	return by
}
