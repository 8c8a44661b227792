package main

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message/router/middleware"
	"github.com/redis/go-redis/v9"

	"seckill/internal/buy/order"
	"seckill/internal/buy/reservation"
	"seckill/internal/platform/deadletter"
	"seckill/internal/platform/id"
	"seckill/internal/platform/stream"
	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

func TestDeadLettersAreReplayedFromTheCommandLine(t *testing.T) {
	t.Parallel()
	conn, _ := testenv.Redis(t)
	environ := services(t)
	prefix, _ := lookupIn(environ)("SECKILL_REDIS_PREFIX")
	keys := reservation.Keys{Prefix: prefix}
	address, _ := lookupIn(environ)("SECKILL_DATABASE_URL")
	store := deadletter.NewStore(deadletter.Config{DB: testdb.Open(t, address)})
	letters := stream.NewDeadLetters(stream.DeadLettersConfig{Client: conn.Cmd, Record: store, Log: slog.New(slog.DiscardHandler)})
	sale := id.New[id.Sale]()
	orders := keys.Orders(id.ShardOf(sale))
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		msg, err := order.Request{
			V: 1, Task: id.NewTask(id.ShardOf(sale)), User: id.New[id.User](), Sale: sale, Item: id.New[id.Item](), Quantity: 1,
			UnitPriceMinor: 1999, Currency: "EUR", PaymentWindowSeconds: 900, Epoch: 1, SubmittedAtMs: time.Now().UnixMilli(),
		}.Message()
		must(err)
		fields, err := stream.Entry(msg)
		must(err)
		entry, err := conn.Cmd.XAdd(t.Context(), &redis.XAddArgs{Stream: orders, Values: fields}).Result()
		must(err)
		msg.Metadata.Set("_stream_entry", entry) // as the subscriber does
		msg.Metadata.Set(middleware.PoisonedTopicKey, orders)
		must(letters.Publish("", msg))
		must(conn.Cmd.XDel(t.Context(), orders, entry).Err())
	}
	list, err := store.List(t.Context(), deadletter.List{Limit: 10})
	must(err)

	replay := func(code int, printed, complaint string, args ...string) {
		t.Helper()
		got := command(t, environ, append([]string{"deadletters", "replay"}, args...)...)
		got.wants(t, code, complaint)
		if !strings.Contains(got.stdout, printed) {
			t.Errorf("%s printed %q", args, got.stdout)
		}
	}
	replay(exitUnfit, "", "missing flags: --note", "--all")
	replay(exitUnfit, "", "either --all or ids", "--note", "x")
	replay(exitUnfit, "", "either --all or ids", "--note", "x", "--all", list[0].ID)
	replay(exitUnfit, "", "--note: give 1 to 200 characters", "--note", " ", "--all")
	replay(exitUnfit, "", "there is no dead letter 1732300000000-0", "--note", "x", "1732300000000-0") // of an older release
	replay(exitOK, "replayed 1, refused 0\n", "", "--note", "a first try", list[0].ID)
	replay(exitOK, "replayed 2, refused 0\n", "", "--note", "the disk was full", "--all")
	replay(exitOK, "replayed 0, refused 0\n", "", "--note", "the disk was full", "--all")
	if n := conn.Cmd.XLen(t.Context(), orders).Val(); n != 3 {
		t.Errorf("%d messages are back in the stream", n)
	}
	if n, err := store.Count(t.Context()); err != nil || n != 0 {
		t.Errorf("%d letters are left, %v", n, err)
	}
}
