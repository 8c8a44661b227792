package audit_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"seckill/ent"
	"seckill/internal/buy/order"
	"seckill/internal/platform/id"
	"seckill/internal/platform/stream"
	"seckill/internal/testdb"
)

// crowd is more reservations than are read at once, and more is stock that remains.
const crowd, more = 20_100, 50_000

// addCrowd adds units and reserves one for each user of a crowd; their messages wait. Some
// users of the test can still buy. It returns one user of the crowd.
func (w *world) addCrowd() (one id.User) {
	w.Helper()
	now := time.Now()
	w.update(func(ctx context.Context, tx *ent.Tx) error {
		err := tx.StockMovement.Create().SetID(id.New[uuid.UUID]()).SetOrderID(id.New[uuid.UUID]()).SetItemID(w.item).SetKind("ADJUST").
			SetQuantity(crowd + more).SetCreatedAt(now).Exec(ctx)
		if err != nil {
			return err
		}
		return tx.SaleItem.UpdateOneID(w.item).AddAvailable(crowd + more).AddTotal(crowd + more).Exec(ctx)
	})
	pipe := w.redis.Cmd.Pipeline()
	pipe.HSet(w.Context(), w.keys.Item(w.shard(), w.item), "total", 20+crowd+more, "stock", 20+more, "reserved", crowd)
	for i := range crowd {
		one = id.User(uuid.New())
		r := order.Request{
			V: 1, Task: id.NewTask(w.shard()), User: one, Sale: w.sale, Item: w.item, Quantity: 1,
			Currency: "CNY", PaymentWindowSeconds: 60, Epoch: 1, SubmittedAtMs: now.UnixMilli(),
		}
		message, err := r.Message()
		w.must(err)
		fields, err := stream.Entry(message)
		w.must(err)
		pipe.HSet(w.Context(), w.keys.Reservations(w.shard(), w.item), one.String(), fmt.Sprintf("%s|1|%d|key", r.Task, now.UnixMilli()))
		pipe.XAdd(w.Context(), &redis.XAddArgs{Stream: w.keys.Orders(w.shard()), Values: fields})
		if i%500 == 0 { // more at once may exceed the command timeout on a busy server
			_, err := pipe.Exec(w.Context())
			w.must(err)
		}
	}
	_, err := pipe.Exec(w.Context())
	w.must(err)
	for range more / 10 {
		w.users = append(w.users, id.User(uuid.New()))
	}
	return one
}

func TestARushThatNeverRestsIsNoFinding(t *testing.T) {
	t.Parallel()
	w := setup(t, testdb.Postgres(t))
	w.addCrowd()
	w.redis.Cmd.AddHook(&before{name: "hscan", do: func() { w.buy(1) }})
	r := w.audit()
	if !r.OK || r.Drift != 0 || len(r.Lost) != 0 || len(w.tasks) == 0 {
		t.Errorf("%d bought, %d lost, drift %d: %q", len(w.tasks), len(r.Lost), r.Drift, r.Findings)
	}
	if len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "sum was not checked") {
		t.Errorf("notes %q lack what was left out", r.Notes)
	}
}

func TestUnitsWithoutAReservationAreFoundWhenTheRushRests(t *testing.T) {
	t.Parallel()
	w := setup(t, testdb.Postgres(t))
	one := w.addCrowd()
	w.must(w.redis.Cmd.HDel(t.Context(), w.keys.Reservations(w.shard(), w.item), one.String()).Err())
	w.finds(fmt.Sprintf("%d units are reserved in Redis, and its reservations have %d", crowd, crowd-1))
	looks := 0
	w.redis.Cmd.AddHook(&before{name: "hlen", do: func() { looks++ }})
	w.redis.Cmd.AddHook(&before{name: "hscan", do: func() {
		if looks%2 == 1 { // the first reading of each pair is torn, the second is not
			w.buy(1)
		}
	}})
	w.finds("units are reserved in Redis, and its reservations have")
}
