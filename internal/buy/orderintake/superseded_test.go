package orderintake_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"seckill/ent"
	"seckill/internal/buy/order"
	"seckill/internal/buy/orderintake"
	"seckill/internal/buy/reservation"
	"seckill/internal/platform/id"
	"seckill/internal/platform/stream"
	"seckill/internal/testenv"
)

// rebuilt opens the gate of the second epoch with some units, as a build does that has
// not counted any message.
func (r *rig) rebuilt(units int, held ...reservation.Reservation) *reservation.Gate {
	r.t.Helper()
	gate := reservation.NewGate(reservation.GateConfig{Client: r.conn.Script, Keys: r.keys})
	begun, err := gate.Begin(r.t.Context(), r.sale, r.item, 2)
	if r.must(err); !begun {
		r.t.Fatal("no build has begun")
	}
	r.rebuiltFrom(gate, units, held...)
	return gate
}

// rebuiltFrom opens the gate that a build has begun.
func (r *rig) rebuiltFrom(gate *reservation.Gate, units int, held ...reservation.Reservation) {
	r.t.Helper()
	r.raise(2)
	opened, err := gate.Open(r.t.Context(), reservation.Contents{
		Sale: r.sale, Item: r.item, State: reservation.GateOpen, Epoch: 2, Opens: time.Now().Add(-time.Hour),
		Closes: time.Now().Add(time.Hour), Limit: 1, Total: 9, Stock: units, Reserved: 9 - units - len(held), Revision: 1, Reservations: held,
	})
	if r.must(err); !opened {
		r.t.Fatal("the gate is not open")
	}
}

// raise records the epoch of a build, as package preload does before it reads the item.
func (r *rig) raise(epoch int64) {
	r.must(r.db.WithTx(r.t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		return tx.SaleItem.UpdateOneID(r.item).SetGateEpoch(epoch).Exec(ctx)
	}))
}

func (r *rig) request(epoch int64) order.Request {
	user := id.New[id.User]()
	return order.Request{
		V: 1, Task: id.NewTaskOf(r.sale, r.item, user), User: user, Sale: r.sale, Item: r.item, Quantity: 1,
		UnitPriceMinor: 1999, Currency: "EUR", PaymentWindowSeconds: 900, Epoch: epoch, SubmittedAtMs: r.clock.Now().UnixMilli(),
		IdempotencyKey: uuid.NewString(),
	}
}

func (r *rig) message(requests ...order.Request) *stream.Message {
	r.t.Helper()
	msg, err := order.NewMessage(requests...)
	r.must(err)
	return msg
}

func (r *rig) stockOf(gate *reservation.Gate) int {
	r.t.Helper()
	state, err := gate.State(r.t.Context(), r.sale, r.item)
	r.must(err)
	return state.Stock
}

// A message is acknowledged after the commit of its orders, and not when the database refused it.
func TestAMessageThatIsNotWrittenIsDeliveredAgain(t *testing.T) {
	t.Parallel()
	r := setup(t)
	request := r.request(1)
	r.must(r.writer.Close(t.Context())) // it writes nothing any more
	gate := reservation.NewGate(reservation.GateConfig{Client: r.conn.Script, Keys: r.keys})
	if err := orderintake.NewHandler(r.writer, gate, nil).Handle(r.message(request)); !stream.IsRetryable(err) {
		t.Errorf("the end of the message: %v, want a retry", err)
	}
	writer := order.NewWriter(order.WriterConfig{DB: r.db, Timeout: testenv.Wait})
	r.must(orderintake.NewHandler(writer, gate, nil).Handle(r.message(request)))
	r.must(writer.Close(t.Context()))
	if got := r.status(request.Task); got != order.Succeeded {
		t.Errorf("task %s after the next delivery", got)
	}
}

func TestOrdersOfALostGateTakeUnitsOfTheNewOneOrFail(t *testing.T) {
	t.Parallel()
	r := setup(t)
	counted, first, second, fresh := r.request(1), r.request(1), r.request(1), r.request(2)
	gate := r.rebuilt(1, reservation.Reservation{User: counted.User, Task: counted.Task, Quantity: 1, At: time.Now()},
		reservation.Reservation{User: fresh.User, Task: fresh.Task, Quantity: 1, At: time.Now()})
	h := orderintake.NewHandler(r.writer, gate, nil)
	r.must(h.Handle(r.message(counted, first, second)))
	r.must(h.Handle(r.message(fresh)))
	ends := map[order.TaskStatus]int{}
	for _, task := range []id.Task{first.Task, second.Task} {
		ends[r.status(task)]++
	}
	if r.status(counted.Task) != order.Succeeded || r.status(fresh.Task) != order.Succeeded || ends[order.Succeeded] != 1 || ends[order.Failed] != 1 {
		t.Errorf("counted %s, of the new gate %s, of the lost gate %v", r.status(counted.Task), r.status(fresh.Task), ends)
	}
	if n := r.stockOf(gate); n != 0 {
		t.Errorf("%d units are left in the gate", n)
	}
}

func TestAnOrderOfALostGateWaitsForTheNewOne(t *testing.T) {
	t.Parallel()
	r := setup(t)
	request := r.request(1)
	gate := reservation.NewGate(reservation.GateConfig{Client: r.conn.Script, Keys: r.keys})
	h := orderintake.NewHandler(r.writer, gate, nil)
	r.raise(2)
	if err := h.Handle(r.message(request)); !stream.IsRetryable(err) {
		t.Errorf("there is no gate: %v", err)
	}
	r.rebuilt(9)
	r.must(h.Handle(r.message(request)))
	if r.status(request.Task) != order.Succeeded || r.stockOf(gate) != 8 {
		t.Errorf("task %s, stock %d", r.status(request.Task), r.stockOf(gate))
	}
	r.must(h.Handle(r.message(request))) // delivered again
	if r.stockOf(gate) != 8 {
		t.Errorf("stock %d after a second delivery", r.stockOf(gate))
	}
}

// A gate that nothing sells from any more cannot sell units twice.
func TestAnOrderOfALostGateIsWrittenAfterTheSale(t *testing.T) {
	t.Parallel()
	r := setup(t)
	request := r.request(1)
	r.raise(2)
	r.must(r.db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		return tx.Sale.UpdateOneID(r.sale).SetStatus("ENDED").Exec(ctx)
	}))
	h := orderintake.NewHandler(r.writer, reservation.NewGate(reservation.GateConfig{Client: r.conn.Script, Keys: r.keys}), nil)
	r.must(h.Handle(r.message(request)))
	if r.status(request.Task) != order.Succeeded {
		t.Errorf("task %s", r.status(request.Task))
	}
}

func TestInFlightMessagesAreAppendedAgainOncePerBuild(t *testing.T) {
	t.Parallel()
	r := setup(t)
	gate := reservation.NewGate(reservation.GateConfig{Client: r.conn.Script, Keys: r.keys})
	inFlight := orderintake.NewInFlight(orderintake.InFlightConfig{
		Gate: gate, Keys: r.keys, Log: quiet,
		Streams: stream.Appender{Client: r.conn.Script},
	})
	h := orderintake.NewHandler(r.writer, gate, inFlight)
	request := r.request(1)
	r.raise(2)
	if err := h.Handle(r.message(request)); !stream.IsRetryable(err) {
		t.Fatalf("handled: %v", err)
	}
	appended := func() int {
		t.Helper()
		for range 2 {
			_, err := inFlight.Step(t.Context())
			r.must(err)
		}
		return int(r.conn.Cmd.XLen(t.Context(), r.key).Val())
	}
	if n := appended(); n != 0 {
		t.Errorf("%d messages without a build", n)
	}
	for epoch := range int64(2) {
		if _, err := gate.Begin(t.Context(), r.sale, r.item, epoch+2); err != nil {
			t.Fatal(err)
		}
		if n := appended(); n != int(epoch)+1 {
			t.Errorf("%d messages after %d builds", n, epoch+1)
		}
	}
	waiting, err := r.backlog.Requests(t.Context(), r.shard)
	if r.must(err); len(waiting) != 2 || waiting[0].Task != request.Task || waiting[0].IdempotencyKey != request.IdempotencyKey {
		t.Errorf("waiting: %+v", waiting)
	}
	r.raise(0)
	r.must(h.Handle(r.message(request))) // it is written, and no longer in flight
	if _, err := gate.Begin(t.Context(), r.sale, r.item, 4); err != nil {
		t.Fatal(err)
	}
	if n := appended(); n != 2 {
		t.Errorf("%d messages after the end", n)
	}
}
