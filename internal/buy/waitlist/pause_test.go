package waitlist_test

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"seckill/ent"
	"seckill/internal/buy/reservation"
	"seckill/internal/buy/sale"
	"seckill/internal/buy/waitlist"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

// turn pauses or resumes the sale, in Postgres and at the gate.
func (h *hall) turn(what sale.Act, to sale.Status, gate string) {
	h.t.Helper()
	row, err := h.db.Ent.Sale.Get(h.t.Context(), h.sale)
	h.must(err)
	h.must(h.db.WithTx(h.t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		return sale.Apply(ctx, tx, sale.Change{
			ID: id.New[uuid.UUID](), Sale: h.sale, Act: what, From: sale.Status(row.Status), To: to, Revision: row.Revision,
			By: sale.Actor{ID: id.New[id.User](), Role: "OPERATOR"}, Note: "a moment, please", At: h.clock.Now(),
		}, nil)
	}))
	_, err = reservation.NewGate(reservation.GateConfig{Client: h.conn.Script, Keys: h.keys}).SetState(h.t.Context(), reservation.StateChange{
		Sale: h.sale, Item: h.item, Epoch: 1, Revision: row.Revision + 1, State: gate,
		Opens: time.Now().Add(-time.Hour), Closes: time.Now().Add(time.Hour),
	})
	h.must(err)
}

// The gate ends by the clock of Redis, the sale a moment later: a unit that returns in between is not
// offered.
func TestNoUnitIsOfferedAfterTheGateHasEnded(t *testing.T) {
	t.Parallel()
	h := newHall(t, 1)
	o := h.buy()
	places := h.joined(1)
	gate := reservation.NewGate(reservation.GateConfig{Client: h.conn.Script, Keys: h.keys})
	set, err := gate.SetState(t.Context(), reservation.StateChange{
		Sale: h.sale, Item: h.item, Epoch: 1, Revision: 100, State: reservation.GateEnded,
		Opens: time.Now().Add(-time.Hour), Closes: time.Now(),
	})
	if h.must(err); !set.Done {
		t.Fatal("the gate has not ended")
	}
	h.cancel(o)
	h.step()
	h.want(places[0], waitlist.Waiting)
}

// While the sale is paused no offer can be redeemed and none expires; when the sale is
// resumed, open offers get their whole time again, once.
func TestAPauseOfTheSaleStopsTheClockOfOffers(t *testing.T) {
	t.Parallel()
	h := newHall(t, 1)
	o := h.buy()
	places := h.joined(2)
	h.cancel(o)
	h.step()
	h.want(places[0], waitlist.Offered)
	h.clock.Advance(50 * time.Second)
	h.turn(sale.ActPause, sale.Paused, reservation.GatePaused)
	h.clock.Advance(time.Hour / 4)
	h.step()
	h.want(places[0], waitlist.Offered)
	if got, refusal := h.redeem(places[0], h.attempt(places[0].User)); refusal == nil && got.Code == reservation.Accepted {
		t.Error("redeemed while the sale was held")
	}
	h.turn(sale.ActResume, sale.Live, reservation.GateOpen)
	resumed := h.clock.Now()
	h.clock.Advance(10 * time.Second)
	h.step()
	h.step()
	again := h.want(places[0], waitlist.Offered)
	if !again.OfferExpiresAt.Equal(resumed.Add(time.Minute)) || again.Version != 3 {
		t.Errorf("offer until %s, version %d; the sale went on at %s", again.OfferExpiresAt, again.Version, resumed)
	}
	h.clock.Advance(51 * time.Second)
	h.step()
	h.want(places[0], waitlist.Expired)
	next := h.want(places[1], waitlist.Offered)
	if !next.OfferExpiresAt.Equal(h.clock.Now().Add(time.Minute)) {
		t.Errorf("the next one's offer until %s", next.OfferExpiresAt)
	}
	if got, refusal := h.redeem(places[1], h.attempt(places[1].User)); refusal != nil || got.Code != reservation.Accepted {
		t.Errorf("redeem: %+v %v", got, refusal)
	}
}

// metricsOf returns the non-zero values of a metric, by the value of its label.
func metricsOf(t *testing.T, shown *prometheus.Registry, name string) map[string]int {
	t.Helper()
	families, err := shown.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]int{}
	for _, family := range families {
		for _, series := range family.GetMetric() {
			if family.GetName() == name && series.GetCounter().GetValue()+series.GetGauge().GetValue() != 0 {
				values[series.GetLabel()[0].GetValue()] = int(series.GetCounter().GetValue() + series.GetGauge().GetValue())
			}
		}
	}
	return values
}

func TestWhatBecomesOfPlacesIsCounted(t *testing.T) {
	t.Parallel()
	h := newHall(t, 1)
	shown := prometheus.NewRegistry()
	h.line = waitlist.New(waitlist.Config{
		DB: h.db, Gate: h.gate, Timeout: testenv.Wait, Clock: h.clock, Log: quiet, Registerer: shown,
	})
	o := h.buy()
	places := h.joined(4)
	h.cancel(o)
	h.step()
	h.clock.Advance(time.Minute + time.Second)
	h.step() // the first offer expires, the second buyer gets one
	h.clock.Advance(10 * time.Second)
	h.step()
	const entries, turns = "seckill_waitlist_places", "seckill_waitlist_turns_total"
	if got, want := metricsOf(t, shown, entries), map[string]int{"waiting": 2, "offered": 1}; !maps.Equal(got, want) {
		t.Errorf("places %v, want %v", got, want)
	}
	if _, refusal := h.redeem(places[1], h.attempt(places[1].User)); refusal != nil {
		t.Fatal(refusal)
	}
	if _, err := h.line.Leave(t.Context(), places[3].ID, places[3].User); err != nil {
		t.Fatal(err)
	}
	h.clock.Advance(10 * time.Second)
	h.step()
	want := map[string]int{"joined": 4, "offered": 2, "lapsed": 1, "returned": 1, "redeemed": 1, "left": 1}
	if got := metricsOf(t, shown, turns); !maps.Equal(got, want) {
		t.Errorf("turns %v, want %v", got, want)
	}
	if got, want := metricsOf(t, shown, entries), map[string]int{"waiting": 1}; !maps.Equal(got, want) {
		t.Errorf("places %v, want %v", got, want)
	}
}

// While its gate is lost or rebuilt no offer can be redeemed and none expires; then open
// offers get their whole time again.
func TestOffersDoNotExpireWhileTheirGateIsAway(t *testing.T) {
	t.Parallel()
	h := newHall(t, 1)
	o := h.buy()
	places := h.joined(2)
	h.cancel(o)
	h.step()
	h.want(places[0], waitlist.Offered)
	shard := id.ShardOf(h.sale)
	h.must(h.conn.Cmd.Del(t.Context(), h.keys.Item(shard, h.item), h.keys.Reservations(shard, h.item)).Err())
	h.clock.Advance(30 * time.Second)
	h.step()
	h.clock.Advance(time.Hour / 4)
	h.step()
	h.want(places[0], waitlist.Offered)
	h.openGate(2, 1)
	h.step()
	back := h.clock.Now()
	h.step()
	if again := h.want(places[0], waitlist.Offered); !again.OfferExpiresAt.Equal(back.Add(time.Minute)) {
		t.Errorf("offer until %s; the gate was back at %s", again.OfferExpiresAt, back)
	}
	h.clock.Advance(61 * time.Second)
	h.step()
	h.want(places[0], waitlist.Expired)
	h.want(places[1], waitlist.Offered)
}
