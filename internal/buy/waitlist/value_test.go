package waitlist_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"seckill/ent"
	"seckill/ent/itemdraw"
	"seckill/internal/buy/draw"
	"seckill/internal/buy/waitlist"
	"seckill/internal/identity/account"
	"seckill/internal/platform/id"
	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

// setValue enters a value as the operator service does.
func (l *lottery) setValue(value, source string) (set bool) {
	l.t.Helper()
	l.must(l.db.WithTx(l.t.Context(), func(ctx context.Context, tx *ent.Tx) (err error) {
		set, err = l.line.SetValue(ctx, tx, l.item, value, source)
		return err
	}))
	return set
}

func TestOperatorsEnterTheValueOfADrawOnceAfterADelay(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, 1, func(t *testing.T, l *lottery) {
		l.line = waitlist.New(waitlist.Config{DB: l.db, Gate: l.gate, Timeout: testenv.Wait, Clock: l.clock, Operators: true, Log: quiet})
		entries := l.enter(5)
		if l.setValue("early", "dice") {
			t.Error("the value was set before the closing")
		}
		l.close()
		l.must(l.draws())
		if d := l.state(waitlist.RootPublished); d.Source != draw.SourceOperator || d.Round != 0 {
			t.Errorf("published %+v", d)
		}
		late := func(want int) {
			t.Helper()
			found, err := l.line.LateDraws(t.Context())
			if l.must(err); len(found) != want {
				t.Errorf("%d draws wait, want %d", len(found), want)
			}
		}
		late(0)
		l.clock.Advance(draw.ValueDelay - time.Second)
		l.must(l.draws())
		if l.setValue("early", "dice") {
			t.Error("the value was set before others could note the root")
		}
		l.clock.Advance(time.Second)
		late(1)
		if !l.setValue("17 4 29 33 8", "Lotto, 28 November") || l.setValue("another", "dice") {
			t.Error("the value was not set exactly once")
		}
		late(0)
		l.must(l.draws())
		l.state(waitlist.Drawn)
		record := l.checked()
		if record.Source != draw.SourceOperator || record.Value != "17 4 29 33 8" || record.ValueSource != "Lotto, 28 November" {
			t.Errorf("record %+v", record)
		}
		l.ranked(record, entries)
	})
}

func TestOperatorsCannotReplaceTheBeacon(t *testing.T) {
	t.Parallel()
	l := newLottery(t, testdb.Postgres(t), 1)
	l.enter(2)
	l.close()
	l.must(l.draws())
	l.answer.Store("")
	l.clock.Advance(2 * time.Hour)
	if l.setValue("6", "dice") {
		t.Error("a value replaced the round")
	}
	late, err := l.line.LateDraws(t.Context())
	if l.must(err); len(late) != 1 || !late[0].Since.Equal(draw.RoundTime(1000)) {
		t.Errorf("late draws %+v", late)
	}
	l.endSale()
	if late, err = l.line.LateDraws(t.Context()); err != nil || len(late) != 0 {
		t.Errorf("after the end of the sale: %+v %v", late, err)
	}
}

func TestADeletedEntrantIsSkippedAsSuch(t *testing.T) {
	t.Parallel()
	l := newLottery(t, testdb.Postgres(t), 3)
	entries := l.enter(3)
	l.close()
	l.must(l.draws())
	for i, name := range []string{account.DeletedPrefix + entries[0].User.String(), "blocked@example.com"} {
		l.must(l.db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) error {
			user := entries[i].User
			if err := tx.User.Create().SetID(user).SetAccount(name).SetDisplayName("B").SetPasswordHash("x").
				SetCreatedAt(l.clock.Now()).Exec(ctx); err != nil {
				return err
			}
			return tx.User.UpdateOneID(user).SetDisabledAt(l.clock.Now()).Exec(ctx)
		}))
	}
	if left, err := l.line.LeaveBlocked(t.Context()); err != nil || left != 2 {
		t.Errorf("%d entries ended, %v", left, err)
	}
	l.beacon()
	l.must(l.draws())
	ranked := l.ranked(l.checked(), entries)
	l.step()
	for _, o := range l.checked().Offers {
		want := map[id.Waitlist]draw.Reason{entries[0].ID: draw.ReasonDeleted, entries[1].ID: draw.ReasonBlocked}[ranked[o.Rank-1].ID]
		if o.Skipped != want {
			t.Errorf("rank %d was skipped as %q, want %q", o.Rank, o.Skipped, want)
		}
	}
}

func TestTheEntriesOfADrawAreCountedByMinute(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, 1, func(t *testing.T, l *lottery) {
		l.clock.Advance(time.Minute - time.Duration(l.clock.Now().Second())*time.Second)
		begin := l.clock.Now().UTC()
		l.enter(2)
		l.clock.Advance(3 * time.Minute)
		left := l.enter(3)[0]
		_, err := l.line.Leave(t.Context(), left.ID, left.User)
		l.must(err)
		every, points, err := l.line.EntriesOverTime(t.Context(), l.item, 2*time.Hour)
		l.must(err)
		want := []waitlist.EntriesPoint{{At: begin, Entries: 2}, {At: begin.Add(3 * time.Minute), Entries: 3}}
		if every != time.Minute || fmt.Sprint(points) != fmt.Sprint(want) {
			t.Errorf("every %s: %v, want %v", every, points, want)
		}
		if every, _, err := l.line.EntriesOverTime(t.Context(), l.item, 9*24*time.Hour); err != nil || every != 26*time.Minute {
			t.Errorf("nine days are counted every %s, %v", every, err)
		}
	})
}

// An offer of thousands is made within one step, and an entry that changes meanwhile spoils none.
func TestAStepOffersThousandsOfUnitsOfADraw(t *testing.T) {
	t.Parallel()
	l := newLottery(t, testdb.Postgres(t), 450)
	l.crowd(500)
	l.close()
	l.must(l.draws())
	l.beacon()
	l.must(l.draws())
	l.step()
	record := l.checked()
	if len(record.Offers) != 450 {
		t.Errorf("%d offers in one step", len(record.Offers))
	}
	l.wantFigures(figures{reserved: 450, holders: 450})
	if n, err := l.db.Ent.ItemDraw.Query().Where(itemdraw.StateEQ(itemdraw.StateDRAWN)).Count(t.Context()); err != nil || n != 1 {
		t.Errorf("%d draws, %v", n, err)
	}
}
