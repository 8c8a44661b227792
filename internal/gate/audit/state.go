package audit

import (
	"time"

	"seckill/ent"
	"seckill/internal/buy/order"
	"seckill/internal/buy/reservation"
	"seckill/internal/buy/sale"
	"seckill/internal/buy/waitlist"
	"seckill/internal/identity/person"
	"seckill/internal/platform/id"
)

// state is one reading of a sale.
type state struct {
	at     time.Time
	sale   id.Sale
	status sale.Status
	epoch  int64 // of the gate, from Postgres
	limit  int   // purchase limit per user over all items; 0 = none
	items  []*itemState
	queue  Queue
}

type itemState struct {
	id       id.Item
	row      *ent.SaleItem
	limit    int                    // purchase limit per user
	ledger   map[order.Movement]int // units
	orders   map[id.Task]orderRow   // by task, every status
	moving   int                    // units that operators are moving between Postgres and Redis
	failures map[id.Task]failure    // by task
	payments map[id.Payment]paymentRow
	// reservations for late payments, by name: whether the payment is still to be settled
	late   map[id.Task]bool
	places map[id.Waitlist]*waitlist.Entry // waitlist entries that are offers, or that have units reserved in Redis
	gate   gate                            // read before everything else
	later  gate                            // read after everything else
	queued map[id.Task]int                 // task → units, unread or pending
	dead   map[id.Task]int                 // task → units, dead letters
}

type orderRow struct {
	user        id.User
	quantity    int
	refunded    int // units whose money went back
	status      order.Status
	reservation id.Task // id of the reservation in Redis
	returnDue   bool    // whether the units are still to be released in Redis
	code        person.Key
}

// left returns the units of the order that were not refunded.
func (o orderRow) left() int { return o.quantity - o.refunded }

type failure struct {
	quantity int
	released bool
	lost     bool // it was accepted, and Redis lost it
}

// gate is one reading of an item in Redis.
type gate struct {
	there        bool
	state        string
	epoch        int64
	revision     int64 // of the stock; 0 while it is being built
	stale        bool  // it was built before the last restart or failover of Redis
	total        int
	stock        int
	reserved     int
	reservations map[id.User]reservedUnits // by user
	malformed    int                       // reservations that cannot be parsed
	shares       []reservation.Share       // of access rules
	torn         bool                      // the item changed while its reservations were read: they do not match its sums
}

// whole reports whether the gate and its reservations were read consistently.
func (g *gate) whole() bool { return g.there && !g.torn && g.state != reservation.GateLoading }

// held returns the total units of the reservations.
func (g *gate) held() int {
	units := 0
	for _, h := range g.reservations {
		units += h.quantity
	}
	return units
}

type reservedUnits struct {
	task     id.Task
	persons  person.Keys
	quantity int
}

// item returns the reading of an item, nil if it is not part of the sale.
func (s *state) item(itemID id.Item) *itemState {
	for _, it := range s.items {
		if it.id == itemID {
			return it
		}
	}
	return nil
}

// unapproved reports whether the sale has no ledger lines because it was not approved. A
// cancelled sale that had a gate was approved.
func (s *state) unapproved(it *itemState) bool {
	if len(it.ledger) > 0 {
		return false
	}
	switch s.status {
	case sale.Draft, sale.PendingApproval, sale.Rejected:
		return true
	case sale.Cancelled:
		return s.epoch == 0
	case sale.Approved, sale.Scheduled, sale.Preheated, sale.Live, sale.Paused, sale.Ended:
		return false
	}
	return false
}

func (it *itemState) offers() []*waitlist.Entry {
	var out []*waitlist.Entry
	for _, e := range it.places {
		if e.Status == waitlist.Offered {
			out = append(out, e)
		}
	}
	return out
}

func (it *itemState) liveOrders() int {
	n := 0
	for _, o := range it.orders {
		if o.status.IsLive() {
			n++
		}
	}
	return n
}
