package drill

import (
	"fmt"
	"strings"
	"time"

	"seckill/internal/gate/audit"
	"seckill/internal/ops/history"
)

// Verdict is the result of a drill.
type Verdict struct {
	SaleID    string         `json:"saleId"`
	OK        bool           `json:"ok"` // every check holds
	Buyers    int            `json:"buyers"`
	Stock     int            `json:"stock"`          // units on sale at the start
	Took      float64        `json:"tookSeconds"`    // from the start of the crowd to its last outcome
	Settled   float64        `json:"settledSeconds"` // from then, or from the last fault, until the audit was clean
	Counts    Counts         `json:"counts"`
	Faults    map[string]int `json:"faults"` // injected faults by kind
	Latencies []Latency      `json:"latencies"`
	Checks    []Check        `json:"checks"`
	Audit     *audit.Report  `json:"audit"`
}

// Check is one invariant.
type Check struct {
	ID      string `json:"id"` // I1 to I6, or audit
	Promise string `json:"promise"`
	OK      bool   `json:"ok"`
	Figures string `json:"figures"` // the figures that were compared
}

// settleLimit is the time that I5 gives the stores after the last fault.
const settleLimit = 30 * time.Second

type evidence struct {
	buyers        []*buyer
	before, after *audit.Report
	own           bool // the sale was made for this drill: there are no other buyers
	settled       time.Duration
	recovery      time.Duration
	history       history.Result
}

// recovery returns the longest time from the acceptance of a task, or from the last fault
// if that was later, to the end of the task.
func recovery(buyers []*buyer, lastFault time.Time) (longest time.Duration) {
	for _, b := range buyers {
		from := b.accepted
		if lastFault.After(from) {
			from = lastFault
		}
		longest = max(longest, b.ended.Sub(from))
	}
	return longest
}

func (e evidence) check() []Check {
	var accepted, orders, failures, open, double int
	distinct := map[string]bool{}
	for _, b := range e.buyers {
		accepted += len(b.tasks)
		for id := range b.orders {
			distinct[id] = true
		}
		orders += len(b.orders)
		if len(b.tasks) > 1 || len(b.orders) > 1 {
			double++
		}
		switch b.result {
		case failed:
			failures++
		case unfinished:
			open++
		case ordered, turnedDown:
		}
	}
	pg, redis, stock := e.after.Postgres, e.after.Redis, e.before.Postgres.Available
	written := pg.Orders - e.before.Postgres.Orders
	seen := len(distinct) == orders && orders == accepted-failures // each buyer reads the order, and no other's
	stored := seen && accepted-failures == written
	if !e.own { // other buyers may have bought as well
		stored = seen && accepted-failures <= written
	}
	unsold := min(stock, len(e.buyers)) - written
	if !e.own { // others may return units
		unsold = 0
	}
	return []Check{
		{"I1", "stock adds up in Postgres and nothing is oversold", pg.Available >= 0 && pg.Held >= 0 && pg.Sold >= 0 &&
			pg.Available+pg.Held+pg.Sold == pg.Total && written <= stock,
			fmt.Sprintf("total %d = available %d + held %d + sold %d; %d of %d units", pg.Total, pg.Available, pg.Held, pg.Sold,
				written, stock)},
		{"I2", "stock and reservations in Redis are the loaded stock", redis.Stock >= 0 && redis.Stock+
			redis.Reserved == pg.Total,
			fmt.Sprintf("stock %d + reserved %d = %d", redis.Stock, redis.Reserved, pg.Total)},
		{"I3", "no buyer has two orders of the item", double == 0, fmt.Sprintf("%d buyers with more than one", double)},
		{"I4", "every accepted task ended once, and every order is stored", open == 0 && stored,
			fmt.Sprintf("accepted %d = written %d + failed %d; buyers without an outcome %d", accepted, written, failures,
				open)},
		{"I5", "consistent within 30 s of the last fault, and nothing unsold that a buyer wanted", e.settled <= settleLimit &&
			e.recovery <= settleLimit && e.after.OK && unsold <= 0,
			fmt.Sprintf("last task ended after %.1f s, stores settled after %.1f s, unsold %d", e.recovery.Seconds(),
				e.settled.Seconds(), max(unsold, 0))},
		{"I6", "the replies of all calls and look-ups have one order", e.history.OK, e.history.String()},
		{"audit", "the stores agree", e.after.OK,
			strings.Join(append([]string{fmt.Sprintf("%d findings", len(e.after.Findings))}, e.after.Findings...), "; ")},
	}
}
