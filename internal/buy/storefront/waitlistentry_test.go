package storefront_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"seckill/ent"
	"seckill/ent/waitlistentry"
	"seckill/internal/buy/reservation"
	"seckill/internal/buy/sale"
	"seckill/internal/buy/storefront"
	"seckill/internal/buy/waitlist"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
	"seckill/internal/platform/notifier"
	"seckill/internal/platform/postgres"
	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

// soldOutItem is a catalogue with one item that is sold out.
type soldOutItem uuid.UUID

func (i soldOutItem) Items(context.Context) ([]waitlist.Item, error) {
	return []waitlist.Item{{ID: id.Item(i), SoldOut: true}}, nil
}

// queued is a sold-out sale with buyers on its waitlist, the last of whom subscribes to
// the status of the sale.
type queued struct {
	t       *testing.T
	db      *postgres.DB
	line    *waitlist.Service
	restock *waitlist.RestockOutlooks
	sale    id.Sale
	user    id.User // the last buyer
	places  []id.Waitlist
	states  notifier.Source[*sale.Sale]
	public  notifier.Source[*sale.Sale] // of a visitor who subscribed before the first check
}

// newQueued returns a waitlist of buyers. It subscribes before the process has read the
// waitlist when late, otherwise after.
func newQueued(t *testing.T, buyers int, late bool) *queued {
	t.Helper()
	q := &queued{t: t, db: testdb.Postgres(t), sale: id.New[id.Sale]()}
	conn, prefix := testenv.Redis(t)
	log, item, now := slog.New(slog.DiscardHandler), id.New[id.Item](), time.Now().UTC()
	q.must(q.db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		err := tx.Sale.Create().SetID(q.sale).SetSlug("gone").SetTitle("Gone").SetStatus("LIVE").SetStartsAt(now.Add(-time.Hour)).
			SetEndsAt(now.Add(time.Hour)).SetPreheatAt(now.Add(-2 * time.Hour)).SetPaymentWindowSeconds(900).SetPurchaseLimit(1).
			SetCreatedAt(now).Exec(ctx)
		if err != nil {
			return err
		}
		err = tx.SaleItem.Create().SetID(item).SetSaleID(q.sale).SetGoodsID(id.New[id.Goods]()).SetPosition(0).SetPriceMinor(100).
			SetCurrency("CNY").SetTotal(1).SetAvailable(0).SetHeld(1).Exec(ctx)
		for range buyers {
			place := id.New[id.Waitlist]()
			q.user, q.places = id.New[id.User](), append(q.places, place)
			if err == nil {
				err = tx.WaitlistEntry.Create().SetID(place).SetSaleID(q.sale).SetItemID(item).SetUserID(q.user).SetQuantity(1).
					SetCreatedAt(now).SetUpdatedAt(now).Exec(ctx)
			}
		}
		return err
	}))
	q.line = waitlist.New(waitlist.Config{DB: q.db, Timeout: testenv.Wait, Clock: clock.System{}, Log: log})
	q.restock = waitlist.NewRestockOutlooks(q.line, soldOutItem(item), log)
	shop := storefront.New(storefront.Config{
		Waitlist: q.line, RestockOutlooks: q.restock, Hub: notifier.NewHub(notifier.Options{Reread: 20 * time.Millisecond}),
		Catalog: sale.NewCatalog(sale.NewStore(q.db.Ent), clock.System{}, log),
		Stock: reservation.NewStockCache(reservation.StockCacheConfig{
			Client: conn.Cmd, Keys: reservation.Keys{Prefix: prefix}, Clock: clock.System{}, Log: log, Items: noItems{},
		}),
	})
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	var err error
	q.public, err = shop.WatchStatus(ctx, q.sale, id.User{})
	q.must(err)
	var running sync.WaitGroup
	running.Go(func() { _ = shop.Run(ctx) })
	t.Cleanup(running.Wait)
	t.Cleanup(cancel)
	if _, ok := q.public.Next(); !ok { // the snapshot: no further public state follows
		t.Fatal("the sale has no state")
	}
	if !late {
		q.readLine()
	}
	q.states, err = shop.WatchStatus(ctx, q.sale, q.user)
	q.must(err)
	t.Cleanup(q.states.Close)
	return q
}

func (q *queued) must(err error) {
	q.t.Helper()
	if err != nil {
		q.t.Fatal(err)
	}
}

// readLine reads the waitlist into the process, which happens once a second.
func (q *queued) readLine() {
	q.t.Helper()
	_, err := q.restock.Step(q.t.Context())
	q.must(err)
}

// want receives states until one in which so many buyers are ahead, as a resolver reads it.
func (q *queued) want(ahead int) {
	q.t.Helper()
	for {
		if _, ok := q.states.Next(); !ok {
			q.t.Fatalf("no state in which %d are ahead", ahead)
		}
		entry, err := q.line.In(q.t.Context(), q.user, q.sale)
		q.must(err)
		n, err := q.line.Ahead(q.t.Context(), entry)
		q.must(err)
		if n == ahead {
			return
		}
	}
}

// leaves lets a buyer leave the waitlist.
func (q *queued) leaves(which int) {
	q.t.Helper()
	q.must(q.db.WithTx(q.t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		return tx.WaitlistEntry.UpdateOneID(q.places[which]).SetStatus(waitlistentry.StatusLEFT).Exec(ctx)
	}))
}

// The subscriber asks for the next state only after it has sent the last one: a buyer who
// leaves in between must not be taken for one who had left before it.
func TestABuyerWhoLeavesWhileAStateIsSentMovesTheOthersUp(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]bool{"waitlist known": false, "waitlist not yet known": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := newQueued(t, 3, late)
			q.want(2)
			q.readLine()
			for i := range 2 {
				q.leaves(i)
				q.readLine()
				q.want(1 - i)
			}
		})
	}
}

// The first check of a process finds the state that a subscription before it has sent.
func TestTheFirstStateOfASaleIsSentOnce(t *testing.T) {
	t.Parallel()
	q := newQueued(t, 1, true)
	q.must(q.db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		return tx.Sale.UpdateOneID(q.sale).SetTitle("Gone again").AddRevision(1).Exec(ctx)
	}))
	if state, ok := q.public.Next(); !ok || state.Value.Title != "Gone again" {
		t.Errorf("the state after the snapshot: %+v, %t", state.Value, ok)
	}
}
