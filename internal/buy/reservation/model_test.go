package reservation_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"seckill/internal/buy/reservation"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

// accepted is an attempt of the reference that took units.
type accepted struct {
	task     id.Task
	quantity int
	key      string
}

// reference is the reserve script in Go, for one item of a sale without a limit.
type reference struct {
	state           string
	limit           int
	stock, reserved int
	orders          int
	holders         map[id.User]accepted
	permits         map[id.User]bool
	keys            map[string]accepted // of reservations that have ended, by "user:key"
}

// reserve returns the code and the task of an attempt.
func (r *reference) reserve(a reservation.Attempt) (reservation.Code, id.Task) {
	held, holding := r.holders[a.User]
	past, known := r.keys[a.User.String()+":"+a.IdempotencyKey]
	if !known && holding && held.key == a.IdempotencyKey {
		past, known = held, true
	}
	closed := map[string]reservation.Code{reservation.GatePaused: reservation.Paused, reservation.GateEnded: reservation.Ended}[r.state]
	none := closed != 0 || r.stock == 0
	switch {
	case known && past.quantity == a.Quantity:
		return reservation.Replayed, past.task
	case known:
		return reservation.IdempotencyMismatch, past.task
	case none && holding:
		return reservation.AlreadyHolding, held.task
	case closed != 0:
		return closed, id.Task{}
	case none:
		if r.permits[a.User] && a.Permit == permit(1) && a.Quantity > r.limit {
			return reservation.OverLimit, id.Task{}
		}
		return reservation.SoldOut, id.Task{}
	case !r.permits[a.User] || a.Permit != permit(1):
		return reservation.PathInvalid, held.task
	case holding:
		return reservation.AlreadyHolding, held.task
	case a.Quantity > r.limit:
		return reservation.OverLimit, id.Task{}
	case r.stock < a.Quantity:
		return reservation.TooFewLeft, id.Task{}
	}
	r.stock, r.reserved, r.orders = r.stock-a.Quantity, r.reserved+a.Quantity, r.orders+1
	r.holders[a.User] = accepted{a.Task, a.Quantity, a.IdempotencyKey}
	delete(r.permits, a.User)
	return reservation.Accepted, a.Task
}

// release returns the units of a user's reservation.
func (r *reference) release(user id.User) {
	held := r.holders[user]
	r.stock, r.reserved = r.stock+held.quantity, r.reserved-held.quantity
	r.keys[user.String()+":"+held.key] = held
	delete(r.holders, user)
}

// Random attempts, releases, permits and states: the script and the reference answer the
// same, and have the same stock, reservations and orders after each step.
func TestTheReserveScriptAgreesWithTheReference(t *testing.T) {
	t.Parallel()
	_, prefix := testenv.Redis(t)
	client, run := patient(t, testenv.RedisURL(t)), 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		f := newFixture(t, client, fmt.Sprintf("%s%d:", prefix, run))
		stock := rapid.IntRange(0, 6).Draw(rt, "stock")
		r := &reference{
			state: reservation.GateOpen, limit: rapid.IntRange(1, 3).Draw(rt, "limit"), stock: stock,
			holders: map[id.User]accepted{}, permits: map[id.User]bool{}, keys: map[string]accepted{},
		}
		f.open(stock, func(c *reservation.Contents) { c.Limit = r.limit })
		users, revision := []id.User{id.New[id.User](), id.New[id.User](), id.New[id.User](), id.New[id.User]()}, int64(1)
		anyone := rapid.SampledFrom(users)
		rt.Repeat(map[string]func(*rapid.T){
			"reserve": func(rt *rapid.T) {
				a := f.bare(anyone.Draw(rt, "user"))
				a.Quantity = rapid.IntRange(1, 4).Draw(rt, "quantity")
				a.IdempotencyKey = fmt.Sprintf("idempotency-key-%d", rapid.IntRange(1, 4).Draw(rt, "key"))
				if rapid.Bool().Draw(rt, "no path token") {
					a.Permit = reservation.Permit{}
				}
				code, task := r.reserve(a)
				if o := f.reserve(a); o.Code != code || o.Task != task || o.Remaining != r.stock {
					rt.Fatalf("script: code %d, task %s, %d left; reference: %d, %s, %d", o.Code, o.Task, o.Remaining, code, task, r.stock)
				}
			},
			"release": func(rt *rapid.T) {
				user := anyone.Draw(rt, "user")
				held, holding := r.holders[user]
				released, err := f.gate.Release(t.Context(), reservation.Ref{Sale: f.sale, Item: f.item, User: user, Task: held.task})
				if err != nil || released.Done != holding {
					rt.Fatalf("release: %+v %v, want %v", released, err, holding)
				}
				if holding {
					r.release(user)
				}
			},
			"permit": func(rt *rapid.T) {
				user := anyone.Draw(rt, "user")
				f.path(user)
				r.permits[user] = true
			},
			"state": func(rt *rapid.T) {
				revision++
				r.state = rapid.SampledFrom([]string{reservation.GateOpen, reservation.GateOpen, reservation.GatePaused, reservation.GateEnded}).Draw(rt, "state")
				done, err := f.gate.SetState(t.Context(), reservation.StateChange{
					Sale: f.sale, Item: f.item, Epoch: 1, Revision: revision, State: r.state, Opens: time.Now().Add(-time.Hour), Closes: time.Now().Add(time.Hour),
				})
				if err != nil || !done.Done {
					rt.Fatalf("state: %v %v", done, err)
				}
			},
			"": func(rt *rapid.T) {
				if got, want := f.figures(), (figures{r.stock, r.reserved, len(r.holders), r.orders}); got != want || r.stock+r.reserved != stock {
					rt.Fatalf("script %+v, reference %+v of %d", got, want, stock)
				}
			},
		})
	})
}
