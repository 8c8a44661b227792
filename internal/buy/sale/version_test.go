package sale_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"seckill/internal/buy/sale"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

// followed is two processes that read one catalogue by its version in Redis.
type followed struct {
	db       *postgres.DB
	clock    *clock.Fake
	versions *sale.Versions
	here     *sale.Catalog
	there    *sale.Catalog
	log      *bytes.Buffer // warnings of the catalogues
	sale     id.Sale
}

func follow(t *testing.T) *followed {
	t.Helper()
	conn, prefix := testenv.Redis(t)
	f := &followed{db: testdb.Postgres(t), clock: clock.NewFake(time.Now()), log: &bytes.Buffer{}}
	log := slog.New(slog.NewTextHandler(&lockedWriter{w: f.log}, nil))
	f.versions = sale.NewVersions(conn.Cmd, prefix, log)
	f.sale, _ = addSale(t, f.db, "one", f.clock.Now())
	f.here = sale.NewCatalog(sale.NewStore(f.db.Ent), f.clock, log).Following(f.versions)
	f.there = sale.NewCatalog(sale.NewStore(f.db.Ent), f.clock, log).Following(f.versions)
	snapshot(t, f.here)
	snapshot(t, f.there)
	return f
}

type lockedWriter struct {
	mu sync.Mutex
	w  *bytes.Buffer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

func (f *followed) rename(ctx context.Context, title string) error {
	return f.db.Ent.Sale.UpdateOneID(f.sale).SetTitle(title).AddRevision(1).Exec(ctx)
}

func TestBrowsingDoesNotReachTheDatabase(t *testing.T) {
	t.Parallel()
	f := follow(t)
	if err := f.db.SQL.Close(); err != nil { // each query would fail and be logged
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for _, c := range []*sale.Catalog{f.here, f.there} {
		wg.Go(func() {
			for i := range 25_000 {
				if i%1000 == 0 {
					f.clock.Advance(500 * time.Millisecond) // 25 s in all
				}
				if s, err := c.Snapshot(context.Background()); err != nil || s.Sale(f.sale) == nil {
					t.Errorf("read %d: %v", i, err)
					return
				}
			}
		})
	}
	wg.Wait()
	if f.log.Len() > 0 {
		t.Errorf("the database was asked: %s", f.log)
	}
}

func TestAWriteIsSeenByEveryProcessWithinASecond(t *testing.T) {
	t.Parallel()
	f := follow(t)
	err := f.versions.Write(t.Context(), func(ctx context.Context) error { return f.rename(ctx, "Renamed") })
	if err != nil {
		t.Fatal(err)
	}
	f.clock.Advance(time.Second)
	if got := snapshot(t, f.there).Sale(f.sale).Title; got != "Renamed" {
		t.Errorf("title %q", got)
	}
}

func TestAWriterWhoDiedAfterTheCommitIsNoticed(t *testing.T) {
	t.Parallel()
	f := follow(t)
	died := errors.New("died")
	func() {
		defer func() { _ = recover() }()
		_ = f.versions.Write(t.Context(), func(ctx context.Context) error {
			if err := f.rename(ctx, "Renamed"); err != nil {
				t.Error(err)
			}
			panic(died) // the new version is never written
		})
	}()
	f.clock.Advance(time.Second)
	if got := snapshot(t, f.there).Sale(f.sale).Title; got != "Renamed" {
		t.Errorf("title %q", got)
	}
}

func TestAHandWrittenRowIsSeenInTheEnd(t *testing.T) {
	t.Parallel()
	f := follow(t)
	if err := f.rename(t.Context(), "By hand"); err != nil {
		t.Fatal(err)
	}
	for range 31 {
		f.clock.Advance(time.Second)
		snapshot(t, f.there)
	}
	if got := snapshot(t, f.there).Sale(f.sale).Title; got != "By hand" {
		t.Errorf("title %q after half a minute", got)
	}
}

func TestWithoutRedisTheDatabaseIsAsked(t *testing.T) {
	t.Parallel()
	server := testenv.RedisServer(t)
	conn := openRedis(t, server.URL())
	db, now := testdb.Postgres(t), clock.NewFake(time.Now())
	saleID, _ := addSale(t, db, "one", now.Now())
	versions := sale.NewVersions(conn.Cmd, "t:", slog.New(slog.DiscardHandler))
	c := sale.NewCatalog(sale.NewStore(db.Ent), now, slog.New(slog.DiscardHandler)).Following(versions)
	snapshot(t, c)
	server.Kill()
	err := versions.Write(t.Context(), func(ctx context.Context) error {
		return db.Ent.Sale.UpdateOneID(saleID).SetTitle("Renamed").AddRevision(1).Exec(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	now.Advance(time.Second)
	if got := snapshot(t, c).Sale(saleID).Title; got != "Renamed" {
		t.Errorf("title %q", got)
	}
}

func TestOnesOwnWriteIsSeenAtOnce(t *testing.T) {
	t.Parallel()
	f := follow(t)
	if err := f.rename(t.Context(), "Renamed"); err != nil {
		t.Fatal(err)
	}
	f.here.Forget()
	if got := snapshot(t, f.here).Sale(f.sale).Title; got != "Renamed" {
		t.Errorf("title %q", got)
	}
	if err := f.db.SQL.Close(); err != nil {
		t.Fatal(err)
	}
	f.here.Forget()
	if got := snapshot(t, f.here).Sale(f.sale); got == nil {
		t.Error("with the database away, the last catalogue is served")
	}
}
