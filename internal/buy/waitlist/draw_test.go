package waitlist_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seckill/ent"
	"seckill/ent/itemdraw"
	entsale "seckill/ent/sale"
	"seckill/ent/waitlistentry"
	"seckill/internal/buy/draw"
	"seckill/internal/buy/reservation"
	"seckill/internal/buy/waitlist"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

// round1000 is a true round of the beacon, as its relays serve it.
const round1000 = `{"round":1000,"signature":"b44679b9a59af2ec876b1a6b1ad52ea9b1615fc3982b19576350f93447cb1125e342b73a8dd2bacbe47e4b6b63ed5e39"}`

const offersFor = 24 * time.Hour

// lottery is a hall whose sale is a draw. Its entries close so that its root waits for round 1000.
type lottery struct {
	*hall

	closes time.Time
	answer atomic.Value // of the relay, text; "" = it does not have the round
}

func newLottery(t testing.TB, db *postgres.DB, units int) *lottery {
	t.Helper()
	l := &lottery{hall: newHall(t, units), closes: draw.RoundTime(999).Add(-draw.Lead)}
	l.answer.Store(round1000)
	relay := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := l.answer.Load().(string)
		if text == "" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(text))
	}))
	t.Cleanup(relay.Close)
	relays, err := draw.NewRelays(draw.Quicknet(), []string{relay.URL}, relay.Client(), quiet)
	l.must(err)
	if db != l.db {
		l.copySale(db)
	}
	l.clock = clock.NewFake(l.closes.Add(-time.Hour))
	l.line = waitlist.New(waitlist.Config{DB: l.db, Gate: l.gate, Timeout: testenv.Wait, Clock: l.clock, Relays: relays, Log: quiet})
	l.must(l.db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		return tx.Sale.Update().Where(entsale.ID(l.sale)).SetStartsAt(l.closes.Add(-2 * time.Hour)).
			SetEndsAt(l.closes.Add(48 * time.Hour)).SetEntrySeconds(7200).SetOfferSeconds(int(offersFor / time.Second)).Exec(ctx)
	}))
	return l
}

// copySale writes the sale of the hall into another database.
func (l *lottery) copySale(db *postgres.DB) {
	l.t.Helper()
	v, err := l.db.Ent.Sale.Get(l.t.Context(), l.sale)
	l.must(err)
	item, err := l.db.Ent.SaleItem.Get(l.t.Context(), l.item)
	l.must(err)
	l.db = db
	l.must(db.WithTx(l.t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		err := tx.Sale.Create().SetID(v.ID).SetSlug(v.Slug).SetTitle(v.Title).SetStatus(v.Status).SetStartsAt(v.StartsAt).
			SetEndsAt(v.EndsAt).SetPreheatAt(v.PreheatAt).SetPaymentWindowSeconds(900).SetPurchaseLimit(2).SetEpoch(1).
			SetCreatedAt(v.CreatedAt).Exec(ctx)
		if err != nil {
			return err
		}
		return tx.SaleItem.Create().SetID(item.ID).SetSaleID(v.ID).SetGoodsID(item.GoodsID).SetPosition(0).SetPriceMinor(1).
			SetCurrency("EUR").SetTotal(item.Total).SetAvailable(item.Available).Exec(ctx)
	}))
}

func (l *lottery) tryEnter(user id.User, quantity int) (*waitlist.Entry, error) {
	return l.line.Join(l.t.Context(), waitlist.JoinInput{
		Sale: l.sale, Item: l.item, User: user, Quantity: quantity, Waived: true, Nonce: "nonce of " + user.String(), Closes: l.closes,
	})
}

// enter adds n entries of new users.
func (l *lottery) enter(n int) []*waitlist.Entry {
	l.t.Helper()
	entries := make([]*waitlist.Entry, n)
	for i := range entries {
		var err error
		entries[i], err = l.tryEnter(id.New[id.User](), 1)
		l.must(err)
	}
	return entries
}

// close advances the clock to the closing of the entries.
func (l *lottery) close() { l.clock.Advance(l.closes.Sub(l.clock.Now())) }

// beacon advances the clock to the time of the round.
func (l *lottery) beacon() { l.clock.Advance(draw.RoundTime(1000).Sub(l.clock.Now())) }

// draws takes the steps of the draw that can be taken now.
func (l *lottery) draws() error {
	_, err := l.line.DrawStep(l.t.Context())
	return err
}

func (l *lottery) state(want waitlist.DrawState) *waitlist.Drawing {
	l.t.Helper()
	d, err := l.line.Drawing(l.t.Context(), l.item)
	l.must(err)
	if d == nil || d.State != want {
		l.t.Fatalf("the draw is %+v, want %s", d, want)
	}
	return d
}

// checked returns the record of the draw after checking it as any outsider can.
func (l *lottery) checked() *draw.Record {
	l.t.Helper()
	d, err := l.line.Drawing(l.t.Context(), l.item)
	l.must(err)
	var file bytes.Buffer
	l.must(l.line.WriteRecord(l.t.Context(), &file, d))
	r, err := draw.Decode(&file)
	l.must(err)
	l.must(r.Check(draw.Quicknet()))
	return r
}

// entry returns an entry with a status.
func (l *lottery) entry(e *waitlist.Entry, want waitlist.Status) *waitlist.Entry {
	l.t.Helper()
	now, err := l.line.Entry(l.t.Context(), e.ID)
	l.must(err)
	if now.Status != want {
		l.t.Errorf("entry of rank %d is %s, want %s", now.Line, now.Status, want)
	}
	return now
}

// ranked returns entries by their rank, which is that of the record.
func (l *lottery) ranked(r *draw.Record, entries []*waitlist.Entry) []*waitlist.Entry {
	l.t.Helper()
	byRank := make([]*waitlist.Entry, r.Count)
	for _, e := range entries {
		now, err := l.line.Entry(l.t.Context(), e.ID)
		l.must(err)
		rank, in := r.Rank(draw.LeafHash(now.ID, now.Nonce))
		if !in || int64(rank) != now.Line {
			l.t.Fatalf("entry %s has number %d, rank %d in the record", now.ID, now.Line, rank)
		}
		byRank[rank-1] = now
	}
	return byRank
}

func onBothDatabases(t *testing.T, units int, test func(t *testing.T, l *lottery)) {
	t.Helper()
	testdb.OnDatabases(t, func(t *testing.T, db *postgres.DB) { test(t, newLottery(t, db, units)) })
}

func TestUnitsOfADrawAreOfferedInTheOrderThatItsRecordProves(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, 3, func(t *testing.T, l *lottery) {
		entries := l.enter(12)
		again, err := l.tryEnter(entries[0].User, 2)
		if l.must(err); again.ID != entries[0].ID || again.Status != waitlist.Entered {
			t.Errorf("entered again: %+v", again)
		}
		withdrawn, err := l.line.Leave(t.Context(), entries[11].ID, entries[11].User)
		if l.must(err); withdrawn.Status != waitlist.Left || l.state(waitlist.TakesEntries).Entries != 11 {
			t.Errorf("withdrawn: %+v", withdrawn)
		}
		entries = entries[:11]
		l.step()
		l.must(l.draws())
		l.state(waitlist.TakesEntries) // before its time

		l.close()
		if _, err := l.tryEnter(id.New[id.User](), 1); fault.ReasonOf(err) != fault.EntriesClosed {
			t.Errorf("after the closing: %v", err)
		}
		l.must(l.draws())
		published := l.state(waitlist.RootPublished)
		if published.Entries != 11 || published.Round != 1000 || len(published.Root) != 32 {
			t.Errorf("published %+v", published)
		}
		l.step() // before the draw no unit is offered
		for _, e := range entries {
			l.entry(e, waitlist.Entered)
		}
		left, err := l.line.Leave(t.Context(), entries[5].ID, entries[5].User) // it stays in the tree
		l.must(err)

		l.beacon()
		l.must(l.draws())
		l.state(waitlist.Drawn)
		record := l.checked()
		ranked := l.ranked(record, entries)
		if len(record.Offers) != 0 {
			t.Errorf("offers before the first: %+v", record.Offers)
		}
		l.step()
		offered := 0
		for _, e := range ranked {
			switch {
			case e.ID == left.ID:
				l.entry(e, waitlist.Left)
			case offered < 3:
				now := l.entry(e, waitlist.Offered)
				if now.OfferExpiresAt == nil || !now.OfferExpiresAt.Equal(l.clock.Now().Add(offersFor)) {
					t.Errorf("offered until %v", now.OfferExpiresAt)
				}
				offered++
			default:
				l.entry(e, waitlist.Waiting)
			}
		}
		first := slices.IndexFunc(ranked, func(e *waitlist.Entry) bool { return e.ID != left.ID })
		_, err = l.line.Leave(t.Context(), ranked[first].ID, ranked[first].User)
		l.must(err)
		l.step()
		l.step()
		record = l.checked()
		if n := len(record.Offers); n < 4 || n > 5 || record.Offers[first].Skipped != "" {
			t.Errorf("offers %+v", record.Offers)
		}
		for _, o := range record.Offers {
			if skipped := ranked[o.Rank-1].ID == left.ID; skipped != (o.Skipped == draw.ReasonLeft) {
				t.Errorf("offer %+v", o)
			}
		}
		l.wantFigures(figures{reserved: 3, holders: 3})
		turns := len(record.Offers)
		waiting := slices.DeleteFunc(ranked[turns:], func(e *waitlist.Entry) bool { return e.ID == left.ID })
		last := l.entry(waiting[len(waiting)-1], waitlist.Waiting)
		ahead, err := l.line.Ahead(t.Context(), last)
		if l.must(err); int64(ahead) != last.Line-waiting[0].Line {
			t.Errorf("%d places from rank %d to rank %d", ahead, waiting[0].Line, last.Line)
		}
	})
}

// Two processes draw at once, and each step repeats what a crashed process had written.
func TestACrashBetweenAnyTwoStepsOfADrawChangesNoNumber(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, 1, func(t *testing.T, l *lottery) {
		entries := l.enter(9)
		l.close()
		write := func(set func(ctx context.Context, tx *ent.Tx) error) { l.must(l.db.WithTx(t.Context(), set)) }
		write(func(ctx context.Context, tx *ent.Tx) error { // closed, and no more
			return tx.ItemDraw.Update().SetState(itemdraw.StateCLOSED).SetClosedAt(l.clock.Now()).Exec(ctx)
		})
		if _, err := l.line.Join(t.Context(), waitlist.JoinInput{
			Sale: l.sale, Item: l.item, User: id.New[id.User](), Quantity: 1, Waived: true, Nonce: "late", Closes: l.closes.Add(time.Hour),
		}); fault.ReasonOf(err) != fault.EntriesClosed {
			t.Errorf("by a slow clock: %v", err)
		}
		l.must(l.draws())
		l.state(waitlist.RootPublished) // published, and no more
		l.beacon()
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				if err := l.draws(); err != nil {
					t.Error(err)
				}
			})
		}
		both.Wait()
		l.state(waitlist.Drawn)
		ranked := l.ranked(l.checked(), entries)
		l.must(l.db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) error { // half of the numbers are written
			if err := tx.ItemDraw.Update().SetState(itemdraw.StateNUMBERING).Exec(ctx); err != nil {
				return err
			}
			_, err := tx.ExecContext(ctx, `UPDATE waitlist_entries SET line = 0, status = 'ENTERED' WHERE line > 4`)
			return err
		}))
		l.step()
		for _, e := range entries { // the numbers are not complete
			if now, err := l.line.Entry(t.Context(), e.ID); err != nil || now.Status == waitlist.Offered {
				t.Errorf("%+v %v", now, err)
			}
		}
		l.must(l.draws())
		l.state(waitlist.Drawn)
		for i, e := range l.ranked(l.checked(), entries) {
			if e.ID != ranked[i].ID {
				t.Errorf("rank %d is of another entry", i+1)
			}
		}
		l.step()
		l.step()
		l.entry(ranked[0], waitlist.Offered)
		l.wantFigures(figures{reserved: 1, holders: 1})
	})
}

// Entries are written while the draw closes: each is in the tree, or was refused.
func TestEveryEntryAtTheClosingIsInTheTreeOrRefused(t *testing.T) {
	t.Parallel()
	l := newLottery(t, testdb.Postgres(t), 1)
	l.enter(1)
	l.clock.Advance(l.closes.Sub(l.clock.Now())) // the entrants below have a slow clock
	const users = 200
	var all sync.WaitGroup
	var entered atomic.Int64
	entered.Add(1)
	for i := range users {
		all.Go(func() {
			if i == users/2 {
				if err := l.draws(); err != nil {
					t.Error(err)
				}
			}
			user := id.New[id.User]()
			_, err := l.line.Join(t.Context(), waitlist.JoinInput{
				Sale: l.sale, Item: l.item, User: user, Quantity: 1, Waived: true, Nonce: user.String(), Closes: l.closes.Add(time.Hour),
			})
			switch {
			case err == nil:
				entered.Add(1)
			case fault.ReasonOf(err) != fault.EntriesClosed:
				t.Error(err)
			}
		})
	}
	all.Wait()
	l.must(l.draws())
	d := l.state(waitlist.RootPublished)
	if d.Entries != int(entered.Load()) {
		t.Errorf("%d entries are in the tree, %d were accepted", d.Entries, entered.Load())
	}
}

func TestADrawWaitsForItsBeacon(t *testing.T) {
	t.Parallel()
	l := newLottery(t, testdb.Postgres(t), 1)
	l.enter(3)
	l.close()
	l.must(l.draws())
	l.must(l.draws()) // the round is not there yet
	l.beacon()
	for _, answer := range []string{"", `{"round":1000,"signature":"00"}`, "no"} {
		l.answer.Store(answer)
		l.clock.Advance(time.Hour)
		if err := l.draws(); err == nil {
			t.Errorf("drawn by the answer %q", answer)
		}
		l.state(waitlist.RootPublished)
	}
	l.answer.Store(round1000)
	l.must(l.draws())
	l.checked()
}

func TestARootThatIsPublishedLateWaitsForALaterRound(t *testing.T) {
	t.Parallel()
	l := newLottery(t, testdb.Postgres(t), 1)
	l.enter(2)
	l.close()
	l.clock.Advance(6 * time.Second)
	l.must(l.draws())
	if d := l.state(waitlist.RootPublished); d.Round != 1002 {
		t.Errorf("round %d", d.Round)
	}
}

func TestTheServerDrawsWithoutABeacon(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, 1, func(t *testing.T, l *lottery) {
		l.line = waitlist.New(waitlist.Config{DB: l.db, Gate: l.gate, Timeout: testenv.Wait, Clock: l.clock, Log: quiet})
		entries := l.enter(5)
		l.close()
		l.must(l.draws())
		l.state(waitlist.Drawn)
		if r := l.checked(); r.Source != draw.SourceLocal || r.Round != 0 {
			t.Errorf("record %+v", r)
		}
		l.ranked(l.checked(), entries)
	})
}

func TestADrawWithoutEntriesIsDrawn(t *testing.T) {
	t.Parallel()
	l := newLottery(t, testdb.Postgres(t), 1)
	l.close()
	l.must(l.draws())
	l.beacon()
	l.must(l.draws())
	l.state(waitlist.Drawn)
	if r := l.checked(); r.Count != 0 {
		t.Errorf("record %+v", r)
	}
}

func TestADisabledUserIsNotInTheTree(t *testing.T) {
	t.Parallel()
	l := newLottery(t, testdb.Postgres(t), 1)
	entries := l.enter(3)
	l.must(l.db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		err := tx.User.Create().SetID(entries[1].User).SetAccount(fmt.Sprintf("%s@example.com", entries[1].User)).SetDisplayName("B").
			SetPasswordHash("x").SetCreatedAt(l.clock.Now()).Exec(ctx)
		if err != nil {
			return err
		}
		return tx.User.UpdateOneID(entries[1].User).SetDisabledAt(l.clock.Now()).Exec(ctx)
	}))
	l.close()
	l.must(l.draws())
	if d := l.state(waitlist.RootPublished); d.Entries != 2 {
		t.Errorf("%d entries are in the tree", d.Entries)
	}
	l.entry(entries[1], waitlist.Left)
	l.entry(entries[0], waitlist.Entered)
}

func (l *lottery) endSale() {
	l.t.Helper()
	l.must(l.db.WithTx(l.t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		return tx.Sale.Update().SetStatus(entsale.StatusENDED).Exec(ctx)
	}))
}

// Also when many entries wait whose turn has not come, all end with the sale.
func TestTheEntriesOfADrawEndWithTheSale(t *testing.T) {
	t.Parallel()
	l := newLottery(t, testdb.Postgres(t), 1)
	entries := l.enter(3)
	l.close()
	l.must(l.draws())
	l.beacon()
	l.must(l.draws())
	first := l.ranked(l.checked(), entries)[0]
	l.must(l.db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) error { // far behind
		_, err := tx.ExecContext(ctx, `UPDATE waitlist_entries SET line = line + 500 WHERE line > 1`)
		if err == nil {
			_, err = tx.ExecContext(ctx, `INSERT INTO waitlist_entries (id, sale_id, item_id, user_id, quantity, status, version, return_due, nonce, line, skipped, created_at, updated_at)
				SELECT gen_random_uuid(), sale_id, item_id, gen_random_uuid(), 1, 'WAITING', 1, false, 'n', n, '', created_at, updated_at
				FROM waitlist_entries, generate_series(2, 450) n WHERE line = 1`)
		}
		return err
	}))
	l.step()
	l.entry(first, waitlist.Offered)
	l.endSale()
	l.step()
	for _, e := range entries {
		l.entry(e, waitlist.Expired)
	}
	l.step() // two hundred at a time, those that may have units
	l.step()
	open, err := l.db.Ent.WaitlistEntry.Query().Where(waitlistentry.StatusIn(waitlistentry.StatusWAITING, waitlistentry.StatusOFFERED)).Count(t.Context())
	if l.must(err); open != 0 {
		t.Errorf("%d entries are open", open)
	}
	l.wantFigures(figures{stock: 1})
}

func TestTheEntriesOfADrawThatIsNotMadeEndWithTheSale(t *testing.T) {
	t.Parallel()
	l := newLottery(t, testdb.Postgres(t), 1)
	entries := l.enter(3)
	l.endSale()
	l.must(l.draws())
	for _, e := range entries {
		l.entry(e, waitlist.Expired)
	}
}

// Each item has a draw of its own: a buyer may enter several, and the limit of the sale counts the
// offers, in the order of the items.
func TestTheLimitOfASaleHoldsOverTheDrawsOfItsItems(t *testing.T) {
	t.Parallel()
	l := newLottery(t, testdb.Postgres(t), 1)
	second := id.New[id.Item]()
	l.must(l.db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		return tx.SaleItem.Create().SetID(second).SetSaleID(l.sale).SetGoodsID(id.New[id.Goods]()).SetPosition(1).SetPriceMinor(1).
			SetCurrency("EUR").SetTotal(1).SetAvailable(1).Exec(ctx)
	}))
	for _, item := range []id.Item{l.item, second} {
		_, err := l.gate.Begin(t.Context(), l.sale, item, 2)
		l.must(err)
		_, err = l.gate.Open(t.Context(), reservation.Contents{
			Sale: l.sale, Item: item, State: reservation.GateOpen, Epoch: 2, Opens: time.Now().Add(-time.Hour),
			Closes: time.Now().Add(time.Hour), Limit: 1, SaleLimit: 1, Total: 1, Stock: 1, Revision: 1,
		})
		l.must(err)
	}
	both, other := id.New[id.User](), id.New[id.User]()
	enter := func(user id.User, item id.Item) *waitlist.Entry {
		e, err := l.line.Join(t.Context(), waitlist.JoinInput{
			Sale: l.sale, Item: item, User: user, Quantity: 1, Waived: true, Nonce: "nonce of " + user.String(), Closes: l.closes,
		})
		l.must(err)
		return e
	}
	won, skipped := enter(both, l.item), enter(both, second)
	follows := enter(other, second)
	l.close()
	l.must(l.draws())
	l.beacon()
	l.must(l.draws())
	l.step()
	l.step()
	l.entry(won, waitlist.Offered)
	l.entry(follows, waitlist.Offered)
	if now, err := l.line.Entry(t.Context(), skipped.ID); err != nil || now.Status == waitlist.Offered {
		t.Errorf("two offers of one unit each, although a buyer gets one: %+v %v", now, err)
	}
	d, err := l.line.Drawing(t.Context(), second)
	l.must(err)
	var file bytes.Buffer
	l.must(l.line.WriteRecord(t.Context(), &file, d))
	r, err := draw.Decode(&file)
	l.must(err)
	l.must(r.Check(draw.Quicknet()))
	if first := r.Offers[0]; len(r.Offers) == 2 && first.Skipped != draw.ReasonLimit {
		t.Errorf("the buyer of the first item was skipped as %q", first.Skipped)
	}
}
