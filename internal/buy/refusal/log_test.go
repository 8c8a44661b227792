package refusal_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"seckill/internal/buy/refusal"
	"seckill/internal/identity/account"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// fixture is the log of one process.
type fixture struct {
	*testing.T
	*refusal.Log
	db       *postgres.DB
	clock    *clock.Fake
	registry *prometheus.Registry
}

func newFixture(t *testing.T, db *postgres.DB, c *clock.Fake) fixture {
	t.Helper()
	registry := prometheus.NewRegistry()
	return fixture{t, refusal.NewLog(refusal.Config{DB: db, Clock: c, Registerer: registry, Log: slog.New(slog.DiscardHandler)}), db, c, registry}
}

// onBoth runs a test on Postgres and on the database of the demo.
func onBoth(t *testing.T, test func(t *testing.T, f fixture)) {
	t.Helper()
	start := time.Date(2026, 11, 11, 10, 0, 0, 0, time.UTC)
	testdb.OnDatabases(t, func(t *testing.T, db *postgres.DB) { test(t, newFixture(t, db, clock.NewFake(start))) })
}

// written writes all that waits.
func (f fixture) written() {
	f.Helper()
	for f.Waiting() > 0 {
		if _, err := f.Flush(f.Context()); err != nil {
			f.Fatal(err)
		}
	}
}

func (f fixture) list(user id.User, sale id.Sale) []refusal.Refusal {
	f.Helper()
	list, err := f.Log.List(f.Context(), user, sale)
	if err != nil {
		f.Fatal(err)
	}
	return list
}

func refused(user id.User, sale id.Sale, stage string, code fault.Reason) refusal.Refused {
	return refusal.Refused{User: user, Sale: sale, Stage: stage, Code: code}
}

func TestARefusalIsKeptWithItsCountAndTheLastFigures(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f fixture) {
		user, sale, item := id.New[id.User](), id.New[id.Sale](), id.New[id.Item]()
		start := f.clock.Now()
		left := 7
		first := refusal.Refused{User: user, Sale: sale, Item: item, Stage: "ORDER", Code: fault.SoldOut, Left: &left}
		f.Note(first)
		f.Note(refused(user, id.New[id.Sale](), "ORDER", fault.SoldOut)) // another sale
		f.Note(refused(id.New[id.User](), sale, "ORDER", fault.SoldOut)) // another buyer
		f.written()
		f.clock.Advance(time.Second)
		f.Note(refused(user, sale, "CAPTCHA", fault.TooManyTries))
		none, ahead := 0, 12
		for range 3 {
			f.clock.Advance(time.Second)
			again := first
			again.Left, again.Ahead = &none, &ahead
			f.Note(again)
		}
		f.written()
		list := f.list(user, sale)
		if len(list) != 2 || list[1].Stage != "CAPTCHA" || list[1].Times != 1 || list[1].Left != nil {
			t.Fatalf("%+v", list)
		}
		got := list[0]
		if got.Item != item || got.Code != fault.SoldOut || got.Times != 4 || !got.First.Equal(start) || !got.Last.Equal(start.Add(4*time.Second)) ||
			got.Left == nil || *got.Left != 0 || got.Ahead == nil || *got.Ahead != 12 {
			t.Errorf("%+v", got)
		}
	})
}

func TestRefusalsOfManyProcessesAreCountedExactly(t *testing.T) {
	t.Parallel()
	db, c := testdb.Postgres(t), clock.NewFake(time.Now())
	const processes, buyers, rounds = 4, 40, 25
	users, sale := make([]id.User, buyers), id.New[id.Sale]()
	for i := range users {
		users[i] = id.New[id.User]()
	}
	var wg sync.WaitGroup
	for range processes {
		f := newFixture(t, db, c)
		wg.Go(func() {
			for range rounds {
				for _, user := range users {
					f.Note(refused(user, sale, "ORDER", fault.SoldOut))
				}
				if _, err := f.Flush(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	f := newFixture(t, db, c)
	for _, user := range users {
		if list := f.list(user, sale); len(list) != 1 || list[0].Times != processes*rounds {
			t.Fatalf("%+v", list)
		}
	}
}

// A stall of Postgres costs no refusal a wait: they fill a bounded memory, and what does
// not fit is counted.
func TestRefusalsWaitInBoundedMemoryAndWhatIsDroppedIsCounted(t *testing.T) {
	t.Parallel()
	f := newFixture(t, testdb.Postgres(t), clock.NewFake(time.Now()))
	sale := id.New[id.Sale]()
	const more = 500
	for range refusal.MaxWaiting + more {
		f.Note(refused(id.New[id.User](), sale, "ORDER", fault.SoldOut))
	}
	if n := f.Waiting(); n != refusal.MaxWaiting {
		t.Errorf("%d wait", n)
	}
	families, err := f.registry.Gather()
	if err != nil || len(families) != 2 {
		t.Fatalf("%d metrics %v", len(families), err)
	}
	for _, family := range families {
		if family.GetName() == "seckill_attempt_refusals_dropped_total" && family.GetMetric()[0].GetCounter().GetValue() != more {
			t.Errorf("dropped: %v", family)
		}
	}
}

// slowClock passes a step of time with each look at it, as while each batch takes long.
type slowClock struct {
	*clock.Fake
	step time.Duration
}

func (c slowClock) Now() time.Time { return c.Advance(c.step) }

func TestAFlushWritesOneBatchWhilePostgresIsSlowAndMoreOtherwise(t *testing.T) {
	t.Parallel()
	db := testdb.Postgres(t)
	for step, left := range map[time.Duration]int{refusal.FlushBudget: 2 * refusal.WriteBatch, 0: 0} {
		log := refusal.NewLog(refusal.Config{DB: db, Clock: slowClock{clock.NewFake(time.Now()), step}, Log: slog.New(slog.DiscardHandler)})
		for range 3 * refusal.WriteBatch {
			log.Note(refused(id.New[id.User](), id.New[id.Sale](), "ORDER", fault.SoldOut))
		}
		if _, err := log.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := log.Waiting(); n != left {
			t.Errorf("with %s a batch %d rows wait after a flush, want %d", step, n, left)
		}
	}
}

func TestRefusalsOutliveAFailureOfPostgres(t *testing.T) {
	t.Parallel()
	f := newFixture(t, testdb.Postgres(t), clock.NewFake(time.Now()))
	user, sale := id.New[id.User](), id.New[id.Sale]()
	f.Note(refused(user, sale, "PATH", fault.CaptchaInvalid))
	away, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Flush(away); err == nil || f.Waiting() != 1 {
		t.Fatalf("%v, %d wait", err, f.Waiting())
	}
	f.Note(refused(user, sale, "PATH", fault.CaptchaInvalid))
	f.written()
	if list := f.list(user, sale); len(list) != 1 || list[0].Times != 2 {
		t.Errorf("%+v", list)
	}
}

// A commit whose reply is lost is written once more.
func TestRowsThatAreWrittenTwiceCountOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f fixture) {
		user, sale := id.New[id.User](), id.New[id.Sale]()
		for want := 2; want < 5; want++ {
			f.Note(refused(user, sale, "ORDER", fault.SoldOut))
			if want == 2 {
				f.Note(refused(user, sale, "ORDER", fault.SoldOut))
			}
			if err := f.WriteUnsettled(t.Context()); err != nil {
				t.Fatal(err)
			}
			f.written()
			if list := f.list(user, sale); len(list) != 1 || list[0].Times != want {
				t.Fatalf("%+v", list)
			}
		}
		if rows, err := f.db.Ent.RefusedAttempt.Query().All(t.Context()); err != nil || len(rows) != 1 {
			t.Errorf("%d rows, %v", len(rows), err)
		}
	})
}

func TestAProcessWritesItsLastRefusals(t *testing.T) {
	t.Parallel()
	f := newFixture(t, testdb.Postgres(t), clock.NewFake(time.Now()))
	sale, user := id.New[id.Sale](), id.New[id.User]()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	f.Note(refused(user, sale, "PATH", fault.PathInvalid))
	if err := f.Log.Run(ended); err != nil {
		t.Fatal(err)
	}
	if list := f.list(user, sale); len(list) != 1 {
		t.Errorf("%+v", list)
	}
}

func TestRefusalsAreKeptFor30Days(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f fixture) {
		sale, old := id.New[id.Sale](), id.New[id.User]()
		purged := func() int {
			t.Helper()
			counts, err := f.Purge(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return counts["attempts_deleted"]
		}
		f.Note(refused(old, sale, "ORDER", fault.SoldOut))
		f.written()
		f.clock.Advance(30 * 24 * time.Hour)
		if n := purged(); n != 0 {
			t.Errorf("%d purged on the last day", n)
		}
		f.clock.Advance(time.Second)
		if n := purged(); n != 1 || len(f.list(old, sale)) != 0 {
			t.Errorf("%d purged", n)
		}
	})
}

func TestRefusalsOfADeletedUserAreNotKept(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f fixture) {
		sale, user, now := id.New[id.Sale](), id.New[id.User](), f.clock.Now()
		deleted := "deleted " + user.String()
		if !strings.HasPrefix(deleted, account.DeletedPrefix) {
			t.Fatal("names of deleted accounts have another form")
		}
		if err := f.db.Ent.User.Create().SetID(user).SetAccount(deleted).SetDisplayName("–").SetPasswordHash("").SetCreatedAt(now).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := f.db.Ent.User.UpdateOneID(user).SetDisabledAt(now).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.Note(refused(user, sale, "ORDER", fault.SoldOut))
		f.written()
		if list := f.list(user, sale); len(list) != 0 {
			t.Errorf("kept %+v", list)
		}
	})
}

// A buyer sees the own refusals at once in the process that refused, and none of them twice
// while they are written.
func TestABuyerSeesRefusalsThatAreNotWrittenYet(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f fixture) {
		user, sale := id.New[id.User](), id.New[id.Sale]()
		f.Note(refused(user, sale, "ORDER", fault.SoldOut))
		f.written()
		start := f.clock.Now()
		f.clock.Advance(time.Second)
		f.Note(refused(user, sale, "ORDER", fault.SoldOut))
		f.Note(refused(user, sale, "PATH", fault.SoldOut))
		f.Note(refused(user, id.New[id.Sale](), "ORDER", fault.SoldOut))
		for range 2 { // before and after they are written
			list := f.list(user, sale)
			if len(list) != 2 || list[0].Times+list[1].Times != 3 {
				t.Fatalf("%+v", list)
			}
			for _, r := range list {
				if r.Stage == "ORDER" && (!r.First.Equal(start) || !r.Last.Equal(start.Add(time.Second))) {
					t.Errorf("%+v", r)
				}
			}
			f.written()
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			for range 50 {
				f.Note(refused(user, sale, "PATH", fault.SoldOut))
				f.written()
			}
		})
		for last := 0; last < 51; {
			list := f.list(user, sale)
			n := list[0].Times + list[1].Times - 2
			if n < last || n > 51 {
				t.Fatalf("%d refusals after %d", n, last)
			}
			last = n
		}
		wg.Wait()
	})
}
