package drill

import (
	"maps"
	"slices"
	"testing"
	"time"

	"seckill/internal/gate/audit"
	"seckill/internal/ops/history"
)

// good returns the evidence of a drill without faults: 2 units, 3 buyers.
func good() evidence {
	winner := func(n string) *buyer {
		return &buyer{result: ordered, tasks: map[string]bool{"t" + n: true}, orders: map[string]bool{"o" + n: true}}
	}
	return evidence{
		own: true, settled: time.Second, history: history.Result{OK: true},
		buyers: []*buyer{winner("1"), winner("2"), {result: turnedDown, reason: "SOLD_OUT"}},
		before: &audit.Report{OK: true, Postgres: audit.Record{Total: 2, Available: 2}, Redis: audit.Gate{Stock: 2}},
		after:  &audit.Report{OK: true, Postgres: audit.Record{Total: 2, Held: 2, Orders: 2}, Redis: audit.Gate{Reserved: 2}},
	}
}

func TestEachInvariantThatBreaksFailsItsCheck(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(*evidence)
		fails []string
	}{
		"nothing":                {func(*evidence) {}, nil},
		"oversold in Postgres":   {func(e *evidence) { e.after.Postgres.Available, e.after.Postgres.Held = -1, 3 }, []string{"I1"}},
		"more orders than units": {func(e *evidence) { e.before.Postgres.Available, e.before.Postgres.Total = 1, 1 }, []string{"I1"}},
		"a unit lost in Redis":   {func(e *evidence) { e.after.Redis.Reserved = 1 }, []string{"I2"}},
		"two orders of one buyer": {func(e *evidence) {
			e.buyers[0].orders["o3"] = true
			e.buyers[0].tasks["t3"] = true
			e.after.Postgres.Orders = 3
			e.before.Postgres.Available = 3
		}, []string{"I3"}},
		"an order lost":            {func(e *evidence) { e.after.Postgres.Orders = 1 }, []string{"I4", "I5"}},
		"one order for two buyers": {func(e *evidence) { e.buyers[1].orders = map[string]bool{"o1": true} }, []string{"I4"}},
		"replies without an order": {func(e *evidence) { e.history.OK = false }, []string{"I6"}},
		"a task without an end":    {func(e *evidence) { e.buyers[1].result = unfinished }, []string{"I4"}},
		"slow to settle":           {func(e *evidence) { e.settled = time.Minute }, []string{"I5"}},
		"slow to recover":          {func(e *evidence) { e.recovery = time.Minute }, []string{"I5"}},
		"findings":                 {func(e *evidence) { e.after.OK, e.after.Findings = false, []string{"x"} }, []string{"I5", "audit"}},
		"a unit unsold": {func(e *evidence) {
			e.buyers[1] = &buyer{result: turnedDown}
			e.after.Postgres.Held, e.after.Postgres.Available, e.after.Postgres.Orders = 1, 1, 1
		}, []string{"I5"}},
	} {
		e := good()
		c.spoil(&e)
		failed := map[string]bool{}
		for _, check := range e.check() {
			if !check.OK {
				failed[check.ID] = true
			}
		}
		if got := slices.Sorted(maps.Keys(failed)); !slices.Equal(got, c.fails) {
			t.Errorf("%s: %v fail, want %v", name, got, c.fails)
		}
	}
}
