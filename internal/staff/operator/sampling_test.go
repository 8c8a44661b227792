package operator_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"seckill/internal/buy/order"
	"seckill/internal/buy/reservation"
	"seckill/internal/buy/sale"
	"seckill/internal/platform/id"
	"seckill/internal/staff/operator"
	"seckill/internal/testenv"
)

// running is a sale with the real gate, the real writer and the real releaser.
type running struct {
	*env
	sale     *sale.Sale
	reserver *reservation.Gate
	writer   *order.Writer
	releaser *reservation.Gate
	accepted atomic.Int64
	failed   atomic.Int64
}

func (e *env) run(v *sale.Sale) *running {
	log := slog.New(slog.DiscardHandler)
	// The gate uses the clock of Redis, the rest of the test its own clock.
	e.must(e.conn.Cmd.HSet(e.t.Context(), e.keys.Item(id.ShardOf(v.ID), v.Items[0].ID), "opens", 0).Err())
	r := &running{
		env: e, sale: v,
		reserver: reservation.NewGate(reservation.GateConfig{Client: e.conn.Script, Keys: e.keys, Timeout: testenv.Wait, Log: log}),
		writer:   order.NewWriter(order.WriterConfig{DB: e.db, Clock: e.clock, Timeout: testenv.Wait}),
		releaser: reservation.NewGate(reservation.GateConfig{Client: e.conn.Script, Keys: e.keys, Timeout: testenv.Wait}),
	}
	e.t.Cleanup(func() { _ = r.writer.Close(context.Background()) })
	return r
}

// buy makes one purchase: a path, the gate, and the worker's write.
func (r *running) buy(ctx context.Context) {
	shard, item, user := id.ShardOf(r.sale.ID), r.sale.Items[0], id.New[id.User]()
	permit := reservation.Permit{Epoch: r.sale.Epoch, Until: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)}
	member := redis.Z{Score: float64(permit.Until.UnixMilli()), Member: user.String()}
	if err := r.conn.Cmd.ZAdd(ctx, r.keys.Permits(shard, item.ID), member).Err(); err != nil {
		r.t.Error(err)
		return
	}
	a := reservation.Attempt{
		Task: id.NewTask(shard), Sale: r.sale.ID, Item: item.ID, User: user, Quantity: 1, Permit: permit,
		IdempotencyKey: uuid.NewString(), Terms: "1|EUR|900",
	}
	o, err := r.reserver.Reserve(ctx, a)
	if err != nil {
		r.t.Error(err)
		return
	}
	if o.Code != reservation.Accepted {
		return
	}
	r.accepted.Add(1)
	end := r.writer.Write(ctx, order.Request{
		V: 1, Task: a.Task, User: user, Sale: r.sale.ID, Item: item.ID, Quantity: 1, UnitPriceMinor: item.Price.Minor,
		Currency: item.Price.Currency, PaymentWindowSeconds: 900, IdempotencyKey: a.IdempotencyKey, Epoch: o.Epoch,
		SubmittedAtMs: o.At.UnixMilli(),
	})[0]
	if end.Err != nil || end.Task.Status != order.Succeeded {
		r.failed.Add(1)
		r.t.Errorf("a promised unit was not there: %+v %v", end.Task, end.Err)
	}
}

// broken counts violations in Postgres, in one statement: I1, the ledger, and I3.
const broken = `
SELECT (SELECT count(*) FROM sale_items i WHERE available + held + sold <> total OR available < 0
     OR total <> (SELECT COALESCE(sum(quantity), 0) FROM stock_movements m WHERE m.item_id = i.id AND kind IN ('OPEN', 'ADJUST'))
     OR held <> (SELECT COALESCE(sum(quantity), 0) FROM orders o WHERE o.item_id = i.id AND status = 'PENDING_PAYMENT'))
     + (SELECT count(*) FROM (SELECT 1 FROM orders WHERE status IN ('PENDING_PAYMENT', 'PAID', 'REFUNDING')
        GROUP BY item_id, user_id HAVING count(*) > 1) twice)`

// sample checks both stores until ctx ends and returns the number of samples.
func (r *running) sample(ctx context.Context) (looks int) {
	key := r.keys.Item(id.ShardOf(r.sale.ID), r.sale.Items[0].ID)
	for ; ctx.Err() == nil; looks++ {
		var n int
		if err := r.db.SQL.QueryRowContext(ctx, broken).Scan(&n); err == nil && n != 0 {
			r.t.Errorf("look %d: %d things in the record do not add up", looks, n)
		}
		f, err := r.conn.Cmd.HMGet(ctx, key, "stock", "reserved", "total").Result()
		if err != nil {
			continue
		}
		var stock, reserved, total int
		fmt.Sscan(fmt.Sprint(f[0]), &stock)
		fmt.Sscan(fmt.Sprint(f[1]), &reserved)
		fmt.Sscan(fmt.Sprint(f[2]), &total)
		if stock < 0 || stock+reserved != total {
			r.t.Errorf("look %d: stock %d + reserved %d, total %d", looks, stock, reserved, total)
		}
	}
	return looks
}

// Two processes change the stock up and down while buyers buy: I1 to I3 hold at every
// sample, and each accepted buyer receives a unit.
func TestAdjustingARunningSaleKeepsTheInvariantsAtEverySample(t *testing.T) {
	t.Parallel()
	e := setup(t)
	cfg := e.config(nil)
	cfg.TwoPersonUnits = 100_000 // one operator adjusts all the time
	e.ops = operator.New(cfg)
	v := e.put(sale.Live, 100)
	r := e.run(v)
	other := operator.New(cfg)
	ctx, stop := context.WithCancel(context.Background())
	looks := make(chan int)
	go func() { looks <- r.sample(ctx) }()

	var work sync.WaitGroup
	var tooFew atomic.Int64 // refused at once, which leaves no act
	for range 8 {
		work.Go(func() {
			for range 15 {
				r.buy(context.Background())
			}
		})
	}
	for i, ops := range []*operator.Service{e.ops, other} {
		work.Go(func() {
			for n := range 25 {
				units := []int{7, -5, 3, -9}[(n+i)%4]
				var act *operator.Intervention
				for try := 0; act == nil && try < 20; try++ { // nothing was done: the other was faster each time
					var err error
					act, err = ops.AdjustStock(context.Background(), operator.AdjustInput{
						By: ann, Item: v.Items[0].ID, Units: units, Note: "as we go",
					})
					if err == nil && act.State == operator.Requested { // units are removed
						act, err = ops.Decide(context.Background(), operator.DecideInput{By: bob, Intervention: act.ID, Confirm: true})
					}
					if _, fewer := errors.AsType[operator.TooFew](err); fewer && act == nil {
						tooFew.Add(1)
						break
					}
					if refusal := testenv.Refusal(t, err); refusal == nil && err != nil {
						return
					}
				}
			}
		})
	}
	work.Wait()
	for range 20 {
		e.finish()
	}
	stop()
	n := <-looks
	f := e.figures(v)
	if f.total != f.gateTotal || f.available != f.stock || f.held != f.reserved || f.held != int(r.accepted.Load()) {
		t.Errorf("the stores differ: %+v, accepted %d", f, r.accepted.Load())
	}
	acts, err := e.ops.Interventions(context.Background(), operator.InterventionList{Sale: &v.ID})
	e.must(err)
	change := 0
	for _, act := range acts {
		switch act.State {
		case operator.Done:
			change += act.Units
		case operator.Refused: // fewer were left
		default:
			t.Errorf("left half way: %+v", act)
		}
	}
	if f.total != 100+change || len(acts)+int(tooFew.Load()) != 50 || r.accepted.Load() < 50 {
		t.Errorf("%d units on sale after a change of %d by %d acts; %d sold", f.total, change, len(acts), r.accepted.Load())
	}
	if n < 20 || r.failed.Load() != 0 {
		t.Errorf("%d looks, %d buyers without their unit", n, r.failed.Load())
	}
	t.Logf("%d looks; %d accepted; %+v", n, r.accepted.Load(), f)
}
