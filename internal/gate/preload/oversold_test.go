package preload_test

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"

	"seckill/internal/buy/order"
	"seckill/internal/buy/reservation"
	"seckill/internal/pay/payment"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

// loaded is a sale of ten units whose gate is built.
func loaded(t *testing.T) *fixture {
	t.Helper()
	f := setup(t)
	f.clock.Advance(6 * time.Second)
	if counts := f.step(t); counts["loaded"] != 1 {
		t.Fatalf("step: %v", counts)
	}
	return f
}

// reserve writes the reservations of n users and the remaining stock, as the reserve
// script does, and returns the messages.
func (f *fixture) reserve(t *testing.T, n, stock int) []order.Request {
	t.Helper()
	shard := id.ShardOf(f.sale)
	messages := make([]order.Request, n)
	for i := range messages {
		m := order.Request{V: 1, Task: id.NewTask(shard), User: id.New[id.User](), Sale: f.sale, Item: f.item, Quantity: 1, SubmittedAtMs: f.clock.Now().UnixMilli()}
		messages[i] = m
		f.must(t, f.redis.Cmd.HSet(t.Context(), f.keys.Reservations(shard, f.item), m.User.String(), fmt.Sprintf("%s|1|%d|key", m.Task, m.SubmittedAtMs)).Err())
	}
	f.setGate(t, "stock", stock, "reserved", n)
	return messages
}

// A commit that Postgres lost leaves a reservation and a message that a worker has acknowledged.
func TestAReservationWithoutARowDiffersOnceItsMessageIsHandled(t *testing.T) {
	t.Parallel()
	testdb.OnDatabases(t, func(t *testing.T, db *postgres.DB) {
		f := setupOn(t, db)
		f.clock.Advance(6 * time.Second)
		f.step(t)
		f.pending = f.reserve(t, 2, 8)
		for _, want := range []bool{false, true} {
			if differs, err := f.preloader().Differs(t.Context(), f.sale, f.item); err != nil || differs != want {
				t.Errorf("handled %t: differs %t, %v", want, differs, err)
			}
			f.pending, f.handled = f.pending[:1], f.pending[1:]
		}
	})
}

// setGate changes fields of the gate.
func (f *fixture) setGate(t *testing.T, fields ...any) {
	t.Helper()
	f.must(t, f.redis.Cmd.HSet(t.Context(), f.keys.Item(id.ShardOf(f.sale), f.item), fields...).Err())
}

// fail ends tasks as the writer does, and releases their units in the gate.
func (f *fixture) fail(t *testing.T, code fault.Reason, messages ...order.Request) {
	t.Helper()
	for _, m := range messages {
		f.must(t, f.db.Ent.OrderFailure.Create().SetID(m.Task).SetSaleID(m.Sale).SetItemID(m.Item).SetUserID(m.User).SetQuantity(m.Quantity).
			SetCode(string(code)).SetReason("test").SetReservedAt(f.clock.Now()).SetCreatedAt(f.clock.Now()).Exec(t.Context()))
	}
	gate := payment.NewRedisGate(reservation.NewGate(reservation.GateConfig{Client: f.redis.Script, Keys: f.keys, Timeout: testenv.Wait}), nil)
	if _, err := order.TaskReturns(f.db, gate.ReturnAll, slog.New(slog.DiscardHandler)).Step(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestAUnitThatPostgresDoesNotHaveIsNotSoldAgain(t *testing.T) {
	t.Parallel()
	f := loaded(t)
	messages := f.reserve(t, 11, 0) // of ten units
	f.fail(t, fault.SoldOut, messages[0])
	if g := f.gate(t); g["stock"] != "0" || g["reserved"] != "10" || g["total"] != "10" {
		t.Errorf("gate %v, want no unit back", g)
	}
	f.fail(t, fault.Conflict, messages[1]) // any other failure releases its unit
	if g := f.gate(t); g["stock"] != "1" || g["reserved"] != "9" || g["total"] != "10" {
		t.Errorf("gate %v, want one unit back", g)
	}
	testenv.RecordFault(t, testenv.FaultRow{Fault: "gate one unit above Postgres", Accepted: 2, Failed: 2})
}

func TestUnitsThatComeBackFillAStockBelowZeroFirst(t *testing.T) {
	t.Parallel()
	f := loaded(t)
	f.must(t, f.db.Ent.SaleItem.UpdateOneID(f.item).SetTotal(1).SetAvailable(1).Exec(t.Context()))
	f.pending = f.reserve(t, 3, 0)
	f.must(t, f.preloader().Load(t.Context(), f.sale))
	if g := f.gate(t); g["stock"] != "-2" || g["reserved"] != "3" || g["total"] != "1" {
		t.Fatalf("gate %v, want two units too many", g)
	}
	for i, want := range []string{"-1", "0", "0"} {
		f.fail(t, fault.SoldOut, f.pending[i])
		if g := f.gate(t); g["stock"] != want {
			t.Errorf("after %d failures: gate %v, want stock %s", i+1, g, want)
		}
	}
	testenv.RecordFault(t, testenv.FaultRow{Fault: "gate rebuilt with more reservations than units", Accepted: 3, Failed: 3})
}

// In a rush the stores change while they are compared. A difference of more units than were
// reserved meanwhile is found even then, any other in the first comparison without a change.
func TestReservationsDuringAComparisonDoNotDiffer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, after int
		want          bool
	}{
		"all units are there":      {10, 8, false},
		"three units are missing":  {7, 5, true},
		"a unit too many":          {11, 9, true},
		"units return in between":  {7, 8, false},
		"one comes back, one goes": {8, 8, false},
	} {
		f := loaded(t)
		f.setGate(t, "stock", c.before)
		f.comparing = func() { f.pending = f.reserve(t, 2, c.after) }
		if got, err := f.preloader().Differs(t.Context(), f.sale, f.item); err != nil || got != c.want {
			t.Errorf("%s: differs %v, %v, want %v", name, got, err, c.want)
		}
	}
}

// A waiting message of another sale on the shard does not explain a difference.
func TestTheGateIsComparedWhileMessagesWait(t *testing.T) {
	t.Parallel()
	f := loaded(t)
	f.pending = append(f.reserve(t, 2, 8), order.Request{V: 1, Task: id.NewTask(id.ShardOf(f.sale)), User: id.New[id.User](), Sale: f.sale, Item: id.Item(uuid.New()), Quantity: 1})
	for stock, want := range map[int]bool{8: false, 9: true, 7: true} {
		f.setGate(t, "stock", stock)
		if got, err := f.preloader().Differs(t.Context(), f.sale, f.item); err != nil || got != want {
			t.Errorf("stock %d: differs %v, %v, want %v", stock, got, err, want)
		}
	}
}
