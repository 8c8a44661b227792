package payment_test

import (
	"database/sql"
	"strconv"
	"strings"
	"testing"

	"seckill/internal/buy/order"
	"seckill/internal/platform/id"
)

// wrong counts violated invariants in one statement: unit counts, users with two live
// orders, money recorded twice, orders that ended twice.
const wrong = `
SELECT (SELECT count(*) FROM sale_items i WHERE {i} AND (available + held + sold <> total OR available < 0
     OR held <> (SELECT COALESCE(sum(quantity), 0) FROM orders o WHERE o.item_id = i.id AND status = 'PENDING_PAYMENT')
     OR sold <> (SELECT COALESCE(sum(quantity - refunded_quantity), 0) FROM orders o WHERE o.item_id = i.id AND status IN ('PAID', 'REFUNDING'))))
     + (SELECT count(*) FROM orders o JOIN order_failures f ON f.id = o.id WHERE {o})
     + (SELECT count(*) FROM (SELECT 1 FROM orders o WHERE {o} AND status IN ('PENDING_PAYMENT', 'PAID', 'REFUNDING')
        GROUP BY item_id, user_id HAVING count(*) > 1) twice)
     + (SELECT count(*) FROM orders o WHERE {o} AND status IN ('PAID', 'REFUNDING')
        AND (SELECT count(*) FROM payments p WHERE p.order_id = o.id AND p.status = 'SUCCEEDED'
             AND NOT EXISTS (SELECT 1 FROM refunds r WHERE r.payment_id = p.id AND r."transaction" = '' AND r.cause IN ('LATE', 'DOUBLE'))) <> 1)
     + (SELECT count(*) FROM payments p JOIN orders o ON o.id = p.order_id WHERE {o} AND p.status = 'REFUNDED'
        AND (SELECT COALESCE(sum(r.amount_minor), 0) FROM refunds r WHERE r.payment_id = p.id AND r.status = 'SUCCEEDED') <> p.amount_minor)
     + (SELECT count(*) FROM orders o WHERE {o} AND refunded_quantity <>
        (SELECT COALESCE(sum(r.quantity), 0) FROM refunds r WHERE r.order_id = o.id AND r.applied))
     + (SELECT count(*) FROM (SELECT e.order_id FROM order_events e JOIN orders o ON o.id = e.order_id
        WHERE {o} AND (e.code IN ('PAID', 'LAPSED') OR e.status = 'CANCELLED' AND e.code IN ('CANCELLED', 'VOIDED'))
        GROUP BY e.order_id HAVING count(*) > 1) ended_twice)`

// unfinished counts work that must be complete once nothing runs: the bank's ledger
// against ours, to the cent.
const unfinished = `
SELECT (SELECT count(*) FROM sandbox_charges c JOIN payments p ON p.id = c.merchant_payment JOIN orders o ON o.id = p.order_id
        WHERE {o} AND c.status = 'PAID' AND c.amount_minor - c.refunded_minor <>
          CASE WHEN p.status = 'SUCCEEDED' AND o.status IN ('PAID', 'REFUNDING') THEN p.amount_minor - o.refunded_quantity * o.unit_price_minor ELSE 0 END)
     + (SELECT count(*) FROM payments p JOIN sandbox_charges c ON c.merchant_payment = p.id JOIN orders o ON o.id = p.order_id
        WHERE {o} AND (c.status = 'PAID') <> (p.status IN ('SUCCEEDED', 'REFUNDED')))
     + (SELECT count(*) FROM payment_events e LEFT JOIN payments p ON p.id = e.payment_id LEFT JOIN orders o ON o.id = p.order_id
        WHERE {o} AND e.state <> 'HANDLED')
     + (SELECT count(*) FROM refunds r JOIN orders o ON o.id = r.order_id WHERE {o} AND r.status = 'SENDING')
     + (SELECT count(*) FROM orders o WHERE {o} AND (o.status = 'PENDING_PAYMENT' OR o.return_due))`

// everything selects all sales of a shop; any other id selects one sale.
var everything = id.Sale{}

// booksOf opens a connection for counts without the product's timeouts, which are too
// short for reading all orders on a busy machine.
func booksOf(t testing.TB, url string) *sql.DB {
	t.Helper()
	books, err := sql.Open("postgres", url)
	if err != nil {
		t.Fatal(err)
	}
	books.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = books.Close() })
	return books
}

// count runs a query for a sale, in which {o} and {i} stand for the conditions that an
// order or an item belongs to the sale.
func (s *shop) count(query string, sale id.Sale) (n int) {
	s.t.Helper()
	_, err := patiently(func() (struct{}, error) {
		return struct{}{}, s.books.QueryRowContext(s.t.Context(), about(query, sale)).Scan(&n)
	})
	s.must(err)
	return n
}

func about(query string, sale id.Sale) string {
	if sale == everything {
		return strings.NewReplacer("{o}", "TRUE", "{i}", "TRUE").Replace(query)
	}
	return strings.NewReplacer("{o}", "o.sale_id = '"+sale.String()+"'", "{i}", "i.sale_id = '"+sale.String()+"'").Replace(query)
}

// tally runs a query that returns names and numbers for the sale.
func (s *shop) tally(query string, into map[string]int) {
	s.t.Helper()
	rows, err := s.books.QueryContext(s.t.Context(), about(query, s.sale))
	s.must(err)
	defer rows.Close()
	for rows.Next() {
		var name string
		var n int
		s.must(rows.Scan(&name, &n))
		into[name] += n
	}
	s.must(rows.Err())
}

// sound fails the test when an invariant is violated.
func (s *shop) sound() {
	s.t.Helper()
	if n := s.count(wrong, s.sale); n != 0 {
		s.t.Fatalf("%d things are wrong: %+v", n, s.figures())
	}
}

// quietened fails the test when work is incomplete, or when the gate and Postgres
// differ.
func (s *shop) quietened() {
	s.t.Helper()
	s.sound()
	if n := s.count(unfinished, s.sale); n != 0 {
		s.t.Fatalf("%d things did not come to their end", n)
	}
	live, err := s.orders.Count(s.t.Context(), order.Filter{Sale: s.sale, Statuses: order.Live()})
	s.must(err)
	f := s.figures()
	kept := f.sold + f.held - f.reserved // units that were refunded without a return to stock
	if f.available != f.stock || kept != 0 || f.holders < live {
		s.t.Fatalf("the gate and the record differ: %+v, %d live orders", f, live)
	}
}

// allQuiet is quietened for all sales of the shop, to detect changes after a sale was
// checked.
func (s *shop) allQuiet() {
	s.t.Helper()
	s.quietened()
	if bad, open := s.count(wrong, everything), s.count(unfinished, everything); bad+open != 0 {
		s.t.Fatalf("in the whole shop %d things are wrong, %d did not come to their end", bad, open)
	}
}

// figures are the units of the item in Postgres and in the gate.
type figures struct{ available, held, sold, stock, reserved, holders int }

func (s *shop) figures() figures {
	s.t.Helper()
	row, err := s.db.Ent.SaleItem.Get(s.t.Context(), s.item)
	s.must(err)
	shard := id.ShardOf(s.sale)
	gate, err := s.conn.Cmd.HMGet(s.t.Context(), s.keys.Item(shard, s.item), "stock", "reserved").Result()
	s.must(err)
	holders, err := s.conn.Cmd.HLen(s.t.Context(), s.keys.Reservations(shard, s.item)).Result()
	s.must(err)
	return figures{row.Available, row.Held, row.Sold, number(gate[0]), number(gate[1]), int(holders)}
}

func number(v any) int {
	text, _ := v.(string)
	n, _ := strconv.Atoi(text)
	return n
}

func (s *shop) wantFigures(want figures) {
	s.t.Helper()
	if got := s.figures(); got != want {
		s.t.Errorf("stock %+v, want %+v", got, want)
	}
}
