package audit

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"seckill/ent"
	"seckill/ent/paymentevent"
	"seckill/internal/buy/order"
	"seckill/internal/buy/reservation"
	"seckill/internal/buy/sale"
	"seckill/internal/pay/payment"
	"seckill/internal/platform/id"
)

// Kinds of ledger lines that are not caused by an order.
const (
	movementOpen   order.Movement = "OPEN"   // stock put on sale
	movementAdjust order.Movement = "ADJUST" // stock added or removed by an operator; signed
)

// examples limits the ids listed in a finding.
const examples = 3

// findings compares the three stores of every item.
func (s *state) findings() findings {
	f := findings{}
	for _, it := range s.items {
		f.item = it.id.Public()
		f.stockRow(it)
		f.ledger(s, it)
		f.limit([]*itemState{it}, byUser(it.limit), "%d orders exceed the purchase limit of their buyers")
		f.ends(it)
		f.deadLetters(it)
		f.money(it, s.at)
		f.promised(it)
		before := len(f.lines)
		f.stopped(s, it)
		f.inRedis(s, it)
		f.drift += len(f.lines) - before
	}
	if s.limit > 0 {
		f.limit(s.items, byUser(s.limit), "%d orders exceed their buyers' purchase limit of the whole sale")
	}
	f.limit(s.items, byCode, "%d orders exceed the uses of their codes")
	return f
}

// promised reports units that are reserved and do not exist. A rebuild cannot repair
// that: the orders behind them fail, and their units fill the stock up to zero.
func (f *findings) promised(it *itemState) {
	if it.gate.there && it.gate.stock < 0 {
		f.add("%d more units are reserved than there are", -it.gate.stock)
	}
}

// stopped reports a gate whose state is not that of its sale: the operator's act, or the
// end of the sale, did not reach it, or Postgres has lost it.
func (f *findings) stopped(s *state, it *itemState) {
	if !it.gate.there || it.gate.state != it.later.state || it.gate.state == reservation.GateLoading {
		return
	}
	over := s.status == sale.Ended || s.status == sale.Cancelled
	switch {
	case it.gate.state == reservation.GateOpen && (over || s.status == sale.Paused):
		f.add("its gate is open, although its sale is %s", s.status)
	case it.gate.state != reservation.GateOpen && (s.status == sale.Live || s.status == sale.Preheated):
		f.add("its gate is %s, although its sale is %s", it.gate.state, s.status)
	}
}

func (f *findings) inRedis(s *state, it *itemState) {
	if !it.gate.there {
		if s.status.Loaded() {
			f.add("it has no gate in Redis, although its sale is %s", s.status)
		}
		return
	}
	f.gate(it, s.epoch, s.at)
	f.reservations(it)
	f.withoutReservation(it)
}

// findings collects sentences about one item after another.
type findings struct {
	item  string
	lines []string
	notes []string // of skipped checks
	drift int      // how many of the lines are about Redis
	lost  []Lost   // reservations without a counterpart
}

func (f *findings) add(format string, args ...any) {
	f.lines = append(f.lines, f.sentence(format, args...))
}

func (f *findings) sentence(format string, args ...any) string {
	return "Item " + f.item + ": " + fmt.Sprintf(format, args...) + "."
}

// tasks adds a finding about tasks, if there are any.
func (f *findings) tasks(tasks []id.Task, format string) { named(f, id.KindTask, tasks, format) }

// named adds a finding about objects of a kind, with a few of their ids.
func named[T ~[16]byte](f *findings, kind id.Kind, found []T, format string) {
	if len(found) == 0 {
		return
	}
	slices.SortFunc(found, func(a, b T) int { return bytes.Compare(a[:], b[:]) })
	names := make([]string, 0, examples)
	for _, u := range found[:min(examples, len(found))] {
		names = append(names, id.Format(kind, uuid.UUID(u)))
	}
	if len(found) > examples {
		names = append(names, "…")
	}
	f.add(format+" (%s)", len(found), strings.Join(names, ", "))
}

// stockRow checks the row of stock against the orders.
func (f *findings) stockRow(it *itemState) {
	row := it.row
	if row.Available < 0 || row.Held < 0 || row.Sold < 0 || row.Available+row.Held+row.Sold != row.Total {
		f.add("available %d + held %d + sold %d is not the total of %d", row.Available, row.Held, row.Sold, row.Total)
	}
	units := map[order.Status]int{}
	for _, o := range it.orders {
		units[o.status] += o.left()
	}
	if held := units[order.PendingPayment]; held != row.Held {
		f.add("%d units are held by its row, and %d by unpaid orders", row.Held, held)
	}
	if paid := units[order.Paid] + units[order.Refunding]; paid != row.Sold {
		f.add("%d units are sold by its row, and %d by paid orders", row.Sold, paid)
	}
}

// ledger checks the row of stock, and the orders, against the movements.
func (f *findings) ledger(s *state, it *itemState) {
	total := it.row.Total
	if s.unapproved(it) {
		total = 0 // stock enters the ledger with the approval
	}
	units := func(kind order.Movement) int { return it.ledger[kind] }
	for _, c := range []struct {
		name      string
		row, book int
	}{
		{"put on sale", total, units(movementOpen) + units(movementAdjust) - units(order.Withdraw)},
		{"held", it.row.Held, units(order.Hold) - units(order.Sell) - units(order.Release)},
		{"sold", it.row.Sold, units(order.Sell) + units(order.Reacquire) - units(order.Restock) - units(order.Withdraw)},
	} {
		if c.row != c.book {
			f.add("%d units are %s by its row, and %d by the ledger", c.row, c.name, c.book)
		}
	}
	all := 0
	for _, o := range it.orders {
		all += o.quantity
	}
	if hold := units(order.Hold); hold != all {
		f.add("the ledger held %d units for orders, and there are %d orders of %d units", hold, len(it.orders), all)
	}
}

// byUser counts the orders of a user up to a limit.
func byUser(limit int) func(orderRow) (string, int) {
	return func(o orderRow) (string, int) { return o.user.String(), limit }
}

// byCode counts the orders with a code up to its uses.
func byCode(o orderRow) (string, int) { return string(o.code), o.code.Uses() }

// limit checks that the live orders for some items are within limits: of returns whose order one is, "" =
// it is not counted, and the limit.
func (f *findings) limit(items []*itemState, of func(orderRow) (string, int), text string) {
	units := map[string]int{}
	var over []id.Task
	for _, it := range items {
		for task, o := range it.orders {
			who, limit := of(o)
			if who == "" || !o.status.IsLive() {
				continue
			}
			if units[who] += o.left(); units[who] > limit {
				over = append(over, task)
			}
		}
	}
	f.tasks(over, text)
}

// ends checks that each task ended once, and that none was lost.
func (f *findings) ends(it *itemState) {
	var twice []id.Task
	for task := range it.failures {
		if _, ok := it.orders[task]; ok {
			twice = append(twice, task)
		}
	}
	f.tasks(twice, "%d tasks ended both as an order and as a failure")
	var lost []id.Task
	for task, failure := range it.failures {
		if failure.lost {
			lost = append(lost, task)
		}
	}
	f.tasks(lost, "%d accepted tasks were lost by Redis and failed")
}

func (f *findings) deadLetters(it *itemState) {
	var lost []id.Task
	for task := range it.dead {
		_, ordered := it.orders[task]
		_, failed := it.failures[task]
		if !ordered && !failed {
			lost = append(lost, task)
		}
	}
	f.tasks(lost, "%d messages were set aside before their tasks ended")
}

// gate checks the gate's own sums.
func (f *findings) gate(it *itemState, epoch int64, now time.Time) {
	g := it.gate
	if g.state == reservation.GateLoading {
		f.add("its gate is being built")
		return
	}
	if g.epoch != epoch {
		f.add("its gate has epoch %d, and its sale epoch %d", g.epoch, epoch)
	}
	f.history(it)
	if g.reserved < 0 || g.stock+g.reserved != g.total {
		f.add("stock %d + reserved %d in Redis is not the %d units that were loaded", g.stock, g.reserved, g.total)
	}
	off := func(total int) int { return max(total-it.row.Total, it.row.Total-total) }
	// read before and after the row
	if off(g.total) > it.moving && (!it.later.whole() || off(it.later.total) > it.moving) {
		f.add("%d units were loaded into Redis, and %d are on sale", g.total, it.row.Total)
	}
	if g.malformed > 0 {
		f.add("%d reservations in Redis cannot be read", g.malformed)
		return
	}
	for _, look := range []gate{g, it.later} {
		if !look.whole() {
			continue
		}
		if held := look.held(); held != look.reserved {
			f.add("%d units are reserved in Redis, and its reservations have %d", look.reserved, held)
		}
		f.shares(look, now)
		return
	}
	// Each reservation is still checked separately.
	f.notes = append(f.notes, f.sentence("it changed while its reservations were read, so that their sum was not checked"))
}

// shares checks the shares of access rules: each counts what its buyers have, and what others cannot
// take is there.
func (f *findings) shares(g gate, now time.Time) {
	kept := 0
	for _, s := range g.shares {
		taken := 0
		for _, h := range g.reservations {
			if h.persons.Share == s.Key {
				taken += h.quantity
			}
		}
		if taken != s.Taken {
			f.add("share %s counts %d units of its buyers, and their reservations have %d", s.Key, s.Taken, taken)
		}
		kept += s.Left(now)
	}
	if kept > max(0, g.stock) {
		f.add("shares keep %d units, and %d are in stock", kept, g.stock)
	}
}

// history checks that the gate is of the present Redis, with no older data than the
// schedulers have seen. The revision was read after that of the row.
func (f *findings) history(it *itemState) {
	if it.gate.stale && it.later.stale {
		f.add("its gate was built before the last restart or failover of Redis")
	}
	if it.later.whole() && it.later.revision < it.row.GateRevision {
		f.add("its gate is older than one before: its stock has revision %d, and had %d", it.later.revision,
			it.row.GateRevision)
	}
}

// reservations checks that each reservation has a live order, a message that will become
// one, an offer of the waitlist, or an end whose units are being released. A reservation
// missing in the second reading was released in between.
func (f *findings) reservations(it *itemState) {
	byReservation := make(map[id.Task]orderRow, len(it.orders))
	for _, o := range it.orders {
		byReservation[o.reservation] = o
	}
	var (
		lost, stale, different []id.Task
	)
	for user, h := range it.gate.reservations {
		if it.later.reservations[user].task != h.task {
			continue
		}
		o, ordered := byReservation[h.task]
		fail, failed := it.failures[h.task]
		_, queued := it.queued[h.task]
		_, dead := it.dead[h.task]
		place, placed := it.places[id.Waitlist(h.task)]
		unsettled, late := it.late[h.task]
		switch {
		case unsettled: // the transaction that pays the order may be open
		case late:
			stale = append(stale, h.task)
		case placed && (place.Status.IsOpen() || place.ReturnDue):
			if place.User != user || place.Quantity != h.quantity {
				different = append(different, h.task)
			}
		case placed:
			stale = append(stale, h.task)
		case ordered && o.status.IsLive():
			if o.user != user || !o.holds(h.quantity, it.later.reservations[user].quantity) {
				different = append(different, h.task)
			}
		case ordered && o.returnDue, failed && !fail.released:
		case ordered, failed:
			stale = append(stale, h.task)
		case !queued && !dead: // a dead letter is a separate finding
			lost = append(lost, h.task)
			if id.IsOf(h.task, user) { // else it was of an offer or a late payment that Postgres has lost
				f.lost = append(f.lost, Lost{Item: it.id, User: user, Task: h.task, Persons: h.persons, Quantity: h.quantity})
			}
		}
	}
	f.tasks(lost, "%d reservations in Redis have neither an order nor a message")
	f.tasks(stale, "%d reservations in Redis belong to tasks that have ended")
	f.tasks(different, "%d reservations in Redis differ from their orders in user or quantity")
}

// holds reports whether one of two readings of a reservation has the units of the order. Units
// of a partial refund may still be reserved.
func (o orderRow) holds(readings ...int) bool {
	return slices.ContainsFunc(readings, func(units int) bool {
		return units == o.left() || o.returnDue && units > o.left() && units <= o.quantity
	})
}

// withoutReservation checks that each live order, message and offer has a reservation in
// the gate.
func (f *findings) withoutReservation(it *itemState) {
	holding := make(map[id.Task]bool, len(it.gate.reservations))
	for _, look := range []gate{it.gate, it.later} {
		for _, h := range look.reservations {
			holding[h.task] = true
		}
	}
	var (
		orders, messages []id.Task
	)
	for task, o := range it.orders {
		if o.status.IsLive() && !holding[o.reservation] {
			orders = append(orders, task)
		}
	}
	for task := range it.queued {
		_, ordered := it.orders[task]
		_, failed := it.failures[task]
		if !ordered && !failed && !holding[task] {
			messages = append(messages, task)
		}
	}
	f.tasks(orders, "%d live orders have no reservation in Redis")
	f.tasks(messages, "%d messages wait for units without a reservation in Redis")
	f.offers(it, holding)
}

// offers checks that each offer has its units, under its own id or that of the attempt
// that has just redeemed it.
func (f *findings) offers(it *itemState, holding map[id.Task]bool) {
	var empty []id.Waitlist
	for _, e := range it.offers() {
		_, now := it.gate.reservations[e.User]
		_, then := it.later.reservations[e.User]
		if !holding[id.Task(e.ID)] && !now && !then {
			empty = append(empty, e.ID)
		}
	}
	f.tasks(id.As[id.Task](empty), "%d offers of the waitlist have no units in Redis")
}

// readLate finds the reservations of expired orders that are being paid late. The units
// are reserved in Redis before the transaction that pays the order, so that no row has
// the name of the reservation yet. It is unsettled while an event waits for that
// transaction.
func readLate(ctx context.Context, tx *ent.Tx, it *itemState) (map[id.Task]bool, error) {
	late := map[id.Task]bool{} // by name
	paying := map[id.Task]id.Task{}
	for task, o := range it.orders {
		h, reserved := it.gate.reservations[o.user]
		if o.status == order.Expired && reserved && h.task == payment.LateReservation(id.Order(task)) {
			late[h.task], paying[task] = false, h.task
		}
	}
	if len(late) == 0 {
		return late, nil
	}
	of := map[id.Payment]id.Task{} // payment → name
	for p, row := range it.payments {
		if name, ok := paying[id.Task(row.order)]; ok {
			of[p] = name
		}
	}
	for last := (id.Held{}); ; {
		rows, err := tx.PaymentEvent.Query().Where(paymentevent.StateEQ(paymentevent.StateRECEIVED), paymentevent.IDGT(last)).
			Order(paymentevent.ByID()).Limit(page).All(ctx)
		if err != nil {
			return nil, fmt.Errorf("read payment events: %w", err)
		}
		for _, row := range rows {
			if name, ok := of[row.PaymentID]; ok {
				late[name] = true
			}
			last = row.ID
		}
		if len(rows) < page {
			return late, nil
		}
	}
}
