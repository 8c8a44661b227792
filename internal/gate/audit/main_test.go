package audit_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"seckill/ent"
	"seckill/ent/payment"
	"seckill/ent/refund"
	"seckill/internal/buy/order"
	"seckill/internal/buy/reservation"
	"seckill/internal/gate/audit"
	"seckill/internal/gate/preload"
	"seckill/internal/ops/seed"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
	"seckill/internal/platform/redisconn"
	"seckill/internal/platform/stream"
	"seckill/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

const group = "orders"

// world is a seeded, loaded sale of 20 units, its buyers, and the services of the test.
type world struct {
	*testing.T
	db       *postgres.DB
	redis    *redisconn.Conn
	keys     reservation.Keys
	reserver *reservation.Gate
	writer   *order.Writer
	auditor  *audit.Auditor
	sale     id.Sale
	item     id.Item
	users    []id.User
	tasks    []id.Task // of accepted attempts
}

func setup(t *testing.T, db *postgres.DB) *world {
	t.Helper()
	conn, prefix := testenv.Redis(t)
	w := &world{T: t, db: db, redis: conn, keys: reservation.Keys{Prefix: prefix}}
	w.auditor = &audit.Auditor{DB: db, Redis: conn, Keys: w.keys, Clock: clock.System{}, Pause: time.Millisecond}
	w.seed()
	w.reserver = reservation.NewGate(reservation.GateConfig{Client: conn.Script, Keys: w.keys, Timeout: testenv.Wait, Log: slog.New(slog.DiscardHandler)})
	w.writer = order.NewWriter(order.WriterConfig{DB: db, Timeout: testenv.Wait})
	t.Cleanup(func() {
		w.must(w.writer.Close(context.Background()))
	})
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// seed creates the sale and opens its gate.
func (w *world) seed() {
	w.Helper()
	s := &seed.Seeder{
		DB: w.db, Clock: clock.System{}, NewID: id.New[uuid.UUID], Gates: w, Users: w,
	}
	result, err := s.Run(w.Context(), seed.Input{
		Users: 30, Stock: 20, OpensIn: -time.Minute, Lasts: time.Hour, PurchaseLimit: 2, PaymentWindow: time.Minute,
	})
	w.must(err)
	w.sale, err = id.ParseSale(result.SaleID)
	w.must(err)
	w.item, err = id.ParseItem(result.ItemID)
	w.must(err)
}

// Hash implements seed.Users.
func (*world) Hash(string) (string, error) { return "no hash", nil }

// Token implements seed.Users.
func (w *world) Token(u seed.User) (string, error) {
	w.users = append(w.users, u.ID)
	return "", nil
}

// Paths implements seed.Users.
func (*world) Paths(context.Context, seed.PathsInput) ([]string, error) { return nil, nil }

// Load builds the gate as the scheduler does; a second call rebuilds it.
func (w *world) Load(ctx context.Context, saleID id.Sale) error {
	return preload.New(preload.Config{
		DB: w.db, Gate: reservation.NewGate(reservation.GateConfig{Client: w.redis.Script, Keys: w.keys, Timeout: testenv.Wait}),
		Backlog: w, NoteTimeout: testenv.Wait, Clock: clock.System{}, Log: slog.New(slog.DiscardHandler),
	}).Load(ctx, saleID)
}

// Requests implements preload.Backlog.
func (w *world) Requests(ctx context.Context, shard int) (requests []order.Request, err error) {
	err = stream.Backlog(ctx, w.redis.Cmd, w.keys.Orders(shard), func(msg *stream.Message) {
		orders, err := order.Decode(msg)
		w.must(err)
		requests = append(requests, orders...)
	})
	return requests, err
}

// Unhandled implements preload.Backlog.
func (w *world) Unhandled(ctx context.Context, shard int) ([]order.Request, error) {
	return w.Requests(ctx, shard)
}

func (w *world) update(fn func(ctx context.Context, tx *ent.Tx) error) {
	w.Helper()
	w.must(w.db.WithTx(w.Context(), fn))
}

func (w *world) shard() int { return id.ShardOf(w.sale) }

// buy takes n units, one for each of the next n users.
func (w *world) buy(n int) {
	w.Helper()
	for range n {
		user := w.users[len(w.tasks)]
		permit := reservation.Permit{Epoch: 1, Until: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)}
		w.must(w.redis.Cmd.ZAdd(w.Context(), w.keys.Permits(w.shard(), w.item),
			redis.Z{Score: float64(permit.Until.UnixMilli()), Member: user.String()}).Err())
		r := order.Request{
			V: 1, Task: id.NewTask(w.shard()), User: user, Sale: w.sale, Item: w.item, Quantity: 1,
			UnitPriceMinor: 69900, Currency: "CNY", PaymentWindowSeconds: 60, IdempotencyKey: "key-of-sixteen-bytes",
		}
		terms, err := r.ItemTerms()
		w.must(err)
		out, err := w.reserver.Reserve(w.Context(), reservation.Attempt{
			Task: r.Task, Sale: r.Sale, Item: r.Item, User: user, Quantity: 1, Permit: permit,
			IdempotencyKey: r.IdempotencyKey, Terms: terms,
		})
		w.must(err)
		if out.Code != reservation.Accepted {
			w.Fatalf("reserve answered %d", out.Code)
		}
		w.tasks = append(w.tasks, r.Task)
	}
}

// read delivers up to n messages to a worker.
func (w *world) read(n int) []redis.XMessage {
	w.Helper()
	key := w.keys.Orders(w.shard())
	if err := w.redis.Cmd.XGroupCreate(w.Context(), key, group, "0").Err(); err != nil && !strings.HasPrefix(err.Error(), "BUSYGROUP") {
		w.Fatal(err)
	}
	streams, err := w.redis.Cmd.XReadGroup(w.Context(), &redis.XReadGroupArgs{
		Group: group, Consumer: "test", Streams: []string{key, ">"}, Count: int64(n), Block: -1,
	}).Result()
	w.must(err)
	return streams[0].Messages
}

// work reads n messages, writes their orders and acknowledges them.
func (w *world) work(n int) {
	w.Helper()
	for _, entry := range w.read(n) {
		msg, _ := stream.FromEntry(entry)
		requests, err := order.Decode(msg)
		w.must(err)
		for _, end := range w.writer.Write(w.Context(), requests...) {
			if w.must(end.Err); end.Task.Status != order.Succeeded {
				w.Fatalf("task ended %s", end.Task.Status)
			}
		}
		w.must(w.redis.Cmd.XAck(w.Context(), w.keys.Orders(w.shard()), group, entry.ID).Err())
	}
}

// audit returns the report and fails the test on an error.
func (w *world) audit() *audit.Report {
	w.Helper()
	report, err := w.auditor.Sale(w.Context(), w.sale)
	w.must(err)
	return report
}

// finds checks that the audit has exactly this finding, given a part of it.
func (w *world) finds(part string) {
	w.Helper()
	report := w.audit()
	if report.OK || !strings.Contains(strings.Join(report.Findings, "\n"), part) {
		w.Errorf("findings lack %q:\n%s", part, strings.Join(report.Findings, "\n"))
	}
	for _, line := range report.Findings {
		if !strings.HasPrefix(line, fmt.Sprintf("Item %s: ", w.item.Public())) || !strings.HasSuffix(line, ".") {
			w.Errorf("%q is no sentence about the item", line)
		}
	}
}

// move changes the status of an order as payments, buyers and the scheduler do, with its
// money.
func (w *world) move(i int, to order.Status, reserved *id.Task, keep bool) {
	w.Helper()
	w.moveOnly(i, to, reserved, keep)
	switch to {
	case order.Paid:
		w.pay(i, payment.StatusSUCCEEDED, time.Now().Add(time.Minute))
	case order.Refunded:
		p, err := w.db.Ent.Payment.Query().Where(payment.OrderID(id.Order(w.tasks[i]))).OnlyID(w.Context())
		w.must(err)
		w.sendBack(i, p, refund.CauseASKED, refund.StatusSUCCEEDED)
		w.update(func(ctx context.Context, tx *ent.Tx) error {
			return tx.Payment.UpdateOneID(p).SetStatus(payment.StatusREFUNDED).Exec(ctx)
		})
	case order.PendingPayment, order.Refunding, order.Cancelled, order.Expired:
	}
}

// moveOnly changes the status of an order without money.
func (w *world) moveOnly(i int, to order.Status, reserved *id.Task, keep bool) {
	w.Helper()
	w.update(func(ctx context.Context, tx *ent.Tx) error {
		row, err := tx.Order.Get(ctx, id.Order(w.tasks[i]))
		if err != nil {
			return err
		}
		_, err = order.Apply(ctx, tx, order.Move{
			Order: order.FromRow(row), To: to, At: time.Now(), KeepUnits: keep, NewReservation: reserved,
			Entry: order.Entry{By: order.Actor{Kind: order.Clock}, Code: order.CodeExpired},
		})
		return err
	})
}

// returned marks the units of all orders as released.
func (w *world) returned() {
	w.Helper()
	w.update(func(ctx context.Context, tx *ent.Tx) error {
		return tx.Order.Update().SetReturnDue(false).Exec(ctx)
	})
}
