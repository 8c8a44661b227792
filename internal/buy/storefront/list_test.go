package storefront_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"seckill/ent"
	entsale "seckill/ent/sale"
	"seckill/internal/buy/reservation"
	"seckill/internal/buy/sale"
	"seckill/internal/buy/storefront"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

// listed returns a storefront with 30 ended sales, two a minute, of which memory holds none,
// and four that are on sale or soon.
func listed(t *testing.T) *storefront.Storefront {
	t.Helper()
	db, now := testdb.Postgres(t), time.Now().UTC()
	conn, prefix := testenv.Redis(t)
	add := func(n int, status entsale.Status, starts time.Time) {
		err := db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) error {
			create := tx.Sale.Create().SetID(id.New[id.Sale]()).SetSlug(fmt.Sprintf("%s-%d", status, n)).SetTitle(fmt.Sprintf("%s %02d", status, n)).SetStatus(status).
				SetStartsAt(starts).SetEndsAt(starts.Add(time.Hour)).SetPreheatAt(starts).SetPaymentWindowSeconds(900).SetPurchaseLimit(1).SetCreatedAt(starts)
			if status == entsale.StatusENDED {
				create.SetSettledAt(starts.Add(2 * time.Hour))
			}
			return create.Exec(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range 30 {
		add(i, entsale.StatusENDED, now.Add(-60*24*time.Hour).Add(time.Duration(i/2)*time.Minute))
	}
	for i := range 4 {
		add(i, entsale.StatusSCHEDULED, now.Add(time.Duration(i+1)*time.Hour))
	}
	add(0, entsale.StatusDRAFT, now.Add(24*time.Hour))
	log := slog.New(slog.DiscardHandler)
	return storefront.New(storefront.Config{
		Catalog: sale.NewCatalog(sale.NewStore(db.Ent), clock.System{}, log),
		Stock: reservation.NewStockCache(reservation.StockCacheConfig{
			Client: conn.Cmd, Keys: reservation.Keys{Prefix: prefix}, Clock: clock.System{}, Log: log,
			Items: noItems{},
		}),
	})
}

func TestPagesOfSalesRunThroughMemoryAndDatabase(t *testing.T) {
	t.Parallel()
	shop := listed(t)
	size := 7
	for _, c := range []struct {
		name  string
		f     storefront.SaleFilter
		order storefront.SaleOrder
		want  int
	}{
		{"all", storefront.SaleFilter{}, storefront.SaleOrder{}, 34},
		{"newest first", storefront.SaleFilter{}, storefront.SaleOrder{Descending: true}, 34},
		{"operators", storefront.SaleFilter{Filter: sale.Filter{Hidden: true}}, storefront.SaleOrder{ByCreation: true, Descending: true}, 35},
		{"ended", storefront.SaleFilter{Filter: sale.Filter{Phases: []sale.Phase{sale.PhaseEnded}}}, storefront.SaleOrder{}, 30},
		{"soon", storefront.SaleFilter{Filter: sale.Filter{Phases: []sale.Phase{sale.PhaseUpcoming}}}, storefront.SaleOrder{}, 4},
		{"drafts", storefront.SaleFilter{Filter: sale.Filter{Hidden: true, Statuses: []sale.Status{sale.Draft}}}, storefront.SaleOrder{}, 1},
		{"before", storefront.SaleFilter{Filter: sale.Filter{StartsBefore: time.Now().Add(90 * time.Minute)}}, storefront.SaleOrder{Descending: true}, 31},
		{"search", storefront.SaleFilter{Filter: sale.Filter{Search: "ended 1"}}, storefront.SaleOrder{}, 10},
	} {
		var forward []string
		in := storefront.PageInput{First: &size}
		for {
			page, err := shop.Sales(t.Context(), c.f, c.order, in)
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			if page.Total != c.want {
				t.Errorf("%s: total %d, want %d", c.name, page.Total, c.want)
			}
			for _, v := range page.Nodes {
				forward = append(forward, v.Slug)
			}
			if !page.HasNext {
				break
			}
			in.After = &page.Cursors[len(page.Cursors)-1]
		}
		if len(forward) != c.want {
			t.Errorf("%s: %d sales on the pages, want %d: %v", c.name, len(forward), c.want, forward)
		}
		at := len(forward)
		in = storefront.PageInput{Last: &size}
		for at > 0 {
			page, err := shop.Sales(t.Context(), c.f, c.order, in)
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			for i := len(page.Nodes) - 1; i >= 0 && at > 0; i-- {
				if at--; page.Nodes[i].Slug != forward[at] {
					t.Fatalf("%s: backwards %s is at %d, forward %s", c.name, page.Nodes[i].Slug, at, forward[at])
				}
			}
			if page.HasPrev != (at > 0) {
				t.Fatalf("%s: has previous %t before %d", c.name, page.HasPrev, at)
			}
			in.Before = &page.Cursors[0]
		}
	}
}

// noItems is a catalogue without items.
type noItems struct{}

func (noItems) Loaded(context.Context) ([]reservation.ItemRef, error) { return nil, nil }
func (noItems) All(context.Context) ([]reservation.ItemRef, error)    { return nil, nil }
