// Package audit checks the invariants of a sale: that Postgres, the gate in Redis and the
// messages between them are consistent.
//
//	reservations in Redis = live orders in Postgres
//	                      + messages whose order is not written yet
//	                      + failed tasks whose units are being released
//	                      + offers of the waitlist
//
// It only reads. It owns no tables or keys; it uses those that packages order and
// reservation own.
package audit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"seckill/internal/buy/reservation"
	"seckill/internal/identity/person"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
	"seckill/internal/platform/periodic"
	"seckill/internal/platform/postgres"
	"seckill/internal/platform/redisconn"
)

// The three stores cannot be read at one instant. While a sale runs, a reading may see an
// order between two of them; so an inconsistent reading is repeated, and only findings
// that remain are reported.
const (
	readings     = 5
	defaultPause = 300 * time.Millisecond
)

// ErrUnknownSale reports that no sale has the id.
var ErrUnknownSale = errors.New("no such sale")

// Auditor checks sales.
type Auditor struct {
	DB    *postgres.DB
	Redis *redisconn.Conn
	Keys  reservation.Keys
	Clock clock.Clock   // by which payments are overdue
	Pause time.Duration // between inconsistent readings; 0 = 300 ms
}

// Report is the result for one sale. All figures are sums over its items.
type Report struct {
	SaleID   string   `json:"saleId"`
	OK       bool     `json:"ok"`
	Findings []string `json:"findings"`        // one sentence each; empty if all is consistent
	Notes    []string `json:"notes,omitempty"` // one sentence each about checks that could not be made; not findings
	Postgres Record   `json:"postgres"`
	Redis    Gate     `json:"redis"`
	Stream   Queue    `json:"stream"`
	Money    Money    `json:"-"`

	Epoch int64  `json:"-"` // of the gates, from Postgres
	Drift int    `json:"-"` // number of findings about Redis: a rebuild from Postgres could repair them
	Lost  []Lost `json:"-"` // reservations of tasks in Redis without an order, a failure, or a message
}

// Lost is a reservation of a task whose message is lost.
type Lost struct {
	Item     id.Item
	User     id.User
	Task     id.Task
	Persons  person.Keys
	Quantity int
}

// Record holds the figures of Postgres, in units; Orders counts the live ones. Offers are
// available units that are reserved for buyers of the waitlist.
type Record struct {
	Total     int `json:"total"`
	Available int `json:"available"`
	Held      int `json:"held"`
	Sold      int `json:"sold"`
	Orders    int `json:"orders"`
	Offers    int `json:"offers"`
}

// Gate holds the figures of Redis, in units.
type Gate struct {
	Stock    int `json:"stock"`
	Reserved int `json:"reserved"`
}

// Queue counts the sale's messages that are not acknowledged.
type Queue struct {
	Unread  int `json:"unread"`  // not delivered to a worker
	Pending int `json:"pending"` // delivered and not acknowledged
	Dead    int `json:"dead"`    // dead letters
}

// Sale checks one sale. The error reports what could not be read; an inconsistency is a
// finding.
func (a *Auditor) Sale(ctx context.Context, sale id.Sale) (*Report, error) {
	var report *Report
	for try := range readings {
		if try > 0 {
			if err := a.wait(ctx); err != nil {
				return nil, err
			}
		}
		state, err := a.read(ctx, sale)
		if err != nil {
			return nil, err
		}
		report = state.report()
		if report.OK {
			break
		}
	}
	return report, nil
}

// read takes one reading: the gates, the messages, Postgres, the gates again. If the
// message of a reservation in the first reading of the gates was processed in between,
// its order exists by then; an order or message that is newer has its reservation in the
// second reading.
func (a *Auditor) read(ctx context.Context, sale id.Sale) (*state, error) {
	rows, err := a.readSale(ctx, sale)
	if err != nil {
		return nil, err
	}
	s := &state{at: a.Clock.Now()}
	for _, row := range rows {
		gate, err := a.readGate(ctx, sale, row.ID)
		if err != nil {
			return nil, err
		}
		s.items = append(s.items, &itemState{id: row.ID, gate: gate})
	}
	if err := a.readQueue(ctx, sale, s); err != nil {
		return nil, err
	}
	if err := a.readRecord(ctx, sale, s); err != nil {
		return nil, err
	}
	for _, it := range s.items {
		if it.later, err = a.readGate(ctx, sale, it.id); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (a *Auditor) wait(ctx context.Context) error {
	pause := a.Pause
	if pause == 0 {
		pause = defaultPause
	}
	if err := periodic.Sleep(ctx, pause); err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	return nil
}

// report compares the stores and sums up.
func (s *state) report() *Report {
	f := s.findings()
	r := &Report{SaleID: s.sale.Public(), Findings: f.lines, Notes: f.notes, Stream: s.queue, Epoch: s.epoch,
		Drift: f.drift, Lost: f.lost}
	if r.OK = len(r.Findings) == 0; r.OK {
		r.Findings = []string{} // an empty list in JSON, not null
	}
	for _, it := range s.items {
		r.Postgres.Total += it.row.Total
		r.Postgres.Available += it.row.Available
		r.Postgres.Held += it.row.Held
		r.Postgres.Sold += it.row.Sold
		r.Postgres.Orders += it.liveOrders()
		r.Money.sum(it)
		for _, e := range it.offers() {
			r.Postgres.Offers += e.Quantity
		}
		r.Redis.Stock += it.gate.stock
		r.Redis.Reserved += it.gate.reserved
	}
	return r
}
