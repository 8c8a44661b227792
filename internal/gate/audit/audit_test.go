package audit_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message/router/middleware"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"seckill/ent"
	entorder "seckill/ent/order"
	"seckill/internal/buy/order"
	"seckill/internal/buy/reservation"
	"seckill/internal/gate/audit"
	"seckill/internal/identity/person"
	"seckill/internal/platform/deadletter"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
	"seckill/internal/platform/stream"
	"seckill/internal/testdb"
)

func TestASaleAddsUpAtEveryStepOfItsOrders(t *testing.T) {
	t.Parallel()
	for name, db := range map[string]*postgres.DB{"postgres": testdb.Postgres(t), "sqlite": testdb.SQLite(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			everyStep(setup(t, db))
		})
	}
}

func everyStep(w *world) {
	check := func(step string, record audit.Record, gate audit.Gate, queue audit.Queue) {
		w.Helper()
		want := &audit.Report{SaleID: w.sale.Public(), OK: true, Findings: []string{}, Postgres: record, Redis: gate, Stream: queue, Epoch: 1}
		got := w.audit()
		want.Money = got.Money // has its own test
		if diff := cmp.Diff(want, got); diff != "" {
			w.Errorf("%s (-want +got):\n%s", step, diff)
		}
	}
	check("nothing bought", audit.Record{Total: 20, Available: 20}, audit.Gate{Stock: 20}, audit.Queue{})
	w.buy(7)
	check("seven bought, no reader", audit.Record{Total: 20, Available: 20}, audit.Gate{Stock: 13, Reserved: 7}, audit.Queue{Unread: 7})
	w.work(4)
	check("four written", audit.Record{Total: 20, Available: 16, Held: 4, Orders: 4}, audit.Gate{Stock: 13, Reserved: 7}, audit.Queue{Unread: 3})
	w.read(2)
	check("two at a worker", audit.Record{Total: 20, Available: 16, Held: 4, Orders: 4}, audit.Gate{Stock: 13, Reserved: 7}, audit.Queue{Unread: 1, Pending: 2})
	w.move(0, order.Paid, nil, false)
	check("one paid", audit.Record{Total: 20, Available: 16, Held: 3, Sold: 1, Orders: 4}, audit.Gate{Stock: 13, Reserved: 7}, audit.Queue{Unread: 1, Pending: 2})
}

func TestASaleAddsUpThroughTheLifeOfItsOrders(t *testing.T) {
	t.Parallel()
	w := setup(t, testdb.Postgres(t))
	w.buy(5)
	w.work(5)
	check := func(step string) {
		t.Helper()
		if report := w.audit(); !report.OK {
			t.Errorf("%s: %q", step, report.Findings)
		}
	}
	releaser := reservation.NewGate(reservation.GateConfig{Client: w.redis.Script, Keys: w.keys})
	hold := func(i int, name id.Task) reservation.Ref {
		return reservation.Ref{Sale: w.sale, Item: w.item, User: w.users[i], Task: name}
	}
	w.move(0, order.Cancelled, nil, false)
	check("cancelled, not released in Redis")
	_, err := releaser.Release(t.Context(), hold(0, w.tasks[0]))
	w.must(err)
	check("cancelled, released in Redis, row not marked")
	w.returned()
	check("cancelled and back")

	w.move(1, order.Expired, nil, false)
	_, err = releaser.Release(t.Context(), hold(1, w.tasks[1]))
	w.must(err)
	w.returned()
	again := id.NewTask(w.shard())
	_, err = releaser.Reacquire(t.Context(), reservation.Reacquire{Ref: hold(1, again), Before: id.Order(w.tasks[1]), Quantity: 1})
	w.must(err)
	w.move(1, order.Paid, &again, false)
	check("paid late, held under a new name")

	for i, keep := range map[int]bool{2: true, 3: false} {
		w.move(i, order.Paid, nil, false)
		w.move(i, order.Refunding, nil, false)
		w.move(i, order.Refunded, nil, keep)
	}
	check("refunded, one unit withdrawn, the gate not changed")
	_, err = releaser.Release(t.Context(), hold(3, w.tasks[3]))
	w.must(err)
	withdrawn := hold(2, w.tasks[2])
	withdrawn.Withdrawn = true
	_, err = releaser.Release(t.Context(), withdrawn)
	w.must(err)
	check("refunded, one unit withdrawn, rows not marked")
	w.returned()
	check("refunded, one unit withdrawn, one back")
	w.buy(2)
	check("more were bought")
	w.must(w.Load(t.Context(), w.sale))
	check("the gate was rebuilt")
}

func TestAChangeOfStockOnItsWayIsNoFinding(t *testing.T) {
	t.Parallel()
	w := setup(t, testdb.Postgres(t))
	act := id.New[id.Act]()
	w.update(func(ctx context.Context, tx *ent.Tx) error {
		now := time.Now()
		err := tx.Intervention.Create().SetID(act).SetSaleID(w.sale).SetItemID(w.item).SetKind("ADJUST_STOCK").SetQuantity(5).
			SetNote("more came").SetState("FINISHING").SetRequestedBy(id.New[id.User]()).SetCreatedAt(now).SetUpdatedAt(now).Exec(ctx)
		if err != nil {
			return err
		}
		err = tx.StockMovement.Create().SetID(id.New[uuid.UUID]()).SetOrderID(act.UUID()).SetItemID(w.item).SetKind("ADJUST").SetQuantity(5).SetCreatedAt(now).Exec(ctx)
		if err != nil {
			return err
		}
		return tx.SaleItem.UpdateOneID(w.item).AddAvailable(5).AddTotal(5).Exec(ctx)
	})
	if report := w.audit(); !report.OK {
		t.Errorf("written, on its way to Redis: %q", report.Findings)
	}
	w.update(func(ctx context.Context, tx *ent.Tx) error {
		return tx.Intervention.UpdateOneID(act).SetState("DONE").Exec(ctx)
	})
	w.finds("20 units were loaded into Redis, and 25 are on sale")
}

func TestTheJSONHasTheAgreedNames(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(audit.Report{SaleID: "sal_1", Findings: []string{"x"}, Notes: []string{"y"}})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"saleId":"sal_1","ok":false,"findings":["x"],"notes":["y"],` + // notes are omitted when empty
		`"postgres":{"total":0,"available":0,"held":0,"sold":0,"orders":0,"offers":0},` +
		`"redis":{"stock":0,"reserved":0},"stream":{"unread":0,"pending":0,"dead":0}}`
	if string(text) != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
}

func TestAnUnknownSaleIsNoFinding(t *testing.T) {
	t.Parallel()
	w := setup(t, testdb.Postgres(t))
	if _, err := w.auditor.Sale(t.Context(), id.New[id.Sale]()); !errors.Is(err, audit.ErrUnknownSale) {
		t.Errorf("error is %v", err)
	}
}

func TestAnotherSaleOfTheShardIsLeftOut(t *testing.T) {
	t.Parallel()
	w := setup(t, testdb.Postgres(t))
	w.buy(2)
	other := *w
	other.sale = id.New[id.Sale]()
	other.sale[15] = w.sale[15] // the same shard, and so the same stream
	w.must(w.redis.Cmd.XAdd(t.Context(), &redis.XAddArgs{
		Stream: w.keys.Orders(w.shard()), Values: []any{"payload", `{"sale":"` + other.sale.String() + `"}`},
	}).Err())
	w.must(w.redis.Cmd.XAdd(t.Context(), &redis.XAddArgs{Stream: w.keys.Orders(w.shard()), Values: []any{"garbage", "x"}}).Err())
	if report := w.audit(); !report.OK || report.Stream.Unread != 2 {
		t.Errorf("report is %+v", report)
	}
}

func TestEveryWayNotToAddUpIsFound(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		spoil func(w *world)
		want  string
	}{
		"stock burnt in Redis": {func(w *world) {
			w.must(w.redis.Cmd.HIncrBy(w.Context(), w.keys.Item(w.shard(), w.item), "stock", -1).Err())
		}, "stock 12 + reserved 7 in Redis is not the 20 units that were loaded"},
		"reservation lost": {func(w *world) {
			w.must(w.redis.Cmd.HDel(w.Context(), w.keys.Reservations(w.shard(), w.item), w.users[0].String()).Err())
		}, "7 units are reserved in Redis, and its reservations have 6"},
		"order without reservation": {func(w *world) {
			w.must(w.redis.Cmd.HDel(w.Context(), w.keys.Reservations(w.shard(), w.item), w.users[0].String()).Err())
		}, "1 live orders have no reservation in Redis"},
		"message without reservation": {func(w *world) {
			w.must(w.redis.Cmd.HDel(w.Context(), w.keys.Reservations(w.shard(), w.item), w.users[6].String()).Err())
		}, "1 messages wait for units without a reservation in Redis"},
		"message lost": {func(w *world) {
			w.must(w.redis.Cmd.XTrimMaxLen(w.Context(), w.keys.Orders(w.shard()), 0).Err())
		}, "3 reservations in Redis have neither an order nor a message"},
		"acknowledged unwritten": {func(w *world) {
			for _, entry := range w.read(1) {
				w.must(w.redis.Cmd.XAck(w.Context(), w.keys.Orders(w.shard()), group, entry.ID).Err())
			}
		}, "1 reservations in Redis have neither an order nor a message"},
		"message set aside": {setAside, "1 messages were set aside before their tasks ended"},
		"cancelled, not given back": {func(w *world) {
			w.update(func(ctx context.Context, tx *ent.Tx) error {
				return tx.Order.UpdateOneID(id.Order(w.tasks[0])).SetStatus(entorder.StatusCANCELLED).Exec(ctx)
			})
		}, "1 reservations in Redis belong to tasks that have ended"},
		"held and orders differ": {func(w *world) {
			w.update(func(ctx context.Context, tx *ent.Tx) error {
				return tx.SaleItem.UpdateOneID(w.item).AddAvailable(1).AddHeld(-1).Exec(ctx)
			})
		}, "3 units are held by its row, and 4 by unpaid orders"},
		"ledger line missing": {func(w *world) {
			w.unprotected()
			w.update(func(ctx context.Context, tx *ent.Tx) error {
				_, err := tx.StockMovement.Delete().Exec(ctx)
				return err
			})
		}, "20 units are put on sale by its row, and 0 by the ledger"},
		"task ended twice": {func(w *world) {
			w.update(func(ctx context.Context, tx *ent.Tx) error {
				return tx.OrderFailure.Create().SetID(w.tasks[0]).SetSaleID(w.sale).SetItemID(w.item).SetUserID(w.users[0]).
					SetQuantity(1).SetCode("SOLD_OUT").SetReason("test").SetReservedAt(time.Now()).SetCreatedAt(time.Now()).Exec(ctx)
			})
		}, "1 tasks ended both as an order and as a failure"},
		"over the limit": {func(w *world) {
			w.update(func(ctx context.Context, tx *ent.Tx) error {
				return tx.SaleItem.UpdateOneID(w.item).SetPurchaseLimit(1).Exec(ctx)
			})
			w.must(w.redis.Cmd.HSet(w.Context(), w.keys.Item(w.shard(), w.item), "limit", 1).Err())
			w.bigOrder()
		}, "1 orders exceed the purchase limit of their buyers"},
		"over the limit of the sale": {func(w *world) {
			w.update(func(ctx context.Context, tx *ent.Tx) error {
				return tx.Sale.UpdateOneID(w.sale).SetTotalLimit(1).Exec(ctx)
			})
			w.bigOrder()
		}, "1 orders exceed their buyers' purchase limit of the whole sale"},
		"over the uses of a code": {func(w *world) {
			w.update(func(ctx context.Context, tx *ent.Tx) error {
				return tx.Order.Update().Where(entorder.IDIn(id.Order(w.tasks[0]), id.Order(w.tasks[1]))).
					SetPersonKeys(string(person.CodeOf(1<<18, 1))).Exec(ctx)
			})
		}, "1 orders exceed the uses of their codes"},
		"gate lost": {func(w *world) {
			w.must(w.redis.Cmd.Del(w.Context(), w.keys.Item(w.shard(), w.item), w.keys.Reservations(w.shard(), w.item)).Err())
		}, "it has no gate in Redis, although its sale is PREHEATED"},
		"gate of an older time": {func(w *world) {
			w.must(w.redis.Cmd.HSet(w.Context(), w.keys.Item(w.shard(), w.item), "epoch", 0).Err())
		}, "its gate has epoch 0, and its sale epoch 1"},
		"gate of an older run of Redis": {func(w *world) {
			w.must(w.redis.Cmd.HSet(w.Context(), w.keys.Item(w.shard(), w.item), "run", "0123456789abcdef0123456789abcdef01234567").Err())
		}, "its gate was built before the last restart or failover of Redis"},
		"gate of older data": {func(w *world) {
			w.update(func(ctx context.Context, tx *ent.Tx) error {
				return tx.SaleItem.UpdateOneID(w.item).SetGateRevision(1_000_000).Exec(ctx)
			})
		}, "its gate is older than one before: its stock has revision 1007, and had 1000000"},
		"gate half built": {func(w *world) {
			w.must(w.redis.Cmd.HSet(w.Context(), w.keys.Item(w.shard(), w.item), "gate", "loading").Err())
		}, "its gate is being built"},
		"reservation garbled": {func(w *world) {
			w.must(w.redis.Cmd.HSet(w.Context(), w.keys.Reservations(w.shard(), w.item), w.users[0].String(), "x").Err())
		}, "1 reservations in Redis cannot be read"},
		"stock added in Postgres alone": {func(w *world) {
			w.update(func(ctx context.Context, tx *ent.Tx) error {
				return tx.SaleItem.UpdateOneID(w.item).AddAvailable(5).AddTotal(5).Exec(ctx)
			})
		}, "20 units were loaded into Redis, and 25 are on sale"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, testdb.Postgres(t))
			w.buy(7)
			w.work(4)
			test.spoil(w)
			w.finds(test.want)
		})
	}
}

// setAside moves one message to the dead letters, as the worker's router does.
func setAside(w *world) {
	key := w.keys.Orders(w.shard())
	letters := stream.NewDeadLetters(stream.DeadLettersConfig{Client: w.redis.Cmd, Record: deadletter.NewStore(deadletter.Config{DB: w.db}), Log: slog.New(slog.DiscardHandler)})
	subscriber, err := stream.NewSubscriber(stream.SubscriberConfig{
		Client: w.redis.NewBlocking(), Group: group, Consumer: "test", Batch: 1, Log: slog.New(slog.DiscardHandler),
	})
	w.must(err)
	messages, err := subscriber.Subscribe(w.Context(), key)
	w.must(err)
	msg := <-messages
	msg.Metadata.Set(middleware.PoisonedTopicKey, key)
	msg.Metadata.Set(middleware.ReasonForPoisonedKey, "test")
	w.must(letters.Publish("", msg))
	msg.Ack()
	w.must(subscriber.Close())
}

// bigOrder sets the quantity of the first order to two units.
func (w *world) bigOrder() {
	w.update(func(ctx context.Context, tx *ent.Tx) error {
		if _, err := tx.Order.Delete().Where(entorder.ID(id.Order(w.tasks[0]))).Exec(ctx); err != nil {
			return err
		}
		now := time.Now()
		return tx.Order.Create().SetID(id.Order(w.tasks[0])).SetNumber("X1").SetSaleID(w.sale).SetItemID(w.item).SetUserID(w.users[0]).
			SetQuantity(2).SetUnitPriceMinor(69900).SetCurrency("CNY").SetEpoch(1).
			SetReservedAt(now).SetCreatedAt(now).SetUpdatedAt(now).Exec(ctx)
	})
}
