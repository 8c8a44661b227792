package audit_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"seckill/ent"
	"seckill/ent/salelog"
	"seckill/ent/stockmovement"
	"seckill/internal/gate/audit"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
	"seckill/internal/testdb"
)

// sealer returns a sealer of a scheduler that has just started.
func (w *world) sealer() *audit.Sealer {
	return &audit.Sealer{DB: w.db, Clock: clock.System{}, Log: slog.New(slog.DiscardHandler)}
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
	w.must(w.newAct(w.db.Ent.SaleLog, name, 0).Exec(w.Context()))
}

// newAct returns an act of a process whose clock differs from that of the others.
func (w *world) newAct(logs *ent.SaleLogClient, name string, ahead time.Duration) *ent.SaleLogCreate {
	u, at := id.New[uuid.UUID](), time.Now().Add(ahead)
	ms := binary.BigEndian.AppendUint64(nil, uint64(at.UnixMilli())) //nolint:gosec // after 1970
	copy(u[:6], ms[2:])
	return logs.Create().SetID(u).SetSaleID(w.sale).SetAct(name).SetFromStatus("LIVE").SetToStatus("LIVE").
		SetRevision(3).SetDetails(`{"units":5}`).SetCreatedAt(at.UTC().Truncate(time.Microsecond))
}

// intact wants a log without findings, in which an earlier head occurs, and returns its head.
func (w *world) intact(when, earlier string, unsealed int) string {
	w.Helper()
	v := verify(w.T, w.exported(), earlier)
	if !v.OK || unsealed >= 0 && v.Unsealed != unsealed {
		w.Errorf("%s: %+v", when, v)
	}
	return v.Head
}

// A commit that waits, for example for a synchronous standby that is away, becomes visible
// after the entries that were made later are sealed.
func TestAnEntryThatAppearsLateIsSealedLater(t *testing.T) {
	t.Parallel()
	w := setup(t, testdb.Postgres(t))
	held, err := w.db.Ent.Tx(t.Context())
	w.must(err)
	w.must(w.newAct(held.SaleLog, "PAUSE", -2*time.Minute).Exec(t.Context()))
	w.act("OPEN")
	s := w.sealer()
	w.sealed(s, 1)
	sealed := w.intact("it is open", "", 0)
	w.must(held.Commit())
	w.intact("it was committed", sealed, 1)
	w.sealed(s, 1)
	if late := verify(t, w.exported(), sealed).Late; len(late) != 1 {
		t.Errorf("late: %q", late)
	}
	w.act("RESUME")
	w.sealed(s, 1)
	w.intact("in the end", sealed, 0)
}

// The ids of a host whose clock is slow are older than the seals, and those of a fast one
// are of the future.
func TestNoClockBreaksTheChain(t *testing.T) {
	t.Parallel()
	for name, ahead := range map[string]time.Duration{"slow": -time.Minute, "very slow": -time.Hour, "fast": time.Minute, "very fast": time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testdb.OnDatabases(t, func(t *testing.T, db *postgres.DB) {
				w := setup(t, db)
				s, head := w.sealer(), ""
				for round := range 4 {
					w.act("OPEN")
					w.must(w.newAct(w.db.Ent.SaleLog, "PAUSE", ahead).Exec(t.Context()))
					w.intact("not sealed", head, -1)
					if round%2 == 0 {
						_, err := w.sealer().Step(t.Context()) // of a scheduler that has just started
						w.must(err)
						head = w.intact("sealed by another", head, 0)
					}
					_, err := s.Step(t.Context())
					w.must(err)
				}
				_, err := w.sealer().Step(t.Context())
				w.must(err)
				w.intact("in the end", head, 0)
			})
		})
	}
}

// sealByID writes a seal as release 0.1 does: it covers all entries, in the order of their ids.
func (w *world) sealByID(seq int, at time.Time) {
	w.Helper()
	lines := w.exported()
	end := audit.Trailer{}
	head := sha256.Sum256([]byte(w.sale.Public()))
	var last audit.Entry
	for _, line := range lines {
		var e audit.Entry
		if w.must(json.Unmarshal([]byte(line), &e)); e.Type != "act" && e.Type != "move" {
			continue
		}
		head = sha256.Sum256(append(head[:], line...))
		end.Entries, end.Head = end.Entries+1, hex.EncodeToString(head[:])
		if bytes.Compare(e.ID[:], last.ID[:]) > 0 {
			last = e
		}
	}
	last.ID[15]++ // random: not at its maximum, but for one time in 256
	details := fmt.Sprintf(`{"type":"seal","seq":%d,"until":%q,"entries":%d,"head":%q,"at":%q}`, seq, last.ID, end.Entries, end.Head, at.UTC().Format(time.RFC3339Nano))
	w.must(w.db.Ent.SaleLog.Create().SetID(uuid.NewHash(sha256.New(), w.sale.UUID(), fmt.Append(nil, audit.ActSeal, seq), 8)).SetSaleID(w.sale).
		SetAct(audit.ActSeal).SetFromStatus("LIVE").SetToStatus("LIVE").SetRevision(3).SetDetails(details).SetCreatedAt(at).Exec(w.Context()))
}

// Seals of release 0.1 stay valid, in its files and after the update.
func TestAChainOfTheFormerReleaseIsContinued(t *testing.T) {
	t.Parallel()
	testdb.OnDatabases(t, func(t *testing.T, db *postgres.DB) {
		w := setup(t, db)
		w.act("OPEN")
		w.sealByID(1, time.Now())
		first := w.intact("one seal", "", 0)
		w.act("PAUSE")
		w.sealByID(2, time.Now())
		second := w.intact("two seals", first, 0)
		old := w.exported()
		old[0] = regexp.MustCompile(`"algorithm":"[^"]*"`).ReplaceAllString(old[0], `"algorithm":"seckill-log-1: SHA-256 over the previous head and each entry's JSON"`)
		old[len(old)-1] = regexp.MustCompile(`,"header":"[^"]*"`).ReplaceAllString(old[len(old)-1], "")
		if v := verify(t, old, first); !v.OK || v.Seals != 2 {
			t.Errorf("a file of the former release: %+v", v)
		}
		s := w.sealer()
		w.sealed(s, 0) // nothing is new
		w.act("RESUME")
		w.sealed(s, 1)
		third := w.intact("the first new seal", second, 0)
		w.must(w.newAct(w.db.Ent.SaleLog, "PAUSE", -2*time.Minute).Exec(t.Context()))
		w.intact("an entry with an old id", first, 1)
		w.sealed(s, 1)
		w.intact("in the end", third, 0)
		if v := verify(t, w.exported(), ""); v.Seals != 4 {
			t.Errorf("%+v", v)
		}
	})
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
		"inserted": "INSERT INTO sale_logs SELECT overlay(overlay(id::text placing 'abcd' from 33 for 4) placing '00000000' from 1 for 8)::uuid, sale_id, actor_id, 'CANCEL', from_status, to_status, revision, note, details, created_at FROM sale_logs WHERE act = 'PAUSE'",
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
			// A row that is inserted comes after the seals, as any new one does, whatever its id says.
			if v := verify(t, w.exported(), ""); v.OK && (name != "inserted" || v.Unsealed != 1 || len(v.Late) != 1) {
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

// Each field of the header is exchanged for another value of its kind, in a sealed log and in
// one without seals.
func TestAnExchangedHeaderIsFound(t *testing.T) {
	t.Parallel()
	testdb.OnDatabases(t, func(t *testing.T, db *postgres.DB) {
		w := setup(t, db)
		w.act("OPEN")
		for _, sealed := range []int{0, 1} {
			if sealed == 1 {
				w.sealed(w.sealer(), 1)
			}
			lines := w.exported()
			var header map[string]json.RawMessage
			w.must(json.Unmarshal([]byte(lines[0]), &header))
			for _, field := range []string{"algorithm", "saleId", "createdAt", "title", "status", "exportedAt", "items"} {
				if header[field] == nil {
					t.Errorf("the header has no %s", field)
				}
			}
			for field, value := range header {
				if field == "type" {
					continue
				}
				other := map[string]string{
					"algorithm": `"seckill-log-2: SHA-256 over the previous head and each entry's JSON, in the order of the seals"`,
					"saleId":    `"` + id.New[id.Sale]().Public() + `"`, "title": `"Another"`, "status": `"CANCELLED"`,
					"createdAt": `"2020-01-01T00:00:00Z"`, "exportedAt": `"2020-01-01T00:00:00Z"`,
					"items": strings.Replace(string(value), `"held":`, `"held" :`, 1),
				}[field]
				changed := slices.Clone(lines)
				changed[0] = strings.Replace(lines[0], string(value), other, 1)
				if v := verify(t, changed, ""); changed[0] == lines[0] || v.OK {
					t.Errorf("%d seals, another %s: %+v", sealed, field, v)
				}
			}
		}
	})
}

// A log whose first seal a former release wrote keeps its beginning.
func TestALogOfTheFormerFormatVerifies(t *testing.T) {
	t.Parallel()
	w := setup(t, testdb.Postgres(t))
	w.act("OPEN")
	w.sealed(w.sealer(), 1)
	if lines := w.exported(); !strings.Contains(lines[0], "seckill-log-3") {
		t.Errorf("a new log is %s", lines[0])
	}
	old := setup(t, testdb.Postgres(t))
	old.act("OPEN")
	old.sealByID(1, time.Now())
	lines := old.exported()
	if !strings.Contains(lines[0], "seckill-log-2") {
		t.Errorf("a log of the former release is %s", lines[0])
	}
	end := len(lines) - 1
	lines[0] = regexp.MustCompile(`"createdAt":"[^"]*",`).ReplaceAllString(lines[0], "")
	lines[end] = regexp.MustCompile(`,"header":"[^"]*"`).ReplaceAllString(lines[end], "")
	if v := verify(t, lines, ""); !v.OK {
		t.Errorf("a file of the former release: %+v", v)
	}
}
