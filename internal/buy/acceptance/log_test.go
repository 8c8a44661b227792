package acceptance_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"seckill/ent"
	"seckill/ent/sale"
	"seckill/internal/buy/acceptance"
	"seckill/internal/buy/order"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// shop is a database with a sale of one item, and the parts that write and publish its log.
type shop struct {
	testing.TB

	db     *postgres.DB
	writer *order.Writer
	signer *acceptance.Signer
	logs   *acceptance.Logs
	sale   id.Sale
	item   id.Item
}

func onBoth(t *testing.T, units int, test func(s *shop)) {
	t.Helper()
	t.Parallel()
	for name, open := range map[string]func(testing.TB) *postgres.DB{"postgres": testdb.Postgres, "sqlite": testdb.SQLite} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(newShop(t, open(t), units))
		})
	}
}

func newShop(t testing.TB, db *postgres.DB, units int) *shop {
	t.Helper()
	s := &shop{TB: t, db: db, signer: signer(t, 1), sale: id.New[id.Sale](), item: id.New[id.Item]()}
	s.logs = s.reader()
	s.writer = order.NewWriter(order.WriterConfig{DB: db, Timeout: testenv.Wait})
	t.Cleanup(func() { s.must(s.writer.Close(context.Background())) })
	now := time.Now()
	s.must(db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		err := tx.Sale.Create().SetID(s.sale).SetSlug(s.sale.String()).SetTitle("Test").SetStatus(sale.StatusLIVE).
			SetStartsAt(now).SetEndsAt(now.Add(time.Hour)).SetPreheatAt(now).SetPaymentWindowSeconds(900).SetPurchaseLimit(2).
			SetEpoch(1).SetCreatedAt(now).Exec(ctx)
		if err != nil {
			return err
		}
		return tx.SaleItem.Create().SetID(s.item).SetSaleID(s.sale).SetGoodsID(id.New[id.Goods]()).SetPosition(0).
			SetPriceMinor(1999).SetCurrency("EUR").SetTotal(units).SetAvailable(units).Exec(ctx)
	}))
	return s
}

func (s *shop) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// reader returns a publisher that keeps no checkpoint of before.
func (s *shop) reader() *acceptance.Logs {
	return acceptance.NewLogs(s.db, s.signer, clock.System{}, slog.New(slog.DiscardHandler))
}

func (s *shop) logger() *acceptance.Logger {
	return &acceptance.Logger{DB: s.db, Clock: clock.System{}, Log: slog.New(slog.DiscardHandler)}
}

// accept writes n orders of new buyers, and returns them.
func (s *shop) accept(n int) []order.Request {
	s.Helper()
	requests := make([]order.Request, n)
	for i := range requests {
		user := id.New[id.User]()
		requests[i] = order.Request{
			V: 1, Task: id.NewTaskOf(s.sale, s.item, user), User: user, Sale: s.sale, Item: s.item, Quantity: 1,
			UnitPriceMinor: 1999, Currency: "EUR", PaymentWindowSeconds: 900, IdempotencyKey: "key-of-sixteen-bytes",
			Epoch: 1, SubmittedAtMs: time.Now().UnixMilli(),
		}
	}
	for _, end := range s.writer.Write(s.Context(), requests...) {
		if s.must(end.Err); end.Task.Status != order.Succeeded {
			s.Fatalf("an order ended %s", end.Task.Status)
		}
	}
	return requests
}

// move changes the status of an order.
func (s *shop) move(task id.Task, to order.Status, reserved *id.Task) {
	s.Helper()
	s.must(s.db.WithTx(s.Context(), func(ctx context.Context, tx *ent.Tx) error {
		row, err := tx.Order.Get(ctx, id.Order(task))
		if err != nil {
			return err
		}
		if reserved != nil {
			if err := tx.Order.Update().SetReturnDue(false).Exec(ctx); err != nil {
				return err
			}
		}
		_, err = order.Apply(ctx, tx, order.Move{
			Order: order.FromRow(row), To: to, At: time.Now(), NewReservation: reserved,
			Entry: order.Entry{By: order.Actor{Kind: order.Clock}, Code: order.CodeExpired},
		})
		return err
	}))
}

// step runs one pass of a logger and returns how many entries it wrote.
func (s *shop) step(l *acceptance.Logger) int {
	s.Helper()
	counts, err := l.Step(s.Context())
	s.must(err)
	return counts["logged"]
}

// get reads a published file.
func (s *shop) get(_ context.Context, path string) ([]byte, error) {
	w := httptest.NewRecorder()
	s.logs.ServeHTTP(w, httptest.NewRequest(http.MethodGet, acceptance.LogsPath+s.sale.Public()+"/"+path, nil))
	if w.Code != http.StatusOK {
		return nil, fmt.Errorf("%s: %d %s", path, w.Code, w.Body)
	}
	return w.Body.Bytes(), nil
}

// units verifies the published log, with earlier checkpoints, and returns the units of the
// item.
func (s *shop) units(earlier ...[]byte) acceptance.ItemUnits {
	s.Helper()
	s.logs = s.reader()
	report, err := acceptance.VerifyLog(s.Context(), s.get, s.signer.KeySet(), earlier...)
	s.must(err)
	return *report.Items[s.item.Public()]
}

// checkpoint returns the current checkpoint.
func (s *shop) checkpoint() []byte {
	s.Helper()
	s.logs = s.reader()
	text, err := s.get(s.Context(), "checkpoint")
	s.must(err)
	return text
}

func TestTheLogHasEachAcceptanceAndReturnOnceAndNeverMoreThanTheStock(t *testing.T) {
	onBoth(t, 3, func(s *shop) {
		l := s.logger()
		if n := s.step(l); n != 0 {
			s.Fatalf("%d entries without an order", n)
		}
		first := s.accept(3)
		if n := s.step(l); n != 3 || s.units() != (acceptance.ItemUnits{Accepted: 3, Most: 3}) {
			s.Fatalf("%d entries, %+v", n, s.units())
		}
		seen := s.checkpoint()
		// within one pass: a unit of the log is returned, taken, returned and taken
		s.move(first[0].Task, order.Expired, nil)
		between := s.accept(1)
		s.move(between[0].Task, order.Cancelled, nil)
		s.accept(1)
		if n := s.step(l); n != 4 || s.units(seen) != (acceptance.ItemUnits{Accepted: 5, Returned: 2, Most: 3}) {
			s.Fatalf("%d entries, %+v", n, s.units(seen))
		}
		// a late payment takes its unit again
		s.move(first[1].Task, order.Expired, nil)
		again := id.NewTask(id.ShardOf(s.sale))
		s.move(first[1].Task, order.Paid, &again)
		if n := s.step(l); n != 2 || s.units(seen, s.checkpoint()) != (acceptance.ItemUnits{Accepted: 6, Returned: 3, Most: 3}) {
			s.Fatalf("%d entries, %+v", n, s.units(seen))
		}
		if n := s.step(s.logger()); n != 0 {
			s.Errorf("a second logger repeats %d entries", n)
		}
	})
}

// TestAnOrderThatBecameVisibleLateIsLoggedBeforeWhoTookItsUnits commits an order whose time is
// before what a pass looks at, returns its unit and sells it again.
func TestAnOrderThatBecameVisibleLateIsLoggedBeforeWhoTookItsUnits(t *testing.T) {
	onBoth(t, 1, func(s *shop) {
		l := s.logger()
		s.step(l)
		late := s.accept(1)[0]
		s.must(s.db.WithTx(s.Context(), func(ctx context.Context, tx *ent.Tx) error {
			_, err := tx.ExecContext(ctx, "UPDATE orders SET created_at = $1", time.Now().Add(-time.Hour).UTC())
			return err
		}))
		if n := s.step(l); n != 0 {
			s.Fatalf("%d entries of an hour ago", n)
		}
		s.move(late.Task, order.Expired, nil)
		s.accept(1)
		if n := s.step(l); n != 3 || s.units() != (acceptance.ItemUnits{Accepted: 2, Returned: 1, Most: 1}) {
			s.Fatalf("%d entries, %+v", n, s.units())
		}
		if n := s.step(s.logger()); n != 0 {
			s.Errorf("a look at all repeats %d entries", n)
		}
	})
}

func TestAnOrderThatBecameVisibleLateIsLoggedWithinSeconds(t *testing.T) {
	onBoth(t, 1, func(s *shop) {
		began := time.Now().UTC()
		fake := clock.NewFake(began)
		l := &acceptance.Logger{DB: s.db, Clock: fake, Log: slog.New(slog.DiscardHandler)}
		s.step(l)
		s.accept(1)
		s.must(s.db.WithTx(s.Context(), func(ctx context.Context, tx *ent.Tx) error {
			_, err := tx.ExecContext(ctx, "UPDATE orders SET created_at = $1", began.Add(-2*time.Second))
			return err
		}))
		for after := range 30 {
			if n := s.step(l); n != 0 && after < 8 || n > 1 {
				s.Fatalf("%d entries after %d s", n, after)
			}
			fake.Advance(time.Second)
		}
		if n := s.units().Accepted; n != 1 {
			s.Errorf("%d entries after 30 s", n)
		}
	})
}

func TestAReceiptIsProvedToBeInTheLog(t *testing.T) {
	onBoth(t, 300, func(s *shop) {
		orders := s.accept(300) // more than a tile
		s.step(s.logger())
		s.logs = s.reader()
		for _, i := range []int{0, 1, 255, 256, 299} {
			task, user := orders[i].Task.Public(), orders[i].User.Public()
			text, err := s.get(s.Context(), "proof/"+task)
			s.must(err)
			e, head, err := acceptance.VerifyProof(text, s.signer.KeySet())
			if err != nil || e.Task != task || e.Buyer != acceptance.BuyerHash(task, user) || e.Quantity != 1 || head.Size != 300 ||
				head.Origin != "shop.example/acceptances/"+s.sale.Public() {
				s.Errorf("order %d: %+v of %+v, %v", i, e, head, err)
			}
			if _, _, err := acceptance.VerifyProof(text, signer(s.TB, 2).KeySet()); err == nil {
				s.Error("the proof holds with the keys of another shop")
			}
			for what, change := range map[string][2]string{
				"the entry": {"extra ", "extra " + base64.StdEncoding.EncodeToString([]byte(`{"kind":"ACCEPTED","task":"t","item":"i","quantity":9}`)) + "\nX "},
				"the index": {"index ", "index 1"}, "the size": {"\n300\n", "\n301\n"}, "the path": {"\n\n", "\n" + strings.Repeat("A", 43) + "=\n\n"},
			} {
				if _, _, err := acceptance.VerifyProof([]byte(strings.Replace(string(text), change[0], change[1], 1)), s.signer.KeySet()); err == nil {
					s.Errorf("the proof holds with %s changed", what)
				}
			}
		}
	})
}

// TestLoggersAtOnceAndKilledOnesAppendOnce ends passes at any moment, as a killed process
// ends its transaction, while two others run and orders come in.
func TestLoggersAtOnceAndKilledOnesAppendOnce(t *testing.T) {
	onBoth(t, 400, func(s *shop) {
		var seen [][]byte
		for round := range 8 {
			s.accept(50)
			var group sync.WaitGroup
			for i := range 3 {
				group.Go(func() {
					ctx, cancel := s.Context(), func() {}
					if i == 0 {
						ctx, cancel = context.WithTimeout(ctx, time.Duration(round)*2*time.Millisecond)
					}
					defer cancel()
					if _, err := s.logger().Step(ctx); err != nil && ctx.Err() == nil && !postgres.Retryable(err) {
						s.Error(err)
					}
				})
			}
			group.Wait()
			for l := s.logger(); s.step(l) > 0; {
			}
			seen = append(seen, s.checkpoint())
		}
		if got := s.units(seen...); got != (acceptance.ItemUnits{Accepted: 400, Most: 400}) {
			s.Errorf("%+v", got)
		}
	})
}

func TestTheDatabaseRefusesToChangeTheLog(t *testing.T) {
	t.Parallel()
	s := newShop(t, testdb.Postgres(t), 1)
	s.accept(1)
	s.step(s.logger())
	for _, statement := range []string{"UPDATE acceptance_entries SET entry = ''", "DELETE FROM acceptance_entries", "TRUNCATE acceptance_entries"} {
		if _, err := s.db.SQL.ExecContext(t.Context(), statement); err == nil {
			t.Errorf("%s is carried out", statement)
		}
	}
}

func TestAManipulatedLogIsRefused(t *testing.T) {
	t.Parallel()
	s := newShop(t, testdb.SQLite(t), 600)
	l := s.logger()
	s.accept(100)
	s.step(l)
	seen := s.checkpoint()
	s.accept(500)
	s.step(l)
	s.logs = s.reader()
	files := map[string][]byte{}
	read := func(ctx context.Context, path string) ([]byte, error) {
		text, err := s.get(ctx, path)
		files[path] = text
		return text, err
	}
	if _, err := acceptance.VerifyLog(t.Context(), read, s.signer.KeySet(), seen); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"checkpoint", "tile/0/000", "tile/0/001", "tile/0/002.p/88", "tile/1/000.p/2", "tile/entries/000", "tile/entries/001", "tile/entries/002.p/88",
	}
	if got := slices.Sorted(maps.Keys(files)); !slices.Equal(got, want) {
		t.Fatalf("files %q", got)
	}
	verify := func(of map[string][]byte, keys []byte, earlier ...[]byte) error {
		_, err := acceptance.VerifyLog(t.Context(), func(_ context.Context, path string) ([]byte, error) {
			if text, ok := of[path]; ok {
				return text, nil
			}
			return nil, errors.New("no such file")
		}, keys, earlier...)
		return err
	}
	for path := range files {
		changed := maps.Clone(files)
		changed[path] = bytes.Clone(files[path])
		changed[path][len(changed[path])/2] ^= 1
		if verify(changed, s.signer.KeySet()) == nil {
			t.Errorf("%s is accepted with a changed bit", path)
		}
		changed[path] = files[path][:len(files[path])-1]
		if verify(changed, s.signer.KeySet()) == nil {
			t.Errorf("%s is accepted without its end", path)
		}
		delete(changed, path)
		if verify(changed, s.signer.KeySet()) == nil {
			t.Errorf("the log is accepted without %s", path)
		}
	}
	other := newShop(t, testdb.SQLite(t), 100)
	other.sale = s.sale
	if verify(files, other.signer.KeySet()) != nil || verify(files, signer(t, 2).KeySet()) == nil {
		t.Error("the key does not decide")
	}
	forked := newShop(t, testdb.SQLite(t), 100)
	forked.accept(100)
	forked.step(forked.logger())
	fork := forked.checkpoint()
	if verify(files, s.signer.KeySet(), fork) == nil || verify(files, s.signer.KeySet(), files["checkpoint"]) != nil {
		t.Error("an earlier checkpoint is not compared")
	}
}

func TestALogServesTheFilesOfTlogTilesAlone(t *testing.T) {
	t.Parallel()
	s := newShop(t, testdb.SQLite(t), 300)
	if text, err := s.get(t.Context(), "checkpoint"); err == nil {
		t.Errorf("a log without entries has the checkpoint %s", text)
	}
	orders := s.accept(300)
	s.step(s.logger())
	for _, path := range []string{"tile/0/000", "tile/0/000.p/1", "tile/0/001.p/44", "tile/1/000.p/1", "tile/entries/000", "tile/entries/001.p/44"} {
		if _, err := s.get(t.Context(), path); err != nil {
			t.Error(err)
		}
	}
	for _, path := range []string{
		"", "checkpoint/", "tile", "tile/", "tile/0/0", "tile/0/0000", "tile/0/001", "tile/0/001.p/45", "tile/0/000.p/256", "tile/0/000.p/0", "tile/0/000.p/01",
		"tile/0/x000/000", "tile/1/000", "tile/1/000.p/2", "tile/2/000.p/1", "tile/00/000", "tile/64/000.p/1", "tile/-1/000", "tile/entries/002.p/1", "tile/data/000",
		"tile/0/x999/x999/x999/999", "proof/", "proof/x", "proof/" + id.NewTask(1).Public(),
	} {
		if text, err := s.get(t.Context(), path); err == nil {
			t.Errorf("%q is served with %d bytes", path, len(text))
		}
	}
	s.sale = id.New[id.Sale]()
	if _, err := s.get(t.Context(), "proof/"+orders[0].Task.Public()); err == nil {
		t.Error("the proof of a task is served for another sale")
	}
	w := httptest.NewRecorder()
	s.logs.ServeHTTP(w, httptest.NewRequest(http.MethodPost, acceptance.LogsPath+s.sale.Public()+"/checkpoint", nil))
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST is answered %d", w.Code)
	}
}
