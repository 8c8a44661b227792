package storefront_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"seckill/ent"
	entorder "seckill/ent/order"
	"seckill/internal/buy/order"
	"seckill/internal/buy/reservation"
	"seckill/internal/buy/sale"
	"seckill/internal/buy/storefront"
	"seckill/internal/buy/waitlist"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

func TestASettledSaleStillShowsTheBuyersOrder(t *testing.T) {
	t.Parallel()
	db := testdb.Postgres(t)
	conn, prefix := testenv.Redis(t)
	keys, log := reservation.Keys{Prefix: prefix}, slog.New(slog.DiscardHandler)
	saleID, itemID, buyer, other := id.New[id.Sale](), id.New[id.Item](), id.New[id.User](), id.New[id.User]()
	now := time.Now().UTC()
	write := func(tx *ent.Tx, user id.User, status entorder.Status) error {
		task := id.NewIn[id.Order](id.ShardOf(saleID))
		return tx.Order.Create().SetID(task).SetNumber(order.Number(task, now, 0)).SetSaleID(saleID).SetItemID(itemID).SetUserID(user).
			SetStatus(status).SetQuantity(1).SetUnitPriceMinor(100).SetCurrency("CNY").SetEpoch(1).
			SetReservedAt(now).SetCreatedAt(now).SetUpdatedAt(now).Exec(t.Context())
	}
	err := db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		err := tx.Sale.Create().SetID(saleID).SetSlug("over").SetTitle("Over").SetStatus("ENDED").SetStartsAt(now.Add(-2 * time.Hour)).
			SetEndsAt(now.Add(-time.Hour)).SetPreheatAt(now.Add(-3 * time.Hour)).SetPaymentWindowSeconds(900).SetPurchaseLimit(1).
			SetSettledAt(now).SetCreatedAt(now).Exec(ctx)
		if err != nil {
			return err
		}
		if err := write(tx, buyer, entorder.StatusPAID); err != nil {
			return err
		}
		return write(tx, other, entorder.StatusEXPIRED)
	})
	if err != nil {
		t.Fatal(err)
	}
	catalog := sale.NewCatalog(sale.NewStore(db.Ent), clock.System{}, log)
	stock := reservation.NewStockCache(reservation.StockCacheConfig{
		Client: conn.Cmd, Keys: keys, Clock: clock.System{}, Log: log,
		Items: noItems{},
	})
	line := waitlist.New(waitlist.Config{DB: db, Timeout: testenv.Wait, Log: log})
	shop := storefront.New(storefront.Config{
		Waitlist: line, RestockOutlooks: waitlist.NewRestockOutlooks(line, waitlist.CatalogItems{Catalog: catalog, Stock: stock}, log),
		Catalog: catalog, Stock: stock, Gate: reservation.NewGate(reservation.GateConfig{Client: conn.Cmd, Keys: keys, Timeout: testenv.Wait}),
		Orders: order.NewStore(order.StoreConfig{DB: db, Log: log}),
	})
	snap, err := shop.Catalog(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	v, err := shop.Viewer(t.Context(), snap.Sale(saleID), buyer)
	if err != nil || v.Order == nil || v.Action != storefront.ActionViewOrder {
		t.Errorf("the buyer: %+v %v", v, err)
	}
	v, err = shop.Viewer(t.Context(), snap.Sale(saleID), other)
	if err != nil || v.Order != nil || v.Action != storefront.ActionNone {
		t.Errorf("whose order expired: %+v %v", v, err)
	}
}
