package order_test

import (
	"maps"
	"testing"
	"time"

	"seckill/internal/buy/order"
	"seckill/internal/identity/person"
)

// No call reads the database while there is a copy, and none gets a copy older than two seconds.
func TestWhatABuyerSharesIsReadFromACopyOfTwoSeconds(t *testing.T) {
	onBoth(t, stock{units: 20, limit: 2}, func(t *testing.T, e *env) {
		write := func() order.Request {
			t.Helper()
			r := e.from("198.51.100.0/24", "")
			for _, done := range e.writer(nil).Write(t.Context(), r) {
				e.must(done.Err)
			}
			return r
		}
		run := func(statement string) {
			t.Helper()
			_, err := e.db.SQL.ExecContext(t.Context(), statement)
			e.must(err)
		}
		first := write()
		write()
		run("UPDATE orders SET payment_key = 'pAAAABBBBCCCCDDDD'")
		s := order.NewSharing(e.store())
		want := func(network int, what string) {
			t.Helper()
			got := s.Orders(t.Context(), e.sale, first.User, []string{first.Origin.Network.Label()})
			if wanted := map[person.Kind]int{person.Network: network, person.Payment: 2}; !maps.Equal(got, wanted) {
				t.Errorf("%s: %v, want %v", what, got, wanted)
			}
		}
		want(2, "two orders")
		write()
		want(2, "from the copy")
		e.clock.Advance(2 * time.Second)
		want(3, "after two seconds")
		run("ALTER TABLE orders RENAME TO away")
		want(3, "without the table")
		e.clock.Advance(2 * time.Second)
		unknown := func(what string) {
			t.Helper()
			if got := s.Orders(t.Context(), e.sale, first.User, nil); got != nil {
				t.Errorf("%s: %v", what, got)
			}
		}
		unknown("a table that cannot be read")
		run("ALTER TABLE away RENAME TO orders")
		unknown("asked again at once")
		e.clock.Advance(2 * time.Second)
		want(3, "once it can be read")
	})
}
