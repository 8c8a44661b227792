package storefront_test

import (
	"log/slog"
	"testing"
	"time"

	"seckill/internal/buy/reservation"
	"seckill/internal/buy/sale"
	"seckill/internal/buy/storefront"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

func TestAnOpeningIsPushedAtItsTime(t *testing.T) {
	t.Parallel()
	db := testdb.Postgres(t)
	conn, prefix := testenv.Redis(t)
	log, c := slog.New(slog.DiscardHandler), clock.NewFake(time.Now().Truncate(time.Millisecond))
	opens := c.Now().Add(time.Hour)
	if err := db.Ent.Sale.Create().SetID(id.New[id.Sale]()).SetSlug("soon").SetTitle("Soon").SetStatus("SCHEDULED").
		SetStartsAt(opens).SetEndsAt(opens.Add(time.Hour)).SetPreheatAt(opens).SetPaymentWindowSeconds(900).SetPurchaseLimit(1).
		SetCreatedAt(c.Now()).Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	catalog := sale.NewCatalog(sale.NewStore(db.Ent), clock.System{}, log)
	stock := reservation.NewStockCache(reservation.StockCacheConfig{
		Client: conn.Cmd, Keys: reservation.Keys{Prefix: prefix}, Clock: c, Log: log, Items: noItems{},
	})
	shop := storefront.New(storefront.Config{Catalog: catalog, Stock: stock})
	for _, step := range []struct{ later, want time.Duration }{
		{0, storefront.PhaseEvery},
		{time.Hour - 70*time.Millisecond, 70 * time.Millisecond},
		{70 * time.Millisecond, storefront.PhaseEvery},
	} {
		c.Advance(step.later)
		if got := shop.UntilPhase(t.Context()); got > step.want || got < step.want-time.Millisecond {
			t.Errorf("%s before the opening the phases are checked after %s, want %s", opens.Sub(c.Now()), got, step.want)
		}
	}
}
