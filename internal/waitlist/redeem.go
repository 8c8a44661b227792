package waitlist

import (
	"context"

	"github.com/google/uuid"

	"seckill/ent"
	"seckill/ent/waitlistentry"
	"seckill/internal/fault"
	"seckill/internal/reservation"
)

// Redeem turns an offer into an order task: no captcha, no path, no queue. The
// attempt is made like any other; its path token does not matter. The refusal
// says that the place is not the user's, or has no offer yet; the outcome
// PathInvalid, that nothing is held for it any more.
func (s *Service) Redeem(ctx context.Context, entry uuid.UUID, a reservation.Attempt) (reservation.Outcome, fault.Refusal, error) {
	invalid := fault.Refused{Why: fault.PathInvalid, At: []string{"input", "pathToken"}}
	e, err := s.Entry(ctx, entry)
	if err != nil {
		return reservation.Outcome{}, nil, err
	}
	if e == nil || e.User != a.User || e.Item != a.Item {
		return reservation.Outcome{}, invalid, nil
	}
	if e.Status == Waiting { // a place that looks ended may be a redeemed one: the gate knows, and answers a repeat
		return reservation.Outcome{}, invalid, nil
	}
	o, err := s.line.Redeem(ctx, a, e.ID)
	if err != nil || (o.Code != reservation.Accepted && o.Code != reservation.Replayed) {
		return o, nil, err
	}
	return o, nil, s.redeemed(ctx, e, o)
}

// redeemed notes that a place became an order task. If that is lost, the place
// looks lapsed in the end, until the buyer repeats; the order does not care. A key
// that was used before may be that of an earlier order: what the place still holds
// goes back.
func (s *Service) redeemed(ctx context.Context, e *Entry, o reservation.Outcome) error {
	for range maxRaces {
		if e == nil || e.Status == Redeemed {
			return nil
		}
		moved, err := s.change(ctx, e, func(u *ent.WaitlistEntryUpdate) {
			u.SetStatus(waitlistentry.StatusREDEEMED).SetOrderID(o.Task)
			if o.Code == reservation.Replayed {
				u.SetReturnDue(true)
			}
		})
		if moved != nil {
			s.meter.Turned("redeemed", 1)
		}
		if err != nil || moved != nil {
			return err
		}
		if e, err = s.Entry(ctx, e.ID); err != nil {
			return err
		}
	}
	return nil
}
