package waitlist

import (
	"bytes"
	"context"

	"seckill/ent"
	"seckill/internal/buy/reservation"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

// Redeem turns an offer into an order task, without captcha, path token or waiting
// room. The attempt is built as for Reserve; its path token is ignored. The refusal
// means that the entry is not the user's, or has no offer yet; the outcome PathInvalid
// means that its units are no longer reserved.
func (s *Service) Redeem(ctx context.Context, entry id.Waitlist, a reservation.Attempt) (reservation.Outcome, error) {
	invalid := fault.Refused{Why: fault.PathInvalid, At: []string{"pathToken"}}
	e, err := s.Entry(ctx, entry)
	if err != nil {
		return reservation.Outcome{}, err
	}
	if e == nil || e.User != a.User || e.Item != a.Item {
		return reservation.Outcome{}, invalid
	}
	if e.Status == Waiting { // an ended entry may have been redeemed: the gate decides, and answers a repeat
		return reservation.Outcome{}, invalid
	}
	o, err := s.cfg.Gate.Redeem(ctx, a, e.ID)
	if err != nil || (o.Code != reservation.Accepted && o.Code != reservation.Replayed) {
		return o, err
	}
	if o.Code == reservation.Replayed {
		if madeBefore(o.Task, e.ID) { // the idempotency key of an earlier order: the entry does not change
			return o, nil
		}
		// The task may have ended before the entry was recorded as redeemed, and the entry
		// have got units again.
		switch r, err := s.cfg.Gate.Release(ctx, e.ref()); {
		case err != nil:
			return reservation.Outcome{}, err
		case r.Building:
			return reservation.Outcome{}, fault.New(fault.Unavailable,
				"The sale is being loaded. Please try again with the same idempotency key.")
		}
	}
	return o, s.redeemed(ctx, e, o.Task)
}

// madeBefore compares the times of two UUIDv7, in milliseconds.
func madeBefore(a id.Task, b id.Waitlist) bool { return bytes.Compare(a[:6], b[:6]) < 0 }

// redeemed records that an entry became an order task. If the write is lost, the entry
// ends as EXPIRED until the buyer repeats; the order is not affected.
func (s *Service) redeemed(ctx context.Context, e *Entry, task id.Task) error {
	for range maxRaces {
		if e == nil || e.Status == Redeemed {
			return nil
		}
		moved, err := s.change(ctx, e, Redeemed, func(u *ent.WaitlistEntryUpdate) { u.SetOrderID(task) })
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
