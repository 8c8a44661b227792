package waitlist_test

import (
	"sync"
	"testing"

	"seckill/internal/testenv"
)

// Process A has read an entry as waiting; its buyer leaves; process B finds no units to
// release for it; A reserves units and marks the entry again; B writes that it is done.
func TestAMarkThatIsMadeWhileUnitsAreReleasedIsKept(t *testing.T) {
	t.Parallel()
	h := newHall(t, 1)
	o := h.buy()
	places := h.joined(2)
	h.cancel(o)
	for _, e := range places {
		_, err := h.line.Leave(t.Context(), e.ID, e.User)
		h.must(err)
	}
	tx, err := h.db.SQL.BeginTx(t.Context(), nil) // holds B between the gate and the rows
	h.must(err)
	defer func() { _ = tx.Rollback() }() // it is usually committed
	_, err = tx.ExecContext(t.Context(), "SELECT 1 FROM waitlist_entries WHERE id = $1 FOR UPDATE", places[0].ID)
	h.must(err)
	var b sync.WaitGroup
	b.Go(func() {
		if _, err := h.line.Step(t.Context()); err != nil {
			t.Error(err)
		}
	})
	testenv.Eventually(t, testenv.Wait, func() bool {
		var waits bool
		h.must(h.db.SQL.QueryRowContext(t.Context(),
			"SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'").Scan(&waits))
		return waits
	}, "B has released what it found, and writes the rows")
	h.must(h.line.OfferTo(t.Context(), places[1], 1))
	h.wantFigures(figures{reserved: 1, holders: 1, messages: 1})
	h.must(tx.Commit())
	b.Wait()
	h.step()
	h.wantFigures(figures{stock: 1, messages: 1})
}
