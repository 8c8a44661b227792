package system_test

import (
	"strconv"
	"testing"

	"seckill/internal/ops/seed"
	"seckill/internal/testenv"
)

// What the loops of a resting shop ask each second does not read rows in proportion to the
// orders. A rush writes thousands of them before Postgres has statistics of them.
func TestLoopsWithoutWorkDoNotReadEveryOrder(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	made := s.seed(seed.Input{Users: 1, Stock: 2})
	s.bought(made.Users[0].AccessToken, made)
	db := s.database().SQL
	testenv.Eventually(t, testenv.Wait, func() (there bool) {
		err := db.QueryRowContext(t.Context(), "SELECT EXISTS (SELECT FROM orders)").Scan(&there)
		return err == nil && there
	}, "the order")
	const rows = 20_000
	for _, statement := range []string{
		"ANALYZE", // the statistics are those before the rush
		`INSERT INTO users SELECT (jsonb_populate_record(u, jsonb_build_object('id', gen_random_uuid(), 'account', 'rush-' || n))).*
			FROM users u, generate_series(1, ` + strconv.Itoa(rows) + `) n WHERE u.id IN (SELECT user_id FROM orders)`,
		`INSERT INTO orders SELECT (jsonb_populate_record(o, jsonb_build_object('id', gen_random_uuid(), 'user_id', u.id,
			'number', left(u.id::text, 18)))).* FROM orders o, users u WHERE u.account LIKE 'rush-%'`,
		`INSERT INTO order_failures (id, sale_id, item_id, user_id, quantity, code, reason, released, created_at, reserved_at)
			SELECT gen_random_uuid(), sale_id, item_id, user_id, 1, 'SOLD_OUT', '', true, created_at, created_at FROM orders`,
		`INSERT INTO waitlist_entries (id, sale_id, item_id, user_id, quantity, status, created_at, updated_at)
			SELECT gen_random_uuid(), sale_id, item_id, user_id, 1, 'LEFT', created_at, created_at FROM orders`,
	} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%.40s: %v", statement, err)
		}
	}
	// Each second a question reads webhook_events. Steps read the orders too: the log of acceptance
	// once, to complete it, and others every 15 seconds.
	read := func() (questions, tuples int) {
		if err := db.QueryRowContext(t.Context(), `SELECT (SELECT seq_scan + idx_scan FROM pg_stat_user_tables WHERE relname = 'webhook_events'),
			sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) FROM pg_stat_user_tables WHERE relname NOT IN ('goose_db_version', 'acceptance_entries')`).Scan(&questions, &tuples); err != nil {
			t.Fatal(err)
		}
		return questions, tuples
	}
	begun, before := read()
	testenv.Eventually(t, testenv.Wait, func() bool {
		questions, tuples := read()
		if questions < begun+3 {
			before = tuples // by the statements above
		}
		return questions > begun+13
	}, "ten questions")
	if _, after := read(); after-before > 5*rows {
		t.Errorf("ten questions read %d rows of %d orders", after-before, rows)
	}
}
