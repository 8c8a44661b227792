package queue_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"seckill/internal/buy/admission/path"
	"seckill/internal/buy/admission/queue"
	"seckill/internal/buy/reservation"
	"seckill/internal/outbox/notice"
	"seckill/internal/platform/captcha"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
	"seckill/internal/platform/redisconn"
	"seckill/internal/testenv"
)

func TestMain(m *testing.M) {
	testenv.Main(m, goleak.IgnoreTopFunction("github.com/redis/go-redis/v9/maintnotifications.(*CircuitBreakerManager).cleanupLoop"))
}

// fixture is one sale with one item of ten units, open, and its waiting room.
type fixture struct {
	t        testing.TB
	redis    redis.UniversalClient
	keys     reservation.Keys
	captchas *captcha.Service
	paths    *path.Service
	queue    *queue.Service

	rules atomic.Pointer[queue.Rules]
	gone  func(ctx context.Context, item id.Item) (bool, error) // nil = units may be released
	sale  id.Sale
	item  id.Item
	shard int

	mu       sync.Mutex
	unserved []queue.Unserved  // buyers whose tickets brought nothing; guarded by mu while steps run at once
	notices  notice.Admissions // buyers who were admitted, by any process
}

func newFixture(t *testing.T, conn *redisconn.Conn, prefix string) *fixture {
	t.Helper()
	f := &fixture{t: t, redis: conn.Cmd, keys: reservation.Keys{Prefix: prefix}, sale: id.New[id.Sale](), item: id.New[id.Item]()}
	f.shard = id.ShardOf(f.sale)
	f.rules.Store(&queue.Rules{PerMille: 1000})
	var err error
	f.captchas, err = captcha.New(captcha.Config{
		Client: conn.Script, Keys: f.keys, Clock: clock.System{}, Secret: []byte(strings.Repeat("captcha!", 4)), PowMax: 20, Wait: testenv.Wait, Kept: pathLife,
	})
	if err != nil {
		t.Fatal(err)
	}
	f.paths = path.New(path.Config{Client: conn.Script, Keys: f.keys, Captchas: f.captchas, Tokens: tokens, Ratio: 1, Life: pathLife})
	f.queue = f.service(conn)
	f.gate("gate", "open")
	return f
}

var tokens = path.NewTokens([][]byte{[]byte(strings.Repeat("path tok", 4))})

// pathLife is longer than any test takes on a busy machine.
const pathLife = time.Hour

// patience is longer than any test takes on a busy machine.
const patience = time.Hour

// service returns the waiting rooms of one process.
func (f *fixture) service(conn *redisconn.Conn) *queue.Service {
	return queue.New(queue.Config{
		Client: conn.Script, Keys: f.keys, Captchas: f.captchas, Tokens: tokens, HeartbeatTimeout: patience, Life: pathLife,
		Sales: sales{f}, Counts: counts{f}, Notices: &f.notices,
	})
}

// sales are those of a fixture.
type sales struct{ f *fixture }

func (s sales) Queue(context.Context, id.Sale) (queue.Rules, error) { return *s.f.rules.Load(), nil }

func (s sales) Gone(ctx context.Context, item id.Item) (bool, error) {
	if s.f.gone == nil {
		return false, nil
	}
	return s.f.gone(ctx, item)
}

// counts keeps the buyers that were not served.
type counts struct{ f *fixture }

func (counts) Admitted(id.Sale, int) {}

func (c counts) Unserved(u queue.Unserved) {
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	c.f.unserved = append(c.f.unserved, u)
}

// gate builds the gate of the item once and sets fields.
func (f *fixture) gate(changes ...any) {
	f.t.Helper()
	now := time.Now()
	f.build(7)
	fields := append([]any{
		"sale", f.sale.String(), "epoch", 7, "limit", 1, "total", 10, "stock", 10, "reserved", 0, "rev", 1,
		"opens", now.Add(-time.Minute).UnixMilli(), "closes", now.Add(time.Hour).UnixMilli(),
	}, changes...)
	f.must(f.redis.HSet(f.t.Context(), f.keys.Item(f.shard, f.item), fields...).Err())
}

// set sets fields of the gate.
func (f *fixture) set(fields ...any) {
	f.t.Helper()
	f.must(f.redis.HSet(f.t.Context(), f.keys.Item(f.shard, f.item), fields...).Err())
}

func (f *fixture) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// build builds the gate under an epoch, unless it has that epoch.
func (f *fixture) build(epoch int64) {
	f.t.Helper()
	gate := reservation.NewGate(reservation.GateConfig{Client: f.redis, Keys: f.keys, Timeout: testenv.Wait})
	begun, err := gate.Begin(f.t.Context(), f.sale, f.item, epoch)
	if err == nil && begun {
		_, err = gate.Open(f.t.Context(), reservation.Contents{
			Sale: f.sale, Item: f.item, State: reservation.GateOpen, Epoch: epoch, Limit: 1, Total: 10, Stock: 10, Revision: 1,
			Opens: time.Now().Add(-time.Minute), Closes: time.Now().Add(time.Hour),
		})
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

func onBoth(t *testing.T, test func(t *testing.T, f *fixture)) {
	t.Helper()
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		conn, prefix := testenv.Redis(t)
		test(t, newFixture(t, conn, prefix))
	})
	t.Run("miniredis", func(t *testing.T) {
		t.Parallel()
		mini := miniredis.RunT(t)
		mini.ClockTTL(true)
		conn, err := redisconn.Open(t.Context(), testenv.RedisURLAt(mini.Addr()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		test(t, newFixture(t, conn, "t:"))
	})
}

func (f *fixture) input(user id.User) queue.EnterInput {
	return queue.EnterInput{Sale: f.sale, Item: f.item, User: user, Waived: true}
}

// enter requires a ticket.
func (f *fixture) enter(user id.User) *queue.Ticket {
	f.t.Helper()
	t, err := f.queue.Enter(f.t.Context(), f.input(user))
	if err != nil || t == nil {
		f.t.Fatalf("enter: %+v, %v", t, err)
	}
	return t
}

// step runs one step of the loop and returns its counts.
func (f *fixture) step() map[string]int {
	f.t.Helper()
	counts, err := f.queue.Step(f.t.Context())
	f.must(err)
	return counts
}

// ticket reads a ticket that must exist.
func (f *fixture) ticket(t *queue.Ticket) *queue.Ticket {
	f.t.Helper()
	now, err := f.queue.Own(f.t.Context(), t.ID, t.User)
	if err != nil || now == nil {
		f.t.Fatalf("ticket: %v, %v", now, err)
	}
	return now
}

// buy takes a unit and uses the path token up, as the reserve script does; false if
// there is no unit or the token is invalid.
func (f *fixture) buy(t *queue.Ticket) bool {
	f.t.Helper()
	ctx := f.t.Context()
	item, permits := f.keys.Item(f.shard, f.item), f.keys.Permits(f.shard, f.item)
	stock, err := f.redis.HGet(ctx, item, "stock").Int()
	f.must(err)
	if stock == 0 || t.Path == nil {
		return false
	}
	epoch, err := f.redis.HGet(ctx, item, "epoch").Int64()
	f.must(err)
	permit := tokens.Permit(t.User, f.item, t.Path.Token)
	if permit.Epoch != epoch || f.redis.ZScore(ctx, permits, t.User.String()).Val() != float64(permit.Until.UnixMilli()) {
		return false
	}
	_, err = f.redis.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.HIncrBy(ctx, item, "stock", -1)
		p.HSet(ctx, f.keys.Reservations(f.shard, f.item), t.User.String(), uuid.NewString()+"|1|0|k")
		p.ZRem(ctx, permits, t.User.String())
		return nil
	})
	f.must(err)
	return true
}

// line returns the tickets in the order of admission.
func (f *fixture) line() []string {
	f.t.Helper()
	line, err := f.redis.ZRange(f.t.Context(), f.keys.WaitingRoom(f.shard, f.item), 0, -1).Result()
	f.must(err)
	return line
}
