package waitlist_test

import (
	"context"
	"testing"
	"time"

	"seckill/ent"
	"seckill/ent/sale"
	"seckill/internal/buy/order"
	"seckill/internal/buy/reservation"
	"seckill/internal/buy/waitlist"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

// After the end of the sale no buyer waits, and no unit stays reserved for the
// waitlist.
func TestTheLineEndsWithItsSale(t *testing.T) {
	t.Parallel()
	h := newHall(t, 1)
	o := h.buy()
	places := h.joined(3)
	h.cancel(o)
	h.step()
	h.want(places[0], waitlist.Offered)
	h.must(h.db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		return tx.Sale.UpdateOneID(h.sale).SetStatus(sale.StatusENDED).Exec(ctx)
	}))
	h.step()
	for _, e := range places {
		h.want(e, waitlist.Expired)
	}
	h.wantFigures(figures{stock: 1, messages: 1})
	if counts, err := h.line.Step(t.Context()); err != nil || len(counts) != 0 {
		t.Errorf("when all is over: %v %v", counts, err)
	}
}

// A buyer with repeated expired reservations has to wait before joining too.
func TestWhoNeverPaysHasToWaitForThePlaceInLine(t *testing.T) {
	t.Parallel()
	h := newHall(t, 2)
	h.buy()
	h.buy()
	user := id.New[id.User]()
	key := h.keys.Expiries(id.ShardOf(h.sale), h.sale, user)
	h.must(h.conn.Cmd.Set(t.Context(), key, reservation.MaxExpired, 2*reservation.LongestWait).Err())
	_, refusal := h.join(user)
	refused(t, refusal, fault.TooManyTries)
	if wait, ok := refusal.(fault.Throttled); !ok || wait.RetryAfter <= 0 || wait.RetryAfter > reservation.ExpiredWait || wait.Cause != fault.ExpiredReservations {
		t.Errorf("refusal %+v", refusal)
	}
	h.must(h.conn.Cmd.Del(t.Context(), key).Err())
	if _, refusal = h.join(user); refusal != nil {
		t.Error(refusal)
	}
}

// An offer that is left to expire withholds a unit like an unpaid order. An offer that
// is left at once does not, nor one that ends with its sale.
func TestOffersLeftToExpireCountLikeUnpaidReservations(t *testing.T) {
	t.Parallel()
	h := newHall(t, 1)
	o := h.buy()
	places := h.joined(3)
	h.step()
	h.cancel(o)
	h.step()
	h.want(places[0], waitlist.Offered)
	h.clock.Advance(time.Minute + time.Second)
	h.step()
	h.want(places[1], waitlist.Offered)
	if _, err := h.line.Leave(t.Context(), places[1].ID, places[1].User); err != nil {
		t.Fatal(err)
	}
	h.step()
	h.want(places[2], waitlist.Offered)
	h.clock.Advance(time.Minute + time.Second)
	h.must(h.db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		return tx.Sale.UpdateOneID(h.sale).SetStatus(sale.StatusENDED).Exec(ctx)
	}))
	h.step()
	h.want(places[2], waitlist.Expired)
	for i, want := range []int{1, 0, 0} {
		n, _ := h.conn.Cmd.Get(t.Context(), h.keys.Expiries(id.ShardOf(h.sale), h.sale, places[i].User)).Int()
		if n != want {
			t.Errorf("buyer %d has %d expiries, want %d", i, n, want)
		}
	}
}

func TestEndedPlacesArePurgedAfterAWeek(t *testing.T) {
	t.Parallel()
	h := newHall(t, 1)
	h.buy()
	places := h.joined(3)
	for _, e := range places[:2] {
		if _, err := h.line.Leave(t.Context(), e.ID, e.User); err != nil {
			t.Fatal(err)
		}
	}
	h.step()
	purge := func(want int) {
		t.Helper()
		if counts, err := h.line.Purge(t.Context()); err != nil || counts["purged"] != want {
			t.Errorf("purged %v, %v; want %d", counts, err, want)
		}
	}
	h.clock.Advance(6 * 24 * time.Hour)
	purge(0)
	h.clock.Advance(25 * time.Hour)
	purge(2)
	purge(0)
	h.want(places[2], waitlist.Waiting)
}

// oneItem is a catalogue with one item.
type oneItem struct {
	id      id.Item
	soldOut *bool
}

func (i oneItem) Items(context.Context) ([]waitlist.Item, error) {
	return []waitlist.Item{{ID: i.id, SoldOut: *i.soldOut}}, nil
}

// Refusals read from memory, which follows Postgres.
func TestRestockOutlooksFollowTheRecord(t *testing.T) {
	t.Parallel()
	h := newHall(t, 1)
	soldOut := false
	items := oneItem{h.item, &soldOut}
	restockOutlooks := waitlist.NewRestockOutlooks(h.line, items, quiet)
	look := func() (waitlist.RestockOutlook, bool) {
		t.Helper()
		_, err := restockOutlooks.Step(t.Context())
		h.must(err)
		return restockOutlooks.Of(h.item)
	}
	if o, known := look(); known || restockOutlooks.HasEntries(h.item) {
		t.Errorf("while there is stock: %+v", o)
	}
	bought := h.buy()
	soldOut = true
	if o, known := look(); !known || o.Gone() || o.Unpaid != 1 || o.NextRelease == nil || o.Waiting != 0 || restockOutlooks.HasEntries(h.item) {
		t.Errorf("unpaid: %+v", o)
	}
	place := h.joined(1)[0]
	if o, _ := look(); o.Waiting != 1 || !restockOutlooks.HasEntries(h.item) {
		t.Errorf("with a line: %+v", o)
	}
	h.cancel(bought)
	h.step()
	if o, _ := look(); o.Waiting != 0 || o.Offered != 1 || o.Gone() || o.Unpaid != 0 || o.NextRelease != nil {
		t.Errorf("with an offer: %+v", o)
	}
	if _, err := h.line.Leave(t.Context(), place.ID, place.User); err != nil {
		t.Fatal(err)
	}
	fresh := waitlist.NewRestockOutlooks(h.line, items, quiet) // of a process that has just started
	if _, err := fresh.Step(t.Context()); err != nil || !fresh.HasEntries(h.item) {
		t.Errorf("a line that was: %v", err)
	}
	h.step()
	paid := h.buy()
	h.must(h.db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		_, err := order.Apply(ctx, tx, order.Move{
			Order: paid, To: order.Paid, At: h.clock.Now(), Entry: order.Entry{By: order.Actor{Kind: order.Provider}, Code: order.CodePaid},
		})
		return err
	}))
	if o, known := look(); !known || !o.Gone() {
		t.Errorf("all paid: %+v", o)
	}
}

// The revision that clients see never falls, over entries and their versions.
func TestMomentsGrow(t *testing.T) {
	t.Parallel()
	older := id.New[id.Waitlist]()
	newer := older
	for id.TimeOf(newer).Equal(id.TimeOf(older)) {
		newer = id.New[id.Waitlist]()
	}
	last := int64(0)
	for _, e := range []waitlist.Entry{{ID: older, Version: 1}, {ID: older, Version: 2}, {ID: older, Version: 999}, {ID: newer, Version: 1}} {
		if got := e.Moment(); got <= last {
			t.Errorf("moment %d after %d", got, last)
		} else {
			last = got
		}
	}
	if a, b := (&waitlist.Entry{ID: older, Version: 5000}).Moment(), (&waitlist.Entry{ID: newer, Version: 1}).Moment(); a >= b {
		t.Errorf("a place of very many versions is at %d, a later one at %d", a, b)
	}
}
