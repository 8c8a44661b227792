package waitlist_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"seckill/ent"
	"seckill/internal/buy/order"
	"seckill/internal/buy/reservation"
	"seckill/internal/buy/waitlist"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

func TestWhoMayJoin(t *testing.T) {
	t.Parallel()
	h := newHall(t, 1)
	_, refusal := h.join(id.New[id.User]())
	refused(t, refusal, fault.Conflict) // a unit is for sale
	o := h.buy()
	_, refusal = h.join(o.User)
	refused(t, refusal, fault.AlreadyOrdered)
	restock, err := h.line.RestockOutlook(t.Context(), h.item)
	if err != nil || restock.Gone() || restock.Unpaid != 1 || !restock.NextRelease.Equal(opening.Add(15*time.Minute)) {
		t.Errorf("restock %+v, %v", restock, err)
	}
	user := id.New[id.User]()
	var wg sync.WaitGroup
	var mu sync.Mutex
	seen := map[id.Waitlist]bool{}
	for range 20 {
		wg.Go(func() {
			e, refusal := h.join(user)
			mu.Lock()
			defer mu.Unlock()
			if refusal != nil {
				t.Error(refusal)
				return
			}
			seen[e.ID] = true
		})
	}
	wg.Wait()
	if len(seen) != 1 {
		t.Errorf("%d places of one person", len(seen))
	}
	h.must(h.db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		_, err := order.Apply(ctx, tx, order.Move{
			Order: o, To: order.Paid, At: h.clock.Now(), Entry: order.Entry{By: order.Actor{Kind: order.Provider}, Code: order.CodePaid},
		})
		return err
	}))
	_, refusal = h.join(id.New[id.User]())
	refused(t, refusal, fault.SoldOut) // no unit can be released any more
}

// A released unit goes to the next buyer of the waitlist, not to the fastest one.
func TestAUnitThatComesBackGoesToTheNextBuyer(t *testing.T) {
	t.Parallel()
	h := newHall(t, 1)
	o := h.buy()
	places := h.joined(3)
	if ahead, err := h.line.Ahead(t.Context(), places[2]); err != nil || ahead != 2 {
		t.Errorf("%d ahead, %v", ahead, err)
	}
	h.step()
	h.must(h.conn.Cmd.HSet(t.Context(), h.keys.Item(id.ShardOf(h.sale), h.item), "line", time.Now().Add(time.Hour).UnixMilli()).Err())
	h.cancel(o)
	if got := h.reserve(id.New[id.User]()); got.Code != reservation.SoldOut {
		t.Errorf("a passer-by got %+v", got)
	}
	h.step()
	first := h.want(places[0], waitlist.Offered)
	h.want(places[1], waitlist.Waiting)
	if !first.OfferExpiresAt.Equal(h.clock.Now().Add(time.Minute)) {
		t.Errorf("offer until %s", first.OfferExpiresAt)
	}
	h.wantFigures(figures{reserved: 1, holders: 1, messages: 1})
	h.clock.Advance(time.Minute + time.Second)
	h.step() // the first offer was not redeemed
	h.want(places[0], waitlist.Expired)
	h.want(places[1], waitlist.Offered)
	if _, err := h.line.Leave(t.Context(), places[1].ID, places[1].User); err != nil {
		t.Fatal(err)
	}
	h.step() // the second buyer left
	h.want(places[1], waitlist.Left)
	h.want(places[2], waitlist.Offered)
	h.clock.Advance(time.Minute + time.Second)
	h.step() // the third offer was not redeemed
	h.want(places[2], waitlist.Expired)
	h.wantFigures(figures{stock: 1, messages: 1})
	if got := h.reserve(id.New[id.User]()); got.Code != reservation.Accepted {
		t.Errorf("on open sale again: %+v", got)
	}
}

func (h *hall) redeem(e *waitlist.Entry, a reservation.Attempt) (reservation.Outcome, fault.Refusal) {
	h.t.Helper()
	o, err := h.line.Redeem(h.t.Context(), e.ID, a)
	return o, testenv.Refusal(h.t, err)
}

func TestAnOfferBecomesOneOrderTask(t *testing.T) {
	t.Parallel()
	h := newHall(t, 1)
	o := h.buy()
	places := h.joined(2)
	_, refusal := h.redeem(places[0], h.attempt(places[0].User))
	refused(t, refusal, fault.PathInvalid) // no offer yet
	h.cancel(o)
	h.step()
	_, refusal = h.redeem(places[0], h.attempt(places[1].User))
	refused(t, refusal, fault.PathInvalid) // the offer of another user
	two := h.attempt(places[0].User)
	two.Quantity = 2
	if got, _ := h.redeem(places[0], two); got.Code != reservation.PathInvalid {
		t.Errorf("two units for an offer of one: %+v", got)
	}
	a := h.attempt(places[0].User)
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			got, refusal := h.redeem(places[0], a)
			if refusal != nil || got.Code != reservation.Accepted || got.Task != a.Task {
				t.Errorf("redeem: %+v, %v", got, refusal)
			}
		})
	}
	wg.Wait()
	if e := h.want(places[0], waitlist.Redeemed); e.Task == nil || *e.Task != a.Task {
		t.Errorf("place %+v", e)
	}
	h.wantFigures(figures{reserved: 1, holders: 1, messages: 2})
	if got, _ := h.redeem(places[0], h.attempt(places[0].User)); got.Code != reservation.AlreadyHolding || got.Task != a.Task {
		t.Errorf("redeemed again under another key: %+v", got)
	}
	h.clock.Advance(time.Hour)
	h.step() // a redeemed offer does not expire
	h.wantFigures(figures{reserved: 1, holders: 1, messages: 2})
	held, err := h.gate.Reservations(t.Context(), h.sale, []id.Item{h.item}, a.User)
	if r := held[h.item]; err != nil || r.Task != a.Task || r.IdempotencyKey != a.IdempotencyKey || r.At.IsZero() {
		t.Errorf("reservation %+v, %v", r, err)
	}
}

// The gate is rebuilt while offers are open: their units are reserved again, or the
// entries wait again if their unit is gone.
func TestOffersSurviveANewGate(t *testing.T) {
	t.Parallel()
	h := newHall(t, 2)
	orders := []*order.Order{h.buy(), h.buy()}
	places := h.joined(2)
	h.cancel(orders[0])
	h.cancel(orders[1])
	h.step()
	h.want(places[1], waitlist.Offered)
	h.openGate(2, 1)
	h.step()
	h.want(places[0], waitlist.Offered)
	h.want(places[1], waitlist.Waiting)
	h.wantFigures(figures{reserved: 1, holders: 1, messages: 2})
}

// Buyers join and leave, units are released, several processes work at once: no unit is
// lost, and none stays reserved for a buyer that left.
func TestNoUnitIsStuckInTheWaitlist(t *testing.T) {
	t.Parallel()
	const units, people = 10, 40
	h := newHall(t, units)
	var orders []*order.Order
	for range units {
		orders = append(orders, h.buy())
	}
	places := h.joined(people)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 12 {
				if _, err := h.line.Step(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Go(func() {
		for _, o := range orders {
			h.cancel(o)
		}
	})
	for _, e := range places {
		wg.Go(func() {
			for range rand.IntN(6) {
				if rand.IntN(3) == 0 {
					_, err := h.line.Leave(t.Context(), e.ID, e.User)
					testenv.Refusal(t, err)
				}
				_, err := h.line.Redeem(t.Context(), e.ID, h.attempt(e.User))
				testenv.Refusal(t, err)
			}
		})
	}
	wg.Wait()
	h.step()
	h.step()
	open, err := waitlist.Holds(t.Context(), h.db.Ent.WaitlistEntry, h.item)
	h.must(err)
	redeemed := h.figures().messages - units
	if f := h.figures(); f.stock+f.reserved != units || f.reserved != len(open)+redeemed || f.holders != f.reserved {
		t.Errorf("the gate has %+v, %d offers, %d redeemed", f, len(open), redeemed)
	}
	h.clock.Advance(time.Minute + time.Second)
	for range 1 + people/units {
		h.step()
		h.clock.Advance(time.Minute + time.Second)
	}
	h.step()
	if f := h.figures(); f.stock != units-redeemed || f.reserved != redeemed {
		t.Errorf("in the end the gate has %+v, %d redeemed", f, redeemed)
	}
}

// If no process maintains the waitlist, its units are for sale.
func TestUnitsAreKeptForTheWaitlistOnlyWhileItIsKept(t *testing.T) {
	t.Parallel()
	h := newHall(t, 1)
	o := h.buy()
	h.joined(1)
	before := h.conn.Cmd.Time(t.Context()).Val()
	h.cancel(o)
	key := h.keys.Item(id.ShardOf(h.sale), h.item)
	until, err := h.conn.Cmd.HGet(t.Context(), key, "line").Int64()
	now := h.conn.Cmd.Time(t.Context()).Val()
	if err != nil || until <= before.UnixMilli() || until > now.Add(3*time.Second).UnixMilli() {
		t.Errorf("kept until %d, between %d and %d, %v", until, before.UnixMilli(), now.UnixMilli(), err)
	}
	h.must(h.conn.Cmd.HSet(t.Context(), key, "line", now.Add(time.Hour).UnixMilli()).Err())
	if got := h.reserve(id.New[id.User]()); got.Code != reservation.SoldOut {
		t.Errorf("while it is kept: %+v", got)
	}
	h.must(h.conn.Cmd.HSet(t.Context(), key, "line", now.UnixMilli()-1).Err())
	if got := h.reserve(id.New[id.User]()); got.Code != reservation.Accepted {
		t.Errorf("afterwards: %+v", got)
	}
}

func TestOnlyOnesOwnPlaceIsLeft(t *testing.T) {
	t.Parallel()
	h := newHall(t, 1)
	h.buy()
	e := h.joined(1)[0]
	_, err := h.line.Leave(t.Context(), e.ID, id.New[id.User]())
	refused(t, err, fault.Unknown)
	for range 2 {
		if got, err := h.line.Leave(t.Context(), e.ID, e.User); err != nil || got.Status != waitlist.Left {
			t.Errorf("leave: %+v, %v", got, err)
		}
	}
	if again, refusal := h.join(e.User); refusal != nil || again.ID == e.ID {
		t.Errorf("join again: %+v, %v", again, refusal)
	}
}
