package report

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"entgo.io/ent/dialect"

	"seckill/ent"
	entorder "seckill/ent/order"
)

// Step is a step of the funnel. People who are lost at it reached the step before.
type Step string

// Steps of the funnel.
const (
	StepOrdered Step = "ORDERED" // got a unit
	StepPaid    Step = "PAID"
	StepKept    Step = "KEPT" // was not refunded
)

// Reasons of losses that are not refusals.
const (
	lossWaiting   = "WAITED"
	lossFailed    = "ORDER_FAILED"
	lossUnpaid    = "UNPAID"
	lossExpired   = "EXPIRED"
	lossCancelled = "CANCELLED"
	lossRefunded  = "REFUNDED"
)

// People counts users, each of them once however often they called. Tried are those who were
// refused, waited or have an order.
type People struct {
	Tried   int    `json:"tried"`
	Ordered int    `json:"ordered"`
	Paid    int    `json:"paid"`
	Kept    int    `json:"kept"`
	Lost    []Loss `json:"lost"` // by step, most people first
	// Complete is false once refusals of the sale may have been deleted: Tried and the losses
	// before the order are too low then.
	Complete bool `json:"complete"`
}

// Loss is the people who were lost at a step for a reason: the code of their last refusal, or
// what became of their orders.
type Loss struct {
	Step   Step   `json:"step"`
	Reason string `json:"reason"`
	People int    `json:"people"`
}

// lost returns the people who were lost for one of the reasons.
func (p *People) lost(reasons ...string) (n int) {
	for _, l := range p.Lost {
		if slices.Contains(reasons, l.Reason) {
			n += l.People
		}
	}
	return n
}

// standing is how far the orders of a user came; of several orders, the best one counts.
type standing int

const (
	cancelledStanding standing = iota + 1
	expiredStanding
	unpaidStanding
	refundedStanding
	keptStanding
)

func standingOf(row *ent.Order) standing {
	switch {
	case row.Status == entorder.StatusPAID:
		return keptStanding
	case row.PaidAt != nil:
		return refundedStanding
	case row.Status == entorder.StatusPENDING_PAYMENT:
		return unpaidStanding
	case row.Status == entorder.StatusEXPIRED:
		return expiredStanding
	}
	return cancelledStanding
}

// addPeople adds the funnel; complete reports whether no refusal of the sale was deleted yet.
func (r *Report) addPeople(b *book, complete bool) {
	counts := map[standing]int{}
	for _, s := range b.best {
		counts[s]++
	}
	p := People{
		Ordered: len(b.best), Paid: counts[keptStanding] + counts[refundedStanding], Kept: counts[keptStanding],
		Lost: []Loss{}, Complete: complete,
	}
	p.Tried = p.Ordered
	for reason, n := range b.last {
		p.Tried += n
		p.Lost = append(p.Lost, Loss{StepOrdered, reason, n})
	}
	for _, l := range []Loss{{StepPaid, lossUnpaid, counts[unpaidStanding]}, {StepPaid, lossExpired, counts[expiredStanding]},
		{StepPaid, lossCancelled, counts[cancelledStanding]}, {StepKept, lossRefunded, counts[refundedStanding]}} {
		if l.People > 0 {
			p.Lost = append(p.Lost, l)
		}
	}
	order := []Step{StepOrdered, StepPaid, StepKept}
	slices.SortFunc(p.Lost, func(a, b Loss) int {
		return cmp.Or(slices.Index(order, a.Step)-slices.Index(order, b.Step), b.People-a.People,
			cmp.Compare(a.Reason, b.Reason))
	})
	r.People = p
}

// lastReasons counts the users of a sale without an order by why they have none: a failed order
// task, else the last refusal, else a place in a waitlist or draw that led to no order.
const lastReasons = `
SELECT reason, COUNT(*) FROM (
  SELECT reason, ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY rank, at DESC, reason) AS n FROM (
    SELECT user_id, 'ORDER_FAILED' AS reason, created_at AS at, 0 AS rank FROM order_failures WHERE sale_id = $1
    UNION ALL SELECT user_id, code, last_at, 1 FROM refused_attempts WHERE sale_id = $1
    UNION ALL SELECT user_id, 'WAITED', created_at, 2 FROM waitlist_entries WHERE sale_id = $1
  ) AS events
  WHERE NOT EXISTS (SELECT 1 FROM orders WHERE orders.sale_id = $1 AND orders.user_id = events.user_id)
) AS latest WHERE n = 1 GROUP BY reason`

// readLast reads lastReasons.
func (b *book) readLast(ctx context.Context, tx *ent.Tx, of string) error {
	query := lastReasons
	if of == dialect.SQLite {
		query = strings.ReplaceAll(query, "$1", "?1")
	}
	rows, err := tx.QueryContext(ctx, query, b.sale.ID)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // rows.Err has its error
	b.last = map[string]int{}
	for rows.Next() {
		var (
			reason string
			people int
		)
		if err := rows.Scan(&reason, &people); err != nil {
			return err
		}
		b.last[reason] = people
	}
	return rows.Err()
}
