package sale_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"seckill/ent"
	entsale "seckill/ent/sale"
	"seckill/internal/buy/sale"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
	"seckill/internal/platform/ratelimit"
	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

// rowCounter counts the rows that a client reads.
type rowCounter struct {
	dialect.Driver
	rows *atomic.Int64
}

func (d rowCounter) Query(ctx context.Context, query string, args, v any) error {
	if err := d.Driver.Query(ctx, query, args, v); err != nil {
		return err
	}
	if rows, ok := v.(*entsql.Rows); ok {
		rows.ColumnScanner = countedRows{rows.ColumnScanner, d.rows}
	}
	return nil
}

type countedRows struct {
	entsql.ColumnScanner
	rows *atomic.Int64
}

func (r countedRows) Next() bool {
	more := r.ColumnScanner.Next()
	if more {
		r.rows.Add(1)
	}
	return more
}

func countRows(db *postgres.DB, rows *atomic.Int64) *ent.Client {
	return ent.NewClient(ent.Driver(rowCounter{entsql.OpenDB(dialect.Postgres, db.SQL), rows}))
}

// addOldSales adds settled sales that ended long ago, one a minute, each with its own
// product, and returns their ids.
func addOldSales(t *testing.T, db *postgres.DB, n int, last time.Time) (sales []id.Sale, items []id.Item) {
	t.Helper()
	err := db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		var goods []*ent.GoodsCreate
		var rows []*ent.SaleCreate
		var stock []*ent.SaleItemCreate
		for i := range n {
			g, v, item := id.New[id.Goods](), id.New[id.Sale](), id.New[id.Item]()
			ends := last.Add(-time.Duration(n-i) * time.Minute)
			goods = append(goods, tx.Goods.Create().SetID(g).SetName(fmt.Sprint("Old kettle ", i)).SetListPriceMinor(9900).SetCurrency("CNY").SetCreatedAt(ends))
			rows = append(rows, tx.Sale.Create().SetID(v).SetSlug(fmt.Sprint("old-", i)).SetTitle(fmt.Sprint("Old ", i)).SetStatus(entsale.StatusENDED).
				SetStartsAt(ends.Add(-time.Hour)).SetEndsAt(ends).SetPreheatAt(ends.Add(-time.Hour)).SetSettledAt(ends.Add(time.Hour)).
				SetPaymentWindowSeconds(900).SetPurchaseLimit(1).SetCreatedAt(ends.Add(-2*time.Hour)))
			stock = append(stock, tx.SaleItem.Create().SetID(item).SetSaleID(v).SetGoodsID(g).SetPosition(0).
				SetPriceMinor(4900).SetCurrency("CNY").SetTotal(10).SetAvailable(10))
			sales, items = append(sales, v), append(items, item)
		}
		if err := tx.Goods.CreateBulk(goods...).Exec(ctx); err != nil {
			return err
		}
		for some := range slices.Chunk(rows, 1000) { // a statement has at most 65,535 parameters
			if err := tx.Sale.CreateBulk(some...).Exec(ctx); err != nil {
				return err
			}
		}
		return tx.SaleItem.CreateBulk(stock...).Exec(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	return sales, items
}

func TestARefreshDoesNotReadOldSales(t *testing.T) {
	t.Parallel()
	db, now := testdb.Postgres(t), clock.NewFake(time.Now().UTC())
	var rows atomic.Int64
	c := sale.NewCatalog(sale.NewStore(countRows(db, &rows)), now, slog.New(slog.DiscardHandler))
	old, _ := addOldSales(t, db, 2000, now.Now().Add(-30*24*time.Hour))
	ended := now.Now().Add(-time.Hour)
	live, _ := addSale(t, db, "live", now.Now().Add(-time.Minute))
	unsettled, _ := addSale(t, db, "unsettled", now.Now().Add(-3*time.Hour))
	if err := db.Ent.Sale.UpdateOneID(unsettled).SetStatus(entsale.StatusENDED).Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	for round := range 3 {
		if err := db.Ent.Sale.UpdateOneID(live).SetTitle(fmt.Sprint("Title ", round)).AddRevision(1).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		rows.Store(0)
		now.Advance(time.Second)
		s := snapshot(t, c)
		if n := rows.Load(); n > 20 {
			t.Fatalf("a refresh beside 2,000 old sales read %d rows", n)
		}
		if v := s.Sale(live); v == nil || v.Title != fmt.Sprint("Title ", round) || s.Sale(unsettled) == nil {
			t.Fatalf("active sales are missing in %d", len(s.Sales))
		}
		if s.Sale(old[0]) != nil {
			t.Error("an old sale is in the snapshot")
		}
	}
	recent, _ := addRecent(t, db, ended)
	now.Advance(time.Minute)
	s := snapshot(t, c)
	if got := len(s.Sales); got != 1+200 {
		t.Errorf("%d sales in memory, want the live one and the last 200 that ended", got)
	}
	if s.Sale(recent[len(recent)-1]) == nil || s.Sale(recent[0]) != nil {
		t.Error("the sales in memory are not the last to end")
	}
}

// addRecent adds 300 sales that ended before last.
func addRecent(t *testing.T, db *postgres.DB, last time.Time) (sales []id.Sale, items []id.Item) {
	t.Helper()
	if _, err := db.SQL.ExecContext(t.Context(), "UPDATE sales SET slug = 'older-' || slug WHERE slug LIKE 'old-%'"); err != nil {
		t.Fatal(err)
	}
	return addOldSales(t, db, 300, last)
}

func TestOldSalesAreReadOnDemandAndCached(t *testing.T) {
	t.Parallel()
	db, now := testdb.Postgres(t), clock.NewFake(time.Now().UTC())
	conn, prefix := testenv.Redis(t)
	versions := sale.NewVersions(conn.Cmd, prefix, slog.New(slog.DiscardHandler))
	var rows atomic.Int64
	c := sale.NewCatalog(sale.NewStore(countRows(db, &rows)), now, slog.New(slog.DiscardHandler)).Following(versions)
	old, items := addOldSales(t, db, 3, now.Now().Add(-30*24*time.Hour))
	read := func() (*sale.Sale, int64) {
		t.Helper()
		before := rows.Load()
		v, err := c.Sale(t.Context(), old[1])
		if err != nil || v == nil || len(v.Items) != 1 || v.Items[0].Goods.Name != "Old kettle 1" {
			t.Fatalf("sale %+v, error %v", v, err)
		}
		return v, rows.Load() - before
	}
	read()
	now.Advance(10 * time.Second) // nothing has changed
	if _, n := read(); n != 0 {
		t.Errorf("a cached sale cost %d rows", n)
	}
	err := versions.Write(t.Context(), func(ctx context.Context) error {
		return db.Ent.Sale.UpdateOneID(old[1]).SetTitle("Renamed").AddRevision(1).Exec(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	now.Advance(time.Second)
	if v, _ := read(); v.Title != "Renamed" {
		t.Errorf("title %q a second after the change", v.Title)
	}
	item, v, err := c.Item(t.Context(), items[2])
	if err != nil || item == nil || v.ID != old[2] {
		t.Errorf("item %v of %v, error %v", item, v, err)
	}
	if v, err := c.BySlug(t.Context(), "old-0"); err != nil || v == nil || v.ID != old[0] {
		t.Errorf("sale %v by slug, error %v", v, err)
	}
	if g, public, err := c.Goods(t.Context(), v.Items[0].Goods.ID); err != nil || g == nil || !public {
		t.Errorf("product %v, public %t, error %v", g, public, err)
	}
	for range 2 {
		before := rows.Load()
		if v, err := c.Sale(t.Context(), id.New[id.Sale]()); v != nil || err != nil {
			t.Errorf("unknown sale %v, error %v", v, err)
		}
		if n := rows.Load() - before; n != 0 {
			t.Errorf("an unknown id read %d rows", n)
		}
	}
}

// A new sale that a page has shown can be ordered from at once, and not only after the next
// refresh of the snapshot.
func TestASaleThatWasShownIsInTheSnapshot(t *testing.T) {
	t.Parallel()
	db, now := testdb.Postgres(t), clock.NewFake(time.Now())
	c := sale.NewCatalog(sale.NewStore(db.Ent), now, slog.New(slog.DiscardHandler))
	addSale(t, db, "first", now.Now())
	snapshot(t, c)
	second, item := addSale(t, db, "second", now.Now())
	if v, err := c.Sale(t.Context(), second); err != nil || v == nil {
		t.Fatalf("the new sale: %v, %v", v, err)
	}
	if snapshot(t, c).Item(item) == nil {
		t.Error("the sale was shown, but its item cannot be ordered")
	}
}

// TestRandomIdsCostABoundedNumberOfStatements: an id that nothing has is not in the
// snapshot, and each one is new to the archive.
func TestRandomIdsCostABoundedNumberOfStatements(t *testing.T) {
	t.Parallel()
	db, now := testdb.Postgres(t), clock.NewFake(time.Now())
	var statements atomic.Int64
	client := ent.NewClient(ent.Driver(dialect.DebugWithContext(entsql.OpenDB(dialect.Postgres, db.SQL), func(context.Context, ...any) { statements.Add(1) })))
	from := ratelimit.Caller{Ranges: ratelimit.Ranges(netip.MustParseAddr("192.0.2.7"))}
	absences := ratelimit.NewAbsences(now, func(context.Context) ratelimit.Caller { return from })
	c := sale.NewCatalog(sale.NewStore(client), now, slog.New(slog.DiscardHandler)).Bounded(absences)
	saleID, itemID := addSale(t, db, "only", now.Now())
	snapshot(t, c)
	statements.Store(0)
	refused := 0
	for i := range 500 {
		var err error
		switch i % 4 {
		case 0:
			_, err = c.Sale(t.Context(), id.New[id.Sale]())
		case 1:
			_, _, err = c.Item(t.Context(), id.New[id.Item]())
		case 2:
			_, _, err = c.Goods(t.Context(), id.New[id.Goods]())
		case 3:
			_, err = c.BySlug(t.Context(), fmt.Sprint("random-", i))
		}
		switch fault.CodeOf(err) {
		case fault.RateLimited:
			refused++
		default:
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := statements.Load(); n > 130 || refused != 380 {
		t.Errorf("500 random ids cost %d statements, %d were refused", n, refused)
	}
	v, err := c.Sale(t.Context(), saleID)
	if item, _, itemErr := c.Item(t.Context(), itemID); err != nil || itemErr != nil || v == nil || item == nil {
		t.Errorf("a sale that is on: %v, %v", err, itemErr)
	}
}
