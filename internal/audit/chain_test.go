package audit_test

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"seckill/ent"
	"seckill/ent/salelog"
	"seckill/ent/stockmovement"
	"seckill/internal/audit"
	"seckill/internal/clock"
	"seckill/internal/id"
	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

// sealer returns a sealer that seals everything that exists, and waits until new entries are
// later than that.
func (w *world) sealer() *audit.Sealer {
	w.Helper()
	until := time.Now().Add(2 * time.Millisecond)
	testenv.Eventually(w.T, testenv.Wait, func() bool { return time.Now().After(until) }, "the clock moves on")
	return &audit.Sealer{DB: w.db, Clock: clock.NewFake(until.Add(audit.SealLag)), Log: slog.New(slog.DiscardHandler)}
}

// sealed runs one pass and wants a number of new seals.
func (w *world) sealed(s *audit.Sealer, want int) {
	w.Helper()
	counts, err := s.Step(w.Context())
	if err != nil || counts["sealed"] != want {
		w.Fatalf("sealed %v, %v, want %d", counts, err, want)
	}
}

// exported returns the lines of the exported log.
func (w *world) exported() []string {
	w.Helper()
	var out bytes.Buffer
	_, err := audit.Exporter{DB: w.db, Clock: clock.System{}}.Export(w.Context(), w.sale, &out)
	w.must(err)
	return strings.Split(strings.TrimSpace(out.String()), "\n")
}

func verify(t *testing.T, lines []string, head string) *audit.Verification {
	t.Helper()
	v, err := audit.Verify(strings.NewReader(strings.Join(lines, "\n")+"\n"), head)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// act writes an act into the log of the sale.
func (w *world) act(name string) {
	w.Helper()
	w.must(w.db.Ent.SaleLog.Create().SetID(id.New[uuid.UUID]()).SetSaleID(w.sale).SetAct(name).SetFromStatus("LIVE").SetToStatus("LIVE").
		SetRevision(3).SetDetails(`{"units":5}`).SetCreatedAt(time.Now().UTC().Truncate(time.Microsecond)).Exec(w.Context()))
}

func TestAnUntouchedLogIsIntactAndItsHeadsStay(t *testing.T) {
	t.Parallel()
	w := setup(t, testdb.Postgres(t))
	w.act("OPEN")
	s := w.sealer()
	w.sealed(s, 1)
	first := verify(t, w.exported(), "")
	if !first.OK || first.Seals != 1 || first.Unsealed != 0 || first.Sealed != first.Head || first.Entries < 2 {
		t.Fatalf("%+v", first)
	}
	w.sealed(s, 0) // nothing is new
	w.act("PAUSE")
	if v := verify(t, w.exported(), first.Head); !v.OK || v.Unsealed != 1 {
		t.Errorf("before the next seal: %+v", v)
	}
	if v := verify(t, w.exported(), strings.Repeat("0", 64)); v.OK {
		t.Errorf("a head of another log: %+v", v)
	}
}

// Whatever is done to a file, or to the rows behind it, is found.
func TestAChangedRemovedInsertedOrMovedEntryIsFound(t *testing.T) {
	t.Parallel()
	w := setup(t, testdb.Postgres(t))
	w.act("OPEN")
	w.act("PAUSE")
	w.act("RESUME")
	w.sealed(w.sealer(), 1)
	w.act("END")
	lines := w.exported()
	entry := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, `"PAUSE"`) })
	move := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, `"kind":"OPEN"`) })
	if entry < 0 || move < 0 || !verify(t, lines, "").OK {
		t.Fatalf("log is\n%s", strings.Join(lines, "\n"))
	}
	for name, spoil := range map[string]func([]string) []string{
		"changed": func(l []string) []string {
			l[entry] = strings.Replace(l[entry], `\"units\":5`, `\"units\":6`, 1)
			return l
		},
		"other units": func(l []string) []string {
			l[move] = strings.Replace(l[move], `"quantity":`, `"quantity":1`, 1)
			return l
		},
		"removed": func(l []string) []string { return slices.Delete(l, entry, entry+1) },
		"inserted": func(l []string) []string {
			return slices.Insert(l, entry, strings.Replace(l[entry], `PAUSE`, `END`, 1))
		},
		"moved":       func(l []string) []string { l[entry], l[entry+1] = l[entry+1], l[entry]; return l },
		"end cut off": func(l []string) []string { return l[:len(l)-1] },
		"unsealed changed": func(l []string) []string {
			i := len(l) - 2
			l[i] = strings.Replace(l[i], `\"units\":5`, `\"units\":6`, 1)
			return l
		},
	} {
		spoilt := spoil(slices.Clone(lines))
		if v := verify(t, spoilt, ""); v.OK {
			t.Errorf("%s is not found", name)
		}
	}
}

// A person with the rights of the database's owner can switch the triggers off. The seals
// show what was done then.
func TestRowsThatWereChangedBehindTheTriggersAreFound(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]string{
		"changed":  "UPDATE stock_movements SET quantity = quantity + 1 WHERE kind = 'OPEN'",
		"removed":  "DELETE FROM sale_logs WHERE act = 'PAUSE'",
		"inserted": "INSERT INTO sale_logs SELECT overlay(id::text placing 'abcd' from 33 for 4)::uuid, sale_id, actor_id, 'CANCEL', from_status, to_status, revision, note, details, created_at FROM sale_logs WHERE act = 'PAUSE'",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, testdb.Postgres(t))
			w.act("PAUSE")
			w.sealed(w.sealer(), 1)
			ctx := context.Background()
			if name != "inserted" {
				if _, err := w.db.SQL.ExecContext(ctx, change); err == nil || !strings.Contains(err.Error(), "never changed or removed") {
					t.Errorf("with the triggers: %v", err)
				}
			}
			w.unprotected()
			_, err := w.db.SQL.ExecContext(ctx, change)
			w.must(err)
			if v := verify(t, w.exported(), ""); v.OK {
				t.Errorf("%s is not found: %+v", name, v)
			}
		})
	}
}

func TestTwoSealersWriteOneChain(t *testing.T) {
	t.Parallel()
	w := setup(t, testdb.Postgres(t))
	w.act("OPEN")
	done := make(chan error, 2)
	for range 2 {
		s := w.sealer()
		go func() {
			_, err := s.Step(context.Background())
			done <- err
		}()
	}
	w.must(<-done)
	w.must(<-done)
	if v := verify(t, w.exported(), ""); !v.OK || v.Seals == 0 {
		t.Errorf("%+v", v)
	}
	moves := w.db.Ent.StockMovement.Query().Where(stockmovement.ItemID(w.item)).CountX(t.Context())
	acts := w.db.Ent.SaleLog.Query().Where(salelog.SaleID(w.sale), salelog.ActNEQ(audit.ActSeal)).CountX(t.Context())
	if v := verify(t, w.exported(), ""); v.Entries != moves+acts {
		t.Errorf("%d entries, %d moves and %d acts", v.Entries, moves, acts)
	}
}

// unprotected switches off the triggers that keep the logs, as the owner of the tables may.
func (w *world) unprotected() {
	w.Helper()
	for _, table := range []string{"stock_movements", "sale_logs"} {
		_, err := w.db.SQL.ExecContext(w.Context(), "ALTER TABLE "+table+" DISABLE TRIGGER append_only")
		w.must(err)
	}
}

// A scheduler that starts after a long time looks at all sales in steps.
func TestSalesOfATimeWithoutASchedulerAreSealedInSteps(t *testing.T) {
	t.Parallel()
	w := setup(t, testdb.Postgres(t))
	row := w.db.Ent.Sale.GetX(w.Context(), w.sale)
	var more []*ent.SaleCreate
	for range 450 {
		n := id.New[id.Sale]()
		more = append(more, w.db.Ent.Sale.Create().SetID(n).SetSlug("old-"+n.String()).SetTitle("Old").SetStatus(row.Status).SetStartsAt(row.StartsAt).
			SetEndsAt(row.EndsAt).SetPreheatAt(row.PreheatAt).SetPaymentWindowSeconds(60).SetPurchaseLimit(1).SetCreatedAt(row.CreatedAt))
	}
	w.must(w.db.Ent.Sale.CreateBulk(more...).Exec(w.Context()))
	s := w.sealer()
	s.Clock = clock.NewFake(time.Now().Add(time.Hour)) // the entries are not new
	w.sealed(s, 0)                                     // the newest of them come first
	w.sealed(s, 0)
	w.sealed(s, 1)
	if v := verify(t, w.exported(), ""); !v.OK || v.Unsealed != 0 {
		t.Errorf("%+v", v)
	}
}
