package storefront_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"seckill/ent"
	entorder "seckill/ent/order"
	"seckill/internal/buy/order"
	"seckill/internal/buy/storefront"
	"seckill/internal/platform/id"
	"seckill/internal/platform/notifier"
	"seckill/internal/platform/postgres"
	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

// patience bounds the time in which all expected events arrive.
const patience = testenv.Wait

// customer is a buyer who follows two unpaid orders.
type customer struct {
	t       *testing.T
	db      *postgres.DB
	orders  *order.Store
	hub     *notifier.Hub
	user    id.User
	ids     [2]id.Order
	began   time.Time
	changes notifier.Source[*order.Order]
}

func newCustomer(t *testing.T, reread time.Duration) *customer {
	t.Helper()
	c := &customer{
		t: t, db: testdb.Postgres(t), hub: notifier.NewHub(notifier.Options{Reread: reread}), user: id.New[id.User](),
		began: time.Now().UTC().Truncate(time.Microsecond),
	}
	c.orders = order.NewStore(order.StoreConfig{DB: c.db, Log: slog.New(slog.DiscardHandler)})
	saleID := id.New[id.Sale]()
	c.must(c.db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		for i := range c.ids {
			item, task := id.New[id.Item](), id.NewIn[id.Order](id.ShardOf(saleID))
			c.ids[i] = task
			err := tx.SaleItem.Create().SetID(item).SetSaleID(saleID).SetGoodsID(id.New[id.Goods]()).SetPosition(i).SetPriceMinor(100).
				SetCurrency("CNY").SetTotal(5).SetAvailable(4).SetHeld(1).Exec(ctx)
			if err != nil {
				return err
			}
			err = tx.Order.Create().SetID(task).SetNumber(order.Number(task, c.began, i)).SetSaleID(saleID).SetItemID(item).
				SetUserID(c.user).SetStatus(entorder.StatusPENDING_PAYMENT).SetQuantity(1).SetUnitPriceMinor(100).SetCurrency("CNY").
				SetEpoch(1).SetReservedAt(c.began).SetCreatedAt(c.began).SetUpdatedAt(c.began).Exec(ctx)
			if err != nil {
				return err
			}
		}
		return nil
	}))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	var err error
	c.changes, err = storefront.New(storefront.Config{Orders: c.orders, Hub: c.hub}).WatchOrders(ctx, c.user)
	c.must(err)
	t.Cleanup(c.changes.Close)
	return c
}

func (c *customer) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// cancel cancels an order with the given transaction time, and calls more before the
// commit.
func (c *customer) cancel(which int, at time.Time, more func()) {
	c.t.Helper()
	c.must(c.db.WithTx(c.t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		o, err := c.orders.Reload(ctx, c.ids[which])
		if err != nil {
			return err
		}
		_, err = order.Apply(ctx, tx, order.Move{
			Order: o, To: order.Cancelled, At: at,
			Entry: order.Entry{By: order.Actor{Kind: order.Buyer, User: c.user}, Code: order.CodeCancelled},
		})
		more()
		return err
	}))
}

// publish publishes a change as the process that made it does.
func (c *customer) publish() {
	c.hub.Publish(notifier.Event{Key: storefront.BuyerKey(c.user), Revision: storefront.BuyerRevision})
}

// want waits until an order is published in a state.
func (c *customer) want(which int, status order.Status) {
	c.t.Helper()
	change, ok := c.changes.Next()
	if !ok {
		c.t.Fatalf("order %d is never pushed as %s", which, status)
	}
	if change.Value.ID != c.ids[which] || change.Value.Status != status {
		c.t.Errorf("pushed %s as %s, want order %d as %s", change.Value.ID, change.Value.Status, which, status)
	}
}

// Two orders of one buyer change concurrently: the change with the earlier time commits
// after the one with the later time was pushed.
func TestAChangeThatCommitsLateIsPushedWhateverItsTime(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reread    time.Duration
		published bool
	}{
		"published":  {time.Hour, true},
		"read again": {20 * time.Millisecond, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			buyer := newCustomer(t, c.reread)
			changed := func(which int) {
				if c.published {
					buyer.publish()
				}
				buyer.want(which, order.Cancelled)
			}
			buyer.want(0, order.PendingPayment)
			buyer.want(1, order.PendingPayment)
			buyer.cancel(0, buyer.began.Add(time.Millisecond), func() {
				buyer.cancel(1, buyer.began.Add(time.Second), func() {})
				changed(1)
			})
			changed(0)
		})
	}
}
