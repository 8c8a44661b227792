package waitlist

import (
	"bytes"
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
	o, err := s.gate.Redeem(ctx, a, e.ID)
	if err != nil || (o.Code != reservation.Accepted && o.Code != reservation.Replayed) {
		return o, nil, err
	}
	if o.Code == reservation.Replayed && madeBefore(o.Task, e.ID) { // the key of an earlier order: the place stays as it is
		return o, nil, nil
	}
	return o, nil, s.redeemed(ctx, e, o.Task)
}

// madeBefore compares when two UUIDv7 were made, to the millisecond.
func madeBefore(a, b uuid.UUID) bool { return bytes.Compare(a[:6], b[:6]) < 0 }

// redeemed notes that a place became an order task. If that is lost, the place
// looks lapsed in the end, until the buyer repeats; the order does not care.
func (s *Service) redeemed(ctx context.Context, e *Entry, task uuid.UUID) error {
	for range maxRaces {
		if e == nil || e.Status == Redeemed {
			return nil
		}
		moved, err := s.change(ctx, e, func(u *ent.WaitlistEntryUpdate) {
			u.SetStatus(waitlistentry.StatusREDEEMED).SetOrderID(task)
		})
		if moved != nil {
			s.metrics.turned("redeemed", 1)
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
