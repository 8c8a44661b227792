package app

import (
	"context"
	"log/slog"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message/router/middleware"
	"github.com/redis/go-redis/v9"

	"seckill/internal/deadletter"
	"seckill/internal/id"
	"seckill/internal/order"
	"seckill/internal/reservation"
	"seckill/internal/stream"
	"seckill/internal/testenv"
)

// afterReading does something once, as soon as a stream was read.
type afterReading struct {
	redis.Hook
	stream string
	do     func()
}

func (h *afterReading) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *afterReading) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h *afterReading) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if args := cmd.Args(); cmd.Name() == "xrange" && args[1] == h.stream && h.do != nil {
			do := h.do
			h.do = nil
			do()
		}
		return err
	}
}

// Its units are held all the while: a gate that is built without them sells them
// twice.
func TestAMessageThatIsReplayedWhileMessagesAreReadIsSeen(t *testing.T) {
	t.Parallel()
	conn, prefix := testenv.Redis(t)
	db, quiet := testenv.Postgres(t), slog.New(slog.DiscardHandler)
	a := &App{svc: &services{db: db, redis: conn}, keys: reservation.Keys{Prefix: prefix}, log: quiet}
	a.deadLetters = stream.NewDeadLetters(stream.DeadLettersConfig{Client: conn.Cmd, Key: prefix + "{dead}", Log: quiet})
	a.letters = deadletter.New(deadletter.Config{
		DB: db, Letters: a.deadLetters, Orders: order.NewStore(order.StoreConfig{DB: db, Log: quiet}), Log: quiet,
	})
	saleID := id.New()
	shard := id.ShardOf(saleID)
	task := id.NewTask(shard)
	msg, err := order.Requested{
		V: 1, Task: task, User: id.New(), Sale: saleID, Item: id.New(), Quantity: 1, UnitPriceMinor: 1, Currency: "EUR",
		PaymentWindowSeconds: 900, IdempotencyKey: task.String(), Epoch: 1, SubmittedAtMs: 1,
	}.Message()
	if err != nil {
		t.Fatal(err)
	}
	for key, value := range map[string]string{
		"_stream_entry": "1-1", middleware.PoisonedTopicKey: a.keys.Orders(shard), middleware.ReasonForPoisonedKey: "poisoned",
	} {
		msg.Metadata.Set(key, value)
	}
	if err := a.deadLetters.Publish("", msg); err != nil {
		t.Fatal(err)
	}
	letters, err := a.deadLetters.List(t.Context(), "", 1)
	if err != nil || len(letters) != 1 {
		t.Fatal(letters, err)
	}
	conn.Cmd.AddHook(&afterReading{stream: a.keys.Orders(shard), do: func() {
		if done, err := a.deadLetters.Replay(t.Context(), letters[0].ID); err != nil || done != stream.Replayed {
			t.Errorf("replay: %v %v", done, err)
		}
	}})
	pending, err := a.pendingOrders(t.Context(), shard)
	if err != nil || len(pending) == 0 || pending[0].Task != task {
		t.Errorf("pending: %+v, %v", pending, err)
	}
}
