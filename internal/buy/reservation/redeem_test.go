package reservation_test

import (
	"testing"
	"time"

	"seckill/internal/buy/reservation"
	"seckill/internal/platform/id"
)

// offered reserves one unit for an offer of the waitlist to a user.
func (f *fixture) offered(user id.User) id.Waitlist {
	f.t.Helper()
	offer := id.New[id.Waitlist]()
	r := reservation.Reacquire{Ref: reservation.Ref{Sale: f.sale, Item: f.item, User: user, Task: id.Task(offer)}, Quantity: 1}
	if got, err := f.gate.Reacquire(f.t.Context(), r); err != nil || got.Code != reservation.Reacquired {
		f.t.Fatalf("reserve for an offer: %+v, %v", got, err)
	}
	return offer
}

func (f *fixture) redeem(a reservation.Attempt, offer id.Waitlist) reservation.Outcome {
	f.t.Helper()
	o, err := f.gate.Redeem(f.t.Context(), a, offer)
	f.must(err)
	return o
}

func TestAnOfferBecomesOneOrderWithTheUnitsThatWereReserved(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		f.open(2)
		a := f.bare(id.New[id.User]())
		offer := f.offered(a.User)
		f.want(figures{stock: 1, reserved: 1, holders: 1})
		if o := f.redeem(a, offer); o.Code != reservation.Accepted || o.Task != a.Task || o.Remaining != 1 {
			t.Errorf("redeemed %+v", o)
		}
		again := f.bare(a.User) // the next try of the client, which has no answer
		again.IdempotencyKey = a.IdempotencyKey
		for range 2 {
			if o := f.redeem(again, offer); o.Code != reservation.Replayed || o.Task != a.Task {
				t.Errorf("the same key: %+v, want task %s", o, a.Task)
			}
		}
		other := again
		other.Quantity = 2
		if o := f.redeem(other, offer); o.Code != reservation.IdempotencyMismatch {
			t.Errorf("the same key with another quantity: %+v", o)
		}
		if o := f.redeem(f.bare(a.User), offer); o.Code != reservation.AlreadyHolding || o.Task != a.Task {
			t.Errorf("another key: %+v, want the order %s", o, a.Task)
		}
		f.want(figures{stock: 1, reserved: 1, holders: 1, orders: 1})
		if got := f.orders()[0]; got.Task != a.Task || got.User != a.User || got.Item != f.item || got.Quantity != 1 {
			t.Errorf("message %+v", got)
		}
		if r, err := f.gate.Release(t.Context(), reservation.Ref{Sale: f.sale, Item: f.item, User: a.User, Task: a.Task}); err != nil || !r.Done {
			t.Fatalf("release: %+v, %v", r, err)
		}
		if o := f.redeem(again, offer); o.Code != reservation.Replayed || o.Task != a.Task {
			t.Errorf("the same key after the order ended: %+v", o)
		}
		f.want(figures{stock: 2, orders: 1})
	})
}

func TestARefusedRedeemChangesNothing(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		a := f.bare(id.New[id.User]())
		if o := f.redeem(a, id.New[id.Waitlist]()); o.Code != reservation.NotLoaded {
			t.Errorf("without a gate: %+v", o)
		}
		f.open(3)
		offer := f.offered(a.User)
		before := f.figures()
		if o := f.redeem(f.bare(id.New[id.User]()), offer); o.Code != reservation.PathInvalid {
			t.Errorf("the offer of another user: %+v", o)
		}
		if o := f.redeem(a, id.New[id.Waitlist]()); o.Code != reservation.AlreadyHolding || o.Task != id.Task(offer) {
			t.Errorf("another offer: %+v", o)
		}
		two := a
		two.Quantity = 2
		if o := f.redeem(two, offer); o.Code != reservation.PathInvalid {
			t.Errorf("more units than are reserved: %+v", o)
		}
		for revision, c := range []struct {
			state string
			want  reservation.Code
		}{{reservation.GatePaused, reservation.Paused}, {reservation.GateEnded, reservation.Ended}, {reservation.GateOpen, reservation.Accepted}} {
			if _, err := f.gate.SetState(t.Context(), reservation.StateChange{
				Sale: f.sale, Item: f.item, Epoch: 1, Revision: int64(revision) + 2, State: c.state,
				Opens: time.Now().Add(-time.Hour), Closes: time.Now().Add(time.Hour),
			}); err != nil {
				t.Fatal(err)
			}
			if c.want == reservation.Accepted {
				f.want(before)
			}
			if o := f.redeem(a, offer); o.Code != c.want {
				t.Errorf("while the gate is %s: %+v", c.state, o)
			}
		}
	})
}
