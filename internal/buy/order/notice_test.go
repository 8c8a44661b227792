package order_test

import (
	"encoding/json"
	"testing"
	"time"

	"seckill/ent"
	"seckill/ent/noticefact"
	"seckill/internal/buy/order"
	"seckill/internal/buy/orderfacts"
	"seckill/internal/outbox/notice"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

// facts returns the orders of each kind of fact, and fails the test if a fact is not due at
// the expected time.
func (e *env) facts(due map[noticefact.Kind]time.Time) map[noticefact.Kind][]id.Task {
	e.t.Helper()
	rows, err := e.db.Ent.NoticeFact.Query().Order(ent.Asc(noticefact.FieldID)).All(e.t.Context())
	e.must(err)
	facts := map[noticefact.Kind][]id.Task{}
	for _, row := range rows {
		var subjects []struct {
			ID   id.Task
			User id.User
		}
		e.must(json.Unmarshal(row.Subjects, &subjects))
		for _, s := range subjects {
			facts[row.Kind] = append(facts[row.Kind], s.ID)
		}
		if !row.DueAt.Equal(due[row.Kind]) {
			e.t.Errorf("%s is due at %s, want %s", row.Kind, row.DueAt, due[row.Kind])
		}
	}
	return facts
}

func TestOrdersWriteTheFactsForTheirNoticesInTheirTransaction(t *testing.T) {
	onBoth(t, stock{units: 4, limit: 1}, func(t *testing.T, e *env) {
		w := order.NewWriter(order.WriterConfig{DB: e.db, Clock: e.clock, Facts: orderfacts.Outbox{Notices: notice.NewOutbox(3*time.Minute, false)}, Timeout: testenv.Wait})
		now := e.clock.Now()
		due := map[noticefact.Kind]time.Time{noticefact.KindORDER_PLACED: now, noticefact.KindPAYMENT_DEADLINE: now.Add(12 * time.Minute)}
		requests := e.requests(6) // two more than there are units
		written := map[id.Task]bool{}
		for task, r := range w.Write(t.Context(), requests...) {
			e.must(r.Err)
			if r.Order != nil {
				written[requests[task].Task] = true
			}
		}
		if len(written) != 4 {
			t.Fatalf("%d orders", len(written))
		}
		for range 2 { // a repeated delivery writes no fact
			facts := e.facts(due)
			for _, kind := range []noticefact.Kind{noticefact.KindORDER_PLACED, noticefact.KindPAYMENT_DEADLINE} {
				if len(facts[kind]) != len(written) {
					t.Errorf("%d facts %s, want %d", len(facts[kind]), kind, len(written))
				}
				for _, orderID := range facts[kind] {
					if !written[orderID] {
						t.Errorf("a fact %s of %s, which is no order", kind, orderID)
					}
				}
			}
			for _, r := range w.Write(t.Context(), requests...) {
				e.must(r.Err)
			}
		}
	})
}
