package queue_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"seckill/ent"
	entmail "seckill/ent/mail"
	"seckill/internal/outbox/queue"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// work is a queue with rows, and the attempts that were made.
type work struct {
	*queue.Queue
	clock *clock.Fake
	mu    sync.Mutex
	tried []int          // guarded by mu; rows of each call of Work
	times map[string]int // guarded by mu; attempts by row
}

func setup(t *testing.T, db *postgres.DB, rows int) *work {
	t.Helper()
	w := &work{clock: clock.NewFake(time.Now().UTC().Truncate(time.Millisecond)), times: map[string]int{}}
	w.Queue = &queue.Queue{
		DB: db, Now: w.clock.Now, Table: entmail.Table, Done: string(entmail.StateSENT), Content: entmail.FieldContent,
		Pauses: queue.Pauses{First: 5 * time.Second, Most: time.Minute}, Lease: time.Minute, Batch: 8, Parallel: 4,
	}
	now := w.Now()
	for range rows {
		err := db.Ent.Mail.Create().SetID(id.New[uuid.UUID]()).SetRecipient("one@example.com").SetKind("reset").SetLanguage("en").
			SetContent([]byte("secret")).SetDueAt(now).SetRetryUntil(now.Add(time.Hour)).SetCreatedAt(now).Exec(t.Context())
		if err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func (w *work) rows(t *testing.T) []*ent.Mail {
	t.Helper()
	rows, err := w.DB.Ent.Mail.Query().All(t.Context())
	if err != nil || len(rows) == 0 {
		t.Fatalf("%d rows: %v", len(rows), err)
	}
	return rows
}

// step claims one batch and makes an attempt at each row.
func (w *work) step(t *testing.T, deliver func(row *ent.Mail) error) {
	t.Helper()
	read := func(ctx context.Context, ids ...uuid.UUID) ([]*ent.Mail, error) {
		return w.DB.Ent.Mail.Query().Where(entmail.IDIn(ids...)).All(ctx)
	}
	n, err := queue.Work(t.Context(), w.Queue, read, func(ctx context.Context, row *ent.Mail) error {
		w.mu.Lock()
		w.times[row.ID.String()]++
		w.mu.Unlock()
		a := &queue.Attempt{ID: row.ID, Number: row.Attempts, RetryUntil: row.RetryUntil}
		_, err := w.Try(ctx, a, func(context.Context) error { return deliver(row) })
		return err
	})
	if err != nil {
		t.Error(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tried = append(w.tried, n)
}

func TestProcessesClaimEachRowOnceAndNoMoreThanABatch(t *testing.T) {
	t.Parallel()
	testdb.OnDatabases(t, func(t *testing.T, db *postgres.DB) {
		const rows, steps = 40, 12
		w := setup(t, db, rows)
		var all sync.WaitGroup
		for range steps {
			all.Go(func() { w.step(t, func(*ent.Mail) error { return nil }) })
		}
		all.Wait()
		for len(w.times) < rows && w.tried[len(w.tried)-1] > 0 { // some steps found the rows locked
			w.step(t, func(*ent.Mail) error { return nil })
		}
		if most := slices.Max(w.tried); len(w.times) != rows || most > w.Batch {
			t.Errorf("%d of %d rows were tried, at most %d at a time", len(w.times), rows, most)
		}
		for row, n := range w.times {
			if n != 1 {
				t.Errorf("%d attempts at row %s", n, row)
			}
		}
		for _, row := range w.rows(t) {
			if row.State != entmail.StateSENT || len(row.Content) != 0 || row.EndedAt == nil {
				t.Errorf("row %+v", row)
			}
		}
	})
}

// A process stops during its attempt until the lease has ended and another one made the next.
func TestAnAttemptWhoseLeaseEndedHasNoEffect(t *testing.T) {
	t.Parallel()
	testdb.OnDatabases(t, func(t *testing.T, db *postgres.DB) {
		w := setup(t, db, 1)
		w.step(t, func(*ent.Mail) error {
			w.clock.Advance(w.Lease)
			w.step(t, func(*ent.Mail) error { return errors.New("the second one failed") })
			return nil
		})
		row := w.rows(t)[0]
		if row.State != entmail.StatePENDING || row.Attempts != 2 || row.Error != "the second one failed" || !row.DueAt.Equal(w.Now().Add(15*time.Second)) {
			t.Errorf("row %+v, due in %s", row, row.DueAt.Sub(w.Now()))
		}
	})
}

func TestAnAttemptEndsWhenItIsFinalOrTheNextOneWouldBeTooLate(t *testing.T) {
	t.Parallel()
	testdb.OnDatabases(t, func(t *testing.T, db *postgres.DB) {
		for name, c := range map[string]struct {
			err   error
			after time.Duration
			want  entmail.State
		}{
			"failed":   {errors.New("refused"), 0, entmail.StatePENDING},
			"final":    {queue.Final(errors.New("gone")), 0, entmail.StateGIVEN_UP},
			"over":     {queue.ErrOver, 0, entmail.StateGIVEN_UP},
			"the last": {errors.New("refused"), time.Hour - 4*time.Second, entmail.StateGIVEN_UP},
			"in time":  {errors.New("refused"), time.Hour - 5*time.Second, entmail.StatePENDING},
		} {
			w := setup(t, db, 1)
			w.clock.Advance(c.after)
			w.step(t, func(*ent.Mail) error { return c.err })
			row := w.rows(t)[0]
			if row.State != c.want || row.Error != c.err.Error() || (len(row.Content) == 0) != (row.EndedAt != nil) {
				t.Errorf("%s: row %+v", name, row)
			}
			if _, err := db.Purge(t.Context(), "all", entmail.Table); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestPausesTripleUpToTheLongest(t *testing.T) {
	t.Parallel()
	p := queue.Pauses{First: 5 * time.Second, Most: time.Minute}
	var got []time.Duration
	for attempts := 1; attempts <= 5; attempts++ {
		got = append(got, p.After(attempts))
	}
	want := []time.Duration{5 * time.Second, 15 * time.Second, 45 * time.Second, time.Minute, time.Minute}
	if !slices.Equal(got, want) {
		t.Errorf("pauses %v, want %v", got, want)
	}
}

func TestAReasonIsValidAndShort(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"refused":                      "refused",
		"a\xffb":                       "a?b",
		strings.Repeat("x", 300):       strings.Repeat("x", 197) + "…",
		strings.Repeat("邮", 100):       strings.Repeat("邮", 65) + "…", // 198 bytes: the next one would be cut
		strings.Repeat("y", 200):       strings.Repeat("y", 200),
		"a" + strings.Repeat("é", 100): "a" + strings.Repeat("é", 98) + "…",
	} {
		if got := queue.Reason(errors.New(text)); got != want || !utf8.ValidString(got) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
