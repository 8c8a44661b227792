package sale_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"seckill/ent"
	entsale "seckill/ent/sale"
	"seckill/internal/buy/sale"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

func addSale(t *testing.T, db *postgres.DB, slug string, starts time.Time) (saleID id.Sale, itemID id.Item) {
	t.Helper()
	saleID, itemID = id.New[id.Sale](), id.New[id.Item]()
	goods := id.New[id.Goods]()
	err := db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		if err := tx.Goods.Create().SetID(goods).SetName("Kettle").SetListPriceMinor(9900).SetCurrency("CNY").SetCreatedAt(starts).Exec(ctx); err != nil {
			return err
		}
		if err := tx.Sale.Create().SetID(saleID).SetSlug(slug).SetTitle(slug).SetStatus(entsale.StatusSCHEDULED).
			SetStartsAt(starts).SetEndsAt(starts.Add(time.Hour)).SetPreheatAt(starts).
			SetPaymentWindowSeconds(900).SetPurchaseLimit(1).SetCreatedAt(starts).Exec(ctx); err != nil {
			return err
		}
		return tx.SaleItem.Create().SetID(itemID).SetSaleID(saleID).SetGoodsID(goods).SetPosition(0).
			SetPriceMinor(4900).SetCurrency("CNY").SetTotal(10).SetAvailable(10).Exec(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	return saleID, itemID
}

func snapshot(t *testing.T, c *sale.Catalog) *sale.Snapshot {
	t.Helper()
	s, err := c.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestTheCatalogueShowsAChangeWithinASecond(t *testing.T) {
	t.Parallel()
	db, now := testdb.Postgres(t), clock.NewFake(time.Now())
	c := sale.NewCatalog(sale.NewStore(db.Ent), now, slog.New(slog.DiscardHandler))
	first, item := addSale(t, db, "first", now.Now())
	s := snapshot(t, c)
	if s.Sale(first) == nil || s.BySlug("first") == nil || s.Item(item).Goods.Name != "Kettle" {
		t.Fatalf("the sale is not there: %+v", s)
	}
	second, _ := addSale(t, db, "second", now.Now().Add(-time.Hour))
	if snapshot(t, c).Sale(second) != nil {
		t.Error("the catalogue asked the database within the second")
	}
	now.Advance(time.Second)
	s = snapshot(t, c)
	if s.Sale(second) == nil {
		t.Error("the new sale is not there after a second")
	}
	if s.Sales[0].ID != second {
		t.Error("sales are not sorted by their start")
	}
	if err := db.Ent.Sale.UpdateOneID(second).SetTitle("Renamed").SetRevision(2).Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	now.Advance(time.Second)
	if got := snapshot(t, c).Sale(second).Title; got != "Renamed" {
		t.Errorf("title %q after a change", got)
	}
}

func TestAnUnchangedCatalogueIsNotReadAgain(t *testing.T) {
	t.Parallel()
	db, now := testdb.Postgres(t), clock.NewFake(time.Now())
	c := sale.NewCatalog(sale.NewStore(db.Ent), now, slog.New(slog.DiscardHandler))
	saleID, _ := addSale(t, db, "only", now.Now())
	before := snapshot(t, c).Sale(saleID)
	now.Advance(time.Second)
	if after := snapshot(t, c).Sale(saleID); after != before {
		t.Error("the same version was read twice")
	}
}

// counted returns a client of the same database that counts the reads of all sales.
func counted(db *postgres.DB, reads *atomic.Int64) *ent.Client {
	driver := dialect.DebugWithContext(entsql.OpenDB(dialect.Postgres, db.SQL), func(_ context.Context, message ...any) {
		if strings.Contains(fmt.Sprint(message...), `SELECT "sale_items"."id"`) {
			reads.Add(1)
		}
	})
	return ent.NewClient(ent.Driver(driver))
}

func TestAHundredReadersOfAChangedCatalogueReadItOnce(t *testing.T) {
	t.Parallel()
	db, now := testdb.Postgres(t), clock.NewFake(time.Now())
	var reads atomic.Int64
	c := sale.NewCatalog(sale.NewStore(counted(db, &reads)), now, slog.New(slog.DiscardHandler))
	saleID, _ := addSale(t, db, "only", now.Now())
	for round := range 5 {
		title := fmt.Sprint("Title ", round)
		if err := db.Ent.Sale.UpdateOneID(saleID).SetTitle(title).AddRevision(1).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		now.Advance(time.Minute) // longer than an old snapshot may be served during a rebuild
		begin := make(chan struct{})
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				<-begin
				if s, err := c.Snapshot(context.Background()); err != nil || s.Sale(saleID).Title != title {
					t.Errorf("snapshot %v, error %v", s, err)
				}
			})
		}
		close(begin)
		wg.Wait()
		if n := reads.Load(); n != int64(round+1) {
			t.Fatalf("%d reads after %d changes", n, round+1)
		}
	}
}

func TestAnAbsentDatabaseLeavesTheLastCatalogue(t *testing.T) {
	t.Parallel()
	db, now := testdb.Postgres(t), clock.NewFake(time.Now())
	c := sale.NewCatalog(sale.NewStore(db.Ent), now, slog.New(slog.DiscardHandler))
	saleID, _ := addSale(t, db, "only", now.Now())
	snapshot(t, c)
	if err := db.SQL.Close(); err != nil {
		t.Fatal(err)
	}
	now.Advance(time.Minute)
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if s, err := c.Snapshot(context.Background()); err != nil || s.Sale(saleID) == nil {
				t.Errorf("snapshot %v, error %v", s, err)
			}
		})
	}
	wg.Wait()
	never := sale.NewCatalog(sale.NewStore(db.Ent), now, slog.New(slog.DiscardHandler))
	if _, err := never.Snapshot(t.Context()); err == nil {
		t.Error("a catalogue that was never read must say so")
	}
}

func TestPhases(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	s := sale.Sale{Status: sale.Preheated, StartsAt: start, EndsAt: start.Add(time.Hour)}
	with := func(status sale.Status) *sale.Sale { c := s; c.Status = status; return &c }
	cases := []struct {
		sale    *sale.Sale
		at      time.Duration
		soldOut bool
		want    sale.Phase
	}{
		{&s, -time.Millisecond, false, sale.PhaseUpcoming},
		{&s, -time.Millisecond, true, sale.PhaseUpcoming},
		{&s, 0, false, sale.PhaseLive},
		{&s, 0, true, sale.PhaseSoldOut},
		{&s, time.Hour - time.Millisecond, false, sale.PhaseLive},
		{&s, time.Hour, false, sale.PhaseEnded},
		{with(sale.Paused), 0, false, sale.PhasePaused},
		{with(sale.Paused), time.Hour, false, sale.PhaseEnded},
		{with(sale.Ended), 0, false, sale.PhaseEnded},
		{with(sale.Cancelled), -time.Hour, false, sale.PhaseCancelled},
	}
	for _, c := range cases {
		if got := c.sale.Phase(start.Add(c.at), c.soldOut); got != c.want {
			t.Errorf("%s at %s, sold out %v: %s, want %s", c.sale.Status, c.at, c.soldOut, got, c.want)
		}
	}
}

func TestTheCatalogueKnowsWhoPreparedASaleAlsoByAServiceToken(t *testing.T) {
	t.Parallel()
	db, now := testdb.Postgres(t), clock.NewFake(time.Now())
	saleID, _ := addSale(t, db, "first", now.Now())
	author, approver, pauser, owner, token := id.New[id.User](), id.New[id.User](), id.New[id.User](), id.New[id.User](), id.New[id.ServiceToken]()
	err := db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		if err := tx.ServiceToken.Create().SetID(token).SetName("shop").SetScopes("SALES_WRITE").SetHash(token[:]).SetCreatedBy(owner).
			SetCreatedAt(now.Now()).SetExpiresAt(now.Now().Add(time.Hour)).Exec(ctx); err != nil {
			return err
		}
		for _, line := range []struct {
			act sale.Act
			by  id.User
		}{{sale.ActCreate, author}, {sale.ActUpdate, id.User(token)}, {sale.ActApprove, approver}, {sale.ActPause, pauser}} {
			if err := tx.SaleLog.Create().SetID(id.New[uuid.UUID]()).SetSaleID(saleID).SetActorID(line.by).SetAct(string(line.act)).
				SetFromStatus("DRAFT").SetToStatus("DRAFT").SetRevision(1).SetCreatedAt(now.Now()).Exec(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	v := snapshot(t, sale.NewCatalog(sale.NewStore(db.Ent), now, slog.New(slog.DiscardHandler))).Sale(saleID)
	for name, user := range map[string]id.User{"author": author, "approver": approver, "owner of the service token": owner} {
		if !v.PreparedBy(user) {
			t.Errorf("the %s may buy", name)
		}
	}
	if v.PreparedBy(pauser) {
		t.Error("who only paused the sale may not buy")
	}
}
