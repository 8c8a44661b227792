package webhook_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seckill/ent"
	"seckill/internal/outbox/webhook"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/postgres"
	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

// pulled makes an outbox write events although there is no endpoint.
func pulled(context.Context, *ent.Tx) (bool, error) { return true, nil }

// readAll reads all pages after a cursor, each with a process of its own, and returns the
// last cursor.
func readAll(t testing.TB, db *postgres.DB, c clock.Clock, after webhook.Cursor) (page []webhook.Record, last webhook.Cursor) {
	t.Helper()
	for more := true; more; {
		parsed, err := webhook.ParseCursor(after.String())
		if err != nil || parsed != after {
			t.Fatalf("cursor %v became %v: %v", after, parsed, err)
		}
		var some []webhook.Record
		some, more, err = newService(t, db, c, nil).Events(t.Context(), webhook.EventsInput{After: parsed, Limit: 7})
		if err != nil {
			t.Fatal(err)
		}
		if len(some) > 0 {
			after = some[len(some)-1].Cursor
		}
		page = append(page, some...)
	}
	return page, after
}

func TestAReaderOfPagesMissesNothingThroughKilledProcesses(t *testing.T) {
	t.Parallel()
	const writers, each, kills = 8, 60, 3
	url := testdb.UnflushedPostgresURL(t)
	db, err := postgres.Open(t.Context(), postgres.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	outbox := webhook.NewOutbox(nil, pulled)
	var writing sync.WaitGroup
	allowed := make(chan struct{}, writers*each) // one for each event that may be written
	for w := range writers {
		writing.Go(func() {
			for n := range each {
				select {
				case <-allowed:
				case <-t.Context().Done():
					return
				}
				err := db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) error {
					err := outbox.Write(ctx, tx, webhook.OrderPlaced, func() []webhook.Event {
						return []webhook.Event{{Kind: webhook.OrderPlaced, Subject: fmt.Sprintf("ord_%d", w), At: time.Now(), Data: n}}
					})
					if err == nil && w%2 == 0 { // it commits after transactions with higher ids
						_, err = tx.ExecContext(ctx, "SELECT pg_sleep(0.02)")
					}
					return err
				})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	var got []webhook.Record
	var last webhook.Cursor
	read := func() {
		some, after := readAll(t, db, clock.System{}, last)
		got, last = append(got, some...), after
	}
	const round = writers * each / (kills + 1)
	for range kills {
		for range round {
			allowed <- struct{}{}
		}
		stop := startSender(t, url, 0)
		before := len(got)
		testenv.Eventually(t, testenv.Wait, func() bool { read(); return len(got) > before+round/4 }, "no event was dispatched")
		stop()
		read()
	}
	close(allowed)
	startSender(t, url, 0)
	writing.Wait()
	testenv.Eventually(t, testenv.Wait, func() bool { read(); return len(got) >= writers*each }, "events are missing")
	bySubject, ids := map[string][]int{}, map[string]bool{}
	for _, e := range got {
		var body struct{ Data int }
		if err := json.Unmarshal(e.Payload, &body); err != nil {
			t.Fatal(err)
		}
		bySubject[e.Subject] = append(bySubject[e.Subject], body.Data)
		ids[e.ID.String()] = true
	}
	if len(got) != writers*each || len(ids) != writers*each {
		t.Errorf("read %d events, %d different ones, want each of %d once", len(got), len(ids), writers*each)
	}
	for subject, numbers := range bySubject {
		if !slices.IsSorted(numbers) {
			t.Errorf("events of %s were read as %v", subject, numbers)
		}
	}
}

func TestACursorIsRefusedWhenItsEventsMayBeGone(t *testing.T) {
	onBoth(t, func(t *testing.T, e *env) {
		e.outbox = webhook.NewOutbox(e.clock, pulled)
		e.fact(webhook.StockLow, "itm_1", 1)
		e.step()
		_, last := readAll(t, e.db, e.clock, webhook.Cursor{})
		e.clock.Advance(19 * 24 * time.Hour)
		if _, _, err := e.service.Events(t.Context(), webhook.EventsInput{After: last, Limit: 1}); err != nil {
			t.Errorf("an old event that is still there: %v", err)
		}
		if _, err := e.service.Purge(t.Context()); err != nil {
			t.Fatal(err)
		}
		e.fact(webhook.StockLow, "itm_1", 2)
		e.step()
		_, _, err := e.service.Events(t.Context(), webhook.EventsInput{After: last, Limit: 1})
		if fault.CodeOf(err) != fault.BadInput || !strings.Contains(err.Error(), "18 days") {
			t.Errorf("after a purge: %v", err)
		}
		if page, _ := readAll(t, e.db, e.clock, webhook.Cursor{}); len(page) != 1 {
			t.Errorf("without a cursor: %v", page)
		}
	})
}

func TestEventsAreReadByKind(t *testing.T) {
	onBoth(t, func(t *testing.T, e *env) {
		e.outbox = webhook.NewOutbox(e.clock, pulled)
		for i, kind := range webhook.Kinds() {
			e.fact(kind, "ord_1", i)
		}
		e.step()
		page, more, err := e.service.Events(t.Context(), webhook.EventsInput{Kinds: []webhook.Kind{webhook.OrderPaid, webhook.StockLow}, Limit: 1})
		if err != nil || !more || len(page) != 1 || page[0].Kind != webhook.OrderPaid {
			t.Errorf("read %v, more %v: %v", page, more, err)
		}
	})
}

// A read that began before another system was added ends after a read that found it.
func TestASlowReadDoesNotHideANewReader(t *testing.T) {
	t.Parallel()
	db := testdb.Postgres(t)
	began, end := make(chan struct{}), make(chan struct{})
	var reads atomic.Int32
	outbox := webhook.NewOutbox(clock.NewFake(time.Unix(0, 0)), func(context.Context, *ent.Tx) (bool, error) {
		if reads.Add(1) == 1 {
			close(began)
			<-end
			return false, nil
		}
		return true, nil
	})
	wants := func() (wants bool) {
		if err := db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) (err error) {
			wants, err = outbox.Wants(ctx, tx, webhook.OrderPlaced)
			return err
		}); err != nil {
			t.Error(err)
		}
		return wants
	}
	var slow sync.WaitGroup
	slow.Go(func() { wants() })
	<-began
	outbox.Forget() // a token was created
	if !wants() {
		t.Error("the new reader is not seen")
	}
	close(end)
	slow.Wait()
	if !wants() {
		t.Error("the slow read hides the new reader")
	}
	if n := reads.Load(); n != 2 {
		t.Errorf("%d reads, want 2", n)
	}
}

// Two processes: one creates an endpoint, the other one has read that there is none.
func TestNoEventIsMissingAfterAnEndpointWasCreated(t *testing.T) {
	t.Parallel()
	db := testdb.Postgres(t)
	created := atomic.Bool{}
	other := webhook.NewOutbox(nil, func(context.Context, *ent.Tx) (bool, error) { return created.Load(), nil })
	wants := func() (wants bool) {
		if err := db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) (err error) {
			wants, err = other.Wants(ctx, tx, webhook.OrderPlaced)
			return err
		}); err != nil {
			t.Error(err)
		}
		return wants
	}
	if wants() {
		t.Fatal("events are written without a reader")
	}
	created.Store(true)
	webhook.NewOutbox(nil, nil).Added(t.Context())
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if !wants() {
				t.Error("a transaction after the creation writes no event")
			}
		})
	}
	all.Wait()
}
