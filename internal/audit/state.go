package audit

import (
	"github.com/google/uuid"

	"seckill/ent"
	"seckill/internal/order"
	"seckill/internal/reservation"
	"seckill/internal/sale"
	"seckill/internal/waitlist"
)

// state is one reading of a sale.
type state struct {
	sale   uuid.UUID
	status sale.Status
	epoch  int64 // of the gate, as Postgres has it
	limit  int   // most units that one person may hold of one item
	items  []*itemState
	queue  Queue
}

// itemState is one reading of an item.
type itemState struct {
	id       uuid.UUID
	row      *ent.SaleItem
	ledger   map[order.Movement]int // units
	orders   map[uuid.UUID]orderRow // by task, every status
	moving   int                    // units that operators are moving between Postgres and Redis
	failures map[uuid.UUID]failure  // by task
	payments map[uuid.UUID]paymentRow
	places   map[uuid.UUID]*waitlist.Entry // offers of the waitlist, and places that Redis holds units for
	gate     gate                          // before all else was read
	later    gate                          // after
	queued   map[uuid.UUID]int             // task → units, unread or pending
	dead     map[uuid.UUID]int             // task → units, set aside
}

type orderRow struct {
	user      uuid.UUID
	quantity  int
	status    order.Status
	claim     uuid.UUID // under which name Redis holds the units
	returnDue bool      // whether Redis is still to be told that they came back
}

type failure struct {
	quantity int
	released bool
}

// gate is an item in Redis.
type gate struct {
	there     bool
	state     string
	epoch     int64
	total     int
	stock     int
	reserved  int
	holders   map[uuid.UUID]holder // by user
	malformed int                  // holders that cannot be read
	torn      bool                 // the item changed while its holders were read: they do not belong to its sums
}

// whole tells whether the gate and its holders were read as they stood together.
func (g *gate) whole() bool { return g.there && !g.torn && g.state != reservation.GateLoading }

// held is how many units the holders have.
func (g *gate) held() int {
	units := 0
	for _, h := range g.holders {
		units += h.quantity
	}
	return units
}

type holder struct {
	task     uuid.UUID
	quantity int
}

// item returns the reading of an item, nil when it is not the sale's.
func (s *state) item(itemID uuid.UUID) *itemState {
	for _, it := range s.items {
		if it.id == itemID {
			return it
		}
	}
	return nil
}

// unapproved tells whether the sale has no lines in the ledger because nobody
// approved it. Of those that were cancelled, one that had a gate was approved.
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

// offers are the places that have an offer.
func (it *itemState) offers() []*waitlist.Entry {
	var out []*waitlist.Entry
	for _, e := range it.places {
		if e.Status == waitlist.Offered {
			out = append(out, e)
		}
	}
	return out
}

// kept is how many units stay sold although their orders were refunded.
func (it *itemState) kept() int {
	units := -it.ledger[order.Restock]
	for _, o := range it.orders {
		if o.status == order.Refunded {
			units += o.quantity
		}
	}
	return units
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
