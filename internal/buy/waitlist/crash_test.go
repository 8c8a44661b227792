package waitlist_test

import (
	"context"
	"testing"
	"time"

	"seckill/ent"
	"seckill/ent/waitlistentry"
	"seckill/internal/buy/reservation"
	"seckill/internal/buy/waitlist"
	"seckill/internal/platform/id"
)

// A process crashes between any two writes of an offer. The next step of any process
// completes the work, and no unit is lost or reserved twice.
func TestACrashBetweenAnyTwoStepsLosesNoUnit(t *testing.T) {
	t.Parallel()
	// crash leaves the state that the crashed process had written.
	for name, c := range map[string]struct {
		offered bool // whether the first buyer had an offer before
		crash   func(h *hall, first *waitlist.Entry)
		first   waitlist.Status // statuses of the two entries after the next step
		second  waitlist.Status
		want    figures
	}{
		"units held, row not written": {false, func(h *hall, first *waitlist.Entry) {
			_, err := h.gate.Reacquire(h.t.Context(), reservation.Reacquire{Ref: hold(first), Quantity: 1})
			h.must(err)
		}, waitlist.Offered, waitlist.Waiting, figures{reserved: 1, holders: 1, messages: 1}},
		"redeemed, row not written": {true, func(h *hall, first *waitlist.Entry) {
			o, err := h.gate.Redeem(h.t.Context(), h.attempt(first.User), first.ID)
			if h.must(err); o.Code != reservation.Accepted {
				h.t.Fatalf("redeem: %+v", o)
			}
			h.clock.Advance(time.Minute + time.Second)
		}, waitlist.Expired, waitlist.Waiting, figures{reserved: 1, holders: 1, messages: 2}},
		"row ended, units not given back": {true, func(h *hall, first *waitlist.Entry) {
			h.end(first)
		}, waitlist.Expired, waitlist.Offered, figures{reserved: 1, holders: 1, messages: 1}},
		"units given back, row not marked": {true, func(h *hall, first *waitlist.Entry) {
			h.end(first)
			_, err := h.gate.Release(h.t.Context(), hold(first))
			h.must(err)
		}, waitlist.Expired, waitlist.Offered, figures{reserved: 1, holders: 1, messages: 1}},
		"holder lost": {true, func(h *hall, first *waitlist.Entry) {
			_, err := h.gate.Release(h.t.Context(), hold(first))
			h.must(err)
		}, waitlist.Offered, waitlist.Waiting, figures{reserved: 1, holders: 1, messages: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHall(t, 1)
			o := h.buy()
			places := h.joined(2)
			h.cancel(o)
			if c.offered {
				h.step()
				h.want(places[0], waitlist.Offered)
			}
			c.crash(h, places[0])
			for range 3 { // repeated steps change nothing
				h.step()
				for i, want := range []waitlist.Status{c.first, c.second} {
					if now, err := h.line.Entry(t.Context(), places[i].ID); err != nil || now.Status != want {
						t.Errorf("place %d: %+v %v, want %s", i, now, err, want)
					}
				}
				h.wantFigures(c.want)
			}
		})
	}
}

// A process crashes between the gate and the row of a redeemed offer, and the buyer
// repeats after the entry has ended: the result is the same order, and the row is
// updated then.
func TestARepeatOfARedeemedOfferFindsItsTaskHoweverThePlaceEnded(t *testing.T) {
	t.Parallel()
	for ended, end := range map[waitlist.Status]func(h *hall, e *waitlist.Entry){
		waitlist.Expired: func(h *hall, _ *waitlist.Entry) { h.clock.Advance(time.Minute + time.Second) },
		waitlist.Left: func(h *hall, e *waitlist.Entry) {
			_, err := h.line.Leave(h.t.Context(), e.ID, e.User)
			h.must(err)
		},
	} {
		t.Run(string(ended), func(t *testing.T) {
			t.Parallel()
			h := newHall(t, 1)
			o := h.buy()
			place := h.joined(1)[0]
			h.cancel(o)
			h.step()
			first := h.attempt(place.User)
			_, err := h.gate.Redeem(t.Context(), first, place.ID)
			h.must(err)
			end(h, place)
			h.step()
			h.want(place, ended)
			if got, refusal := h.redeem(place, h.attempt(place.User)); refusal != nil || got.Code != reservation.AlreadyHolding || got.Task != first.Task {
				t.Errorf("under another key: %+v, %v", got, refusal)
			}
			again := h.attempt(place.User)
			again.IdempotencyKey = first.IdempotencyKey
			if got, refusal := h.redeem(place, again); refusal != nil || got.Code != reservation.Replayed || got.Task != first.Task {
				t.Errorf("under the same key: %+v, %v", got, refusal)
			}
			if e := h.want(place, waitlist.Redeemed); e.Task == nil || *e.Task != first.Task {
				t.Errorf("place %+v", e)
			}
			h.wantFigures(figures{reserved: 1, holders: 1, messages: 2})
		})
	}
}

// A process crashes between the gate and the row of a redeemed offer, the order ends, and
// the entry gets its unit again before the buyer repeats.
func TestARepeatAfterTheOrderEndedReturnsTheUnitOfItsEntry(t *testing.T) {
	t.Parallel()
	h := newHall(t, 1)
	o := h.buy()
	place := h.joined(1)[0]
	h.cancel(o)
	h.step()
	a := h.attempt(place.User)
	_, err := h.gate.Redeem(t.Context(), a, place.ID)
	h.must(err)
	_, err = h.gate.Release(t.Context(), reservation.Ref{Sale: h.sale, Item: h.item, User: a.User, Task: a.Task})
	h.must(err)
	h.step()
	h.wantFigures(figures{reserved: 1, holders: 1, messages: 2})
	again := h.attempt(place.User)
	again.IdempotencyKey = a.IdempotencyKey
	if got, refusal := h.redeem(place, again); refusal != nil || got.Code != reservation.Replayed || got.Task != a.Task {
		t.Errorf("%+v, %v", got, refusal)
	}
	h.want(place, waitlist.Redeemed)
	h.step()
	h.wantFigures(figures{stock: 1, messages: 2})
}

// The idempotency key of a cancelled order returns that order for a day.
func TestTheKeyOfAnEarlierOrderLeavesThePlaceAsItIs(t *testing.T) {
	t.Parallel()
	for _, status := range []waitlist.Status{waitlist.Offered, waitlist.Expired} {
		t.Run(string(status), func(t *testing.T) {
			t.Parallel()
			h := newHall(t, 2)
			earlier, other := h.buy(), h.buy()
			h.joined(1)
			h.cancel(earlier)
			h.step()
			place, refusal := h.join(earlier.User)
			if refusal != nil {
				t.Fatal(refusal)
			}
			h.cancel(other)
			h.step()
			if status == waitlist.Expired {
				h.clock.Advance(time.Minute + time.Second)
				h.step()
			}
			h.want(place, status)
			before := h.figures()
			again := h.attempt(earlier.User)
			again.IdempotencyKey = earlier.ID.String()
			if got, refusal := h.redeem(place, again); refusal != nil || got.Code != reservation.Replayed || got.Task != id.Task(earlier.ID) {
				t.Fatalf("under the key of the earlier order: %+v, %v", got, refusal)
			}
			h.step()
			h.want(place, status)
			h.wantFigures(before)
			if status != waitlist.Offered {
				return
			}
			if got, refusal := h.redeem(place, h.attempt(earlier.User)); refusal != nil || got.Code != reservation.Accepted {
				t.Errorf("under a key of its own: %+v, %v", got, refusal)
			}
			h.want(place, waitlist.Redeemed)
		})
	}
}

func hold(e *waitlist.Entry) reservation.Ref {
	return reservation.Ref{Sale: e.Sale, Item: e.Item, User: e.User, Task: id.Task(e.ID)}
}

// end writes the end of an offer and nothing else.
func (h *hall) end(e *waitlist.Entry) {
	h.t.Helper()
	h.must(h.db.WithTx(h.t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		return tx.WaitlistEntry.UpdateOneID(e.ID).SetStatus(waitlistentry.StatusEXPIRED).SetReturnDue(true).AddVersion(1).Exec(ctx)
	}))
}

// The build may have read Postgres while the entry still had its reservation.
func TestAPlaceThatEndsWhileItsGateIsBuiltGivesItsUnitBackOnceItStands(t *testing.T) {
	t.Parallel()
	h := newHall(t, 1)
	o := h.buy()
	places := h.joined(2)
	h.cancel(o)
	h.step()
	h.want(places[0], waitlist.Offered)
	_, err := h.gate.Begin(t.Context(), h.sale, h.item, 2)
	h.must(err)
	h.end(places[0])
	h.step()
	_, err = h.gate.Open(t.Context(), reservation.Contents{
		Sale: h.sale, Item: h.item, State: reservation.GateOpen, Epoch: 2, Opens: time.Now().Add(-time.Hour),
		Closes: time.Now().Add(time.Hour), Limit: 2, Total: 1, Revision: 1000,
		Reservations: []reservation.Reservation{{User: places[0].User, Task: id.Task(places[0].ID), Quantity: 1}},
	})
	h.must(err)
	h.step()
	h.want(places[1], waitlist.Offered)
	h.wantFigures(figures{reserved: 1, holders: 1, messages: 1})
}
