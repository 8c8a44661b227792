package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lib/pq"
	"golang.org/x/sync/errgroup"

	"seckill/ent"
	"seckill/ent/goods"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/postgres"
)

// uniqueViolation is an error of a statement, not of the server.
func uniqueViolation() []byte { return errorResponse("ERROR", "23505", "duplicate key") }

// sends returns a misbehaviour that sends bytes, and closes the connection or falls silent.
func sends(stays bool, messages ...[]byte) func(*fakeSession, byte) bool {
	return func(s *fakeSession, _ byte) bool {
		s.send(messages...)
		s.skipping = true
		return stays
	}
}

// instead returns a misbehaviour that sends bytes and then behaves, until the end of the
// statement.
func instead(messages ...[]byte) func(*fakeSession, byte) bool {
	return func(s *fakeSession, at byte) bool {
		s.send(messages...)
		if s.query == "COMMIT" || s.query == "ROLLBACK" {
			s.status = 'I'
		}
		if at == 'Q' {
			s.send(s.ready())
		}
		s.skipping = at != 'Q' && at != 'S'
		return true
	}
}

// after returns a misbehaviour that completes a statement and then sends bytes.
func after(stays bool, messages ...[]byte) func(*fakeSession, byte) bool {
	return func(s *fakeSession, at byte) bool {
		s.reply(at, nil)
		s.send(messages...)
		return stays
	}
}

// misbehaviours are the ways in which a server, a pooler or a proxy leaves the protocol.
func misbehaviours() []misbehaviour {
	long := errorResponse("ERROR", "22P02", strings.Repeat("x", 40_000))
	var all []misbehaviour
	add := func(name, at string, do func(*fakeSession, byte) bool) {
		all = append(all, misbehaviour{name: name, at: at, do: do})
	}
	silence := func(name, at string, messages ...[]byte) {
		all = append(all, misbehaviour{name: name, at: at, do: sends(true, messages...), silent: true})
	}
	for stage, at := range map[string]string{"parse": "P", "bind": "B", "execute": "E", "sync": "S", "query": "Q"} {
		add("error, then close, at "+stage, at, sends(false, uniqueViolation()))
		silence("error, then silence, at "+stage, at, uniqueViolation())
		add("long error, then close, at "+stage, at, sends(false, long))
		add("close at "+stage, at, sends(false))
		silence("silence at "+stage, at)
		add("garbage, then close, at "+stage, at, sends(false, []byte("HTTP/1.1 400 Bad Request\r\n\r\n")))
		silence("garbage, then silence, at "+stage, at, []byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
		silence("length 0 at "+stage, at, []byte{'T', 0, 0, 0, 0})
		silence("a length of 4 GB at "+stage, at, []byte{'D', 255, 255, 255, 255})
		add("a truncated body at "+stage, at, instead(message('T', number16(9)), message('D', number16(9)), message('E')))
		add("half a message, then close, at "+stage, at, sends(false, uniqueViolation()[:9]))
		add("57P01, then close, at "+stage, at, sends(false, errorResponse("FATAL", "57P01", "terminating connection")))
		add("many notices, then close, at "+stage, at, sends(false, []byte(strings.Repeat(string(notice()), 5000))))
		if stage != "sync" {
			add("long error at "+stage, at, instead(long))
			add("unexpected response at "+stage, at, instead(message('3')))
			add("unknown message at "+stage, at, instead(message('y', []byte("????"))))
			add("no response at "+stage, at, instead())
			add("COPY out at "+stage, at, instead(message('H', []byte{0, 0, 0}), message('d', []byte("7\n")), message('c'), message('C', text("COPY 1"))))
			silence("COPY in at "+stage, at, message('G', []byte{0, 0, 0}))
			add("COPY in broken off at "+stage, at, sends(false, message('G', []byte{0, 0, 0}), uniqueViolation()))
		}
	}
	add("close in the middle of a row", "EQ", func(s *fakeSession, at byte) bool {
		if at == 'Q' && isSelect(s.query) {
			s.send(rowDescription())
		}
		row := dataRow(strings.Repeat("7", 9000))
		s.send(dataRow("7"), row[:100])
		return false
	})
	add("a wrong row after the first", "EQ", func(s *fakeSession, at byte) bool {
		if at == 'Q' {
			s.send(rowDescription())
		}
		s.send(dataRow("7"), message('3'), message('C', text("SELECT 1")))
		s.skipping = true
		if at == 'Q' {
			s.send(s.ready())
		}
		return true
	})
	all = append(all, misbehaviour{name: "ReadyForQuery missing", at: "Q", silent: true, do: func(s *fakeSession, _ byte) bool {
		if isSelect(s.query) {
			s.send(rowDescription())
		}
		s.execute()
		return true
	}})
	add("close after ReadyForQuery", "QS", after(false))
	add("57P01 after ReadyForQuery", "QS", after(false, errorResponse("FATAL", "57P01", "terminating connection")))
	add("57P01 after ReadyForQuery, open", "QS", after(true, errorResponse("FATAL", "57P01", "terminating connection")))
	add("ReadyForQuery twice", "QS", after(true, message('Z', []byte{'I'})))
	add("another reply after ReadyForQuery", "QS", after(true, rowDescription(), dataRow("8"), message('C', text("SELECT 1")), message('Z', []byte{'I'})))
	add("garbage after ReadyForQuery", "QS", after(true, []byte("garbage")))
	return all
}

// way is one way of running statements. run runs one, after arm.
type way struct {
	name     string
	messages string // the types that it sends once armed
	run      func(ctx context.Context, db *postgres.DB, arm func()) error
	pooling  bool
}

const (
	readText  = "SELECT n FROM counter WHERE n = $1"
	writeText = "UPDATE counter SET n = $1"
)

func scan(row *sql.Row) error {
	var n int
	if err := row.Scan(&n); err != nil {
		return err
	}
	if n != 7 {
		return fmt.Errorf("the row is %d, want 7: it answers another statement", n)
	}
	return nil
}

func scanRows(rows *sql.Rows, err error) error {
	if err != nil {
		return err
	}
	defer rows.Close()
	n := 0
	for rows.Next() {
		n++
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if n != 1 {
		return fmt.Errorf("%d rows, want 1", n)
	}
	return rows.Close()
}

func exactly(res sql.Result, err error) error {
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n != 1 {
		return fmt.Errorf("%d rows affected, %w, want 1", n, err)
	}
	return nil
}

func inTx(do func(ctx context.Context, tx *ent.Tx, arm func()) error) func(ctx context.Context, db *postgres.DB, arm func()) error {
	return func(ctx context.Context, db *postgres.DB, arm func()) error {
		return db.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error { return do(ctx, tx, arm) })
	}
}

var ways = []way{
	{name: "query", messages: "PBES", run: func(ctx context.Context, db *postgres.DB, arm func()) error {
		arm()
		return scan(db.SQL.QueryRowContext(ctx, readText, "1"))
	}},
	{name: "rows", messages: "PBES", run: func(ctx context.Context, db *postgres.DB, arm func()) error {
		arm()
		return scanRows(db.SQL.QueryContext(ctx, readText, "1"))
	}},
	{name: "query without arguments", messages: "Q", run: func(ctx context.Context, db *postgres.DB, arm func()) error {
		arm()
		return scan(db.SQL.QueryRowContext(ctx, "SELECT n FROM counter"))
	}},
	{name: "exec", messages: "PBES", run: func(ctx context.Context, db *postgres.DB, arm func()) error {
		arm()
		return exactly(db.SQL.ExecContext(ctx, writeText, "1"))
	}},
	{name: "exec without arguments", messages: "Q", run: func(ctx context.Context, db *postgres.DB, arm func()) error {
		arm()
		return exactly(db.SQL.ExecContext(ctx, "UPDATE counter SET n = 1"))
	}},
	{name: "kept statement", messages: "PBES", run: func(ctx context.Context, db *postgres.DB, arm func()) error {
		arm()
		return scan(db.SQL.QueryRowContext(postgres.WithPrepared(ctx), readText, "1"))
	}},
	{name: "prepared statement", messages: "PBES", run: func(ctx context.Context, db *postgres.DB, arm func()) error {
		arm()
		stmt, err := db.SQL.PrepareContext(ctx, writeText)
		if err != nil {
			return err
		}
		defer stmt.Close()
		return exactly(stmt.ExecContext(ctx, "1"))
	}},
	{name: "begin", messages: "Q", run: func(ctx context.Context, db *postgres.DB, arm func()) error {
		arm()
		return db.WithTx(ctx, func(context.Context, *ent.Tx) error { return nil })
	}},
	{name: "transaction", messages: "PBES", run: inTx(func(ctx context.Context, tx *ent.Tx, arm func()) error {
		arm()
		return exactly(tx.ExecContext(ctx, writeText, "1"))
	})},
	{name: "kept statement in a transaction", messages: "PBES", run: inTx(func(ctx context.Context, tx *ent.Tx, arm func()) error {
		arm()
		return exactly(tx.ExecContext(postgres.WithPrepared(ctx), writeText, "1"))
	})},
	{name: "commit", messages: "Q", run: inTx(func(ctx context.Context, tx *ent.Tx, arm func()) error {
		defer arm()
		return exactly(tx.ExecContext(ctx, writeText, "1"))
	})},
	{name: "rollback", messages: "Q", run: func(ctx context.Context, db *postgres.DB, arm func()) error {
		tx, err := db.Ent.Tx(ctx)
		if err != nil {
			return err
		}
		arm()
		return tx.Rollback()
	}},
	{name: "ent", messages: "PBES", run: func(ctx context.Context, db *postgres.DB, arm func()) error {
		arm()
		n, err := db.Ent.Goods.Query().Where(goods.NameEQ("lamp")).Count(ctx)
		if err == nil && n != 7 {
			return fmt.Errorf("the count is %d, want 7: it answers another statement", n)
		}
		return err
	}},
	{name: "query behind a pooler", messages: "PBES", pooling: true, run: func(ctx context.Context, db *postgres.DB, arm func()) error {
		arm()
		return scan(db.SQL.QueryRowContext(ctx, readText, "1"))
	}},
	{name: "exec behind a pooler", messages: "PBES", pooling: true, run: func(ctx context.Context, db *postgres.DB, arm func()) error {
		arm()
		return exactly(db.SQL.ExecContext(ctx, writeText, "1"))
	}},
	{name: "ping", messages: "Q", run: func(ctx context.Context, db *postgres.DB, arm func()) error {
		arm()
		return db.SQL.PingContext(ctx)
	}},
}

// TestNoStatementFailsAfterTheFirst covers every state in which a connection of lib/pq is
// out of step with its server (lib/pq#1320, #1324, #1450): the statement concerned may
// fail, with an error of the service or with its own, and the next ones get another
// connection.
func TestNoStatementFailsAfterTheFirst(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			var cases errgroup.Group // most of them wait: subtests would run two at a time
			cases.SetLimit(16)
			for _, m := range misbehaviours() {
				if strings.ContainsAny(w.messages, m.at) {
					cases.Go(func() error { failsOnce(t, w, m); return nil })
				}
			}
			_ = cases.Wait()
		})
	}
}

// failsOnce runs a statement on a connection that misbehaves, and ten after it.
func failsOnce(t *testing.T, w way, m misbehaviour) {
	t.Helper()
	server := newFakeServer(t)
	db := server.dial(t, w.pooling)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err := w.run(ctx, db, func() {
		server.arm(m)
		if m.silent && w.name != "query" { // which waits for the deadline of a read, 2 s
			fired := server.fired
			go func() {
				select {
				case <-fired:
					cancel()
				case <-ctx.Done():
				}
			}()
		}
	})
	server.misbehaved(t)
	if _, ofStatement := errors.AsType[*pq.Error](err); err != nil && !ofStatement && !fault.IsTransient(err) {
		t.Errorf("%s: the first statement: %v is not transient", m.name, err)
	}
	for i := range 10 {
		if later := w.run(t.Context(), db, func() {}); later != nil {
			t.Errorf("%s: statement %d after the first, whose error was %v: %v", m.name, i+1, err, later)
			return
		}
	}
}

// TestAWriteIsNotRepeated counts what the server received: database/sql repeats statements
// on a new connection after driver.ErrBadConn, also an INSERT … RETURNING, which is a query.
func TestAWriteIsNotRepeated(t *testing.T) {
	t.Parallel()
	for name, run := range map[string]func(ctx context.Context, db *postgres.DB) error{
		"exec": func(ctx context.Context, db *postgres.DB) error {
			_, err := db.SQL.ExecContext(ctx, writeText, "1")
			return err
		},
		"query": func(ctx context.Context, db *postgres.DB) error {
			return scanRows(db.SQL.QueryContext(ctx, "INSERT INTO counter VALUES ($1) RETURNING n", "1"))
		},
		"query without arguments": func(ctx context.Context, db *postgres.DB) error {
			return scanRows(db.SQL.QueryContext(ctx, "INSERT INTO counter VALUES (1) RETURNING n"))
		},
		"prepared statement": func(ctx context.Context, db *postgres.DB) error {
			stmt, err := db.SQL.PrepareContext(ctx, writeText)
			if err != nil {
				return err
			}
			defer stmt.Close()
			_, err = stmt.ExecContext(ctx, "1")
			return err
		},
		"prepared query": func(ctx context.Context, db *postgres.DB) error {
			stmt, err := db.SQL.PrepareContext(ctx, "INSERT INTO counter VALUES ($1) RETURNING n")
			if err != nil {
				return err
			}
			defer stmt.Close()
			return scanRows(stmt.QueryContext(ctx, "1"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := newFakeServer(t)
			db := server.dial(t, false)
			pings := server.executed.Load()
			server.arm(misbehaviour{at: "EQ", do: sends(false)})
			err := run(t.Context(), db)
			if !errors.Is(err, postgres.ErrConnectionLost) {
				t.Errorf("error is %v, want ErrConnectionLost", err)
			}
			if n := server.executed.Load() - pings; n != 1 {
				t.Errorf("the server received the statement %d times, want once", n)
			}
		})
	}
}

// TestAReadIsRepeatedOnAnotherConnection: a restart of the server is not seen by reads.
func TestAReadIsRepeatedOnAnotherConnection(t *testing.T) {
	t.Parallel()
	server := newFakeServer(t)
	db := server.dial(t, false)
	server.arm(misbehaviour{at: "E", do: sends(false)})
	if err := scan(db.SQL.QueryRowContext(t.Context(), readText, "1")); err != nil {
		t.Error(err)
	}
}

// TestAFloodOfNoticesEndsWithTheContext: notices reset the deadline of a single read.
func TestAFloodOfNoticesEndsWithTheContext(t *testing.T) {
	t.Parallel()
	flood := func(first ...[]byte) func(*fakeSession, byte) bool {
		return func(s *fakeSession, _ byte) bool {
			s.send(first...)
			for s.flush() {
				s.send(notice())
			}
			return false
		}
	}
	for name, m := range map[string]misbehaviour{
		"before the first row": {at: "E", do: flood()},
		"between rows":         {at: "E", do: flood(dataRow("7"))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := newFakeServer(t)
			db := server.dial(t, false)
			server.arm(m)
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			err := scanRows(db.SQL.QueryContext(ctx, readText, "1"))
			if !errors.Is(err, context.DeadlineExceeded) && !fault.IsTransient(err) {
				t.Errorf("error is %v, want the deadline", err)
			}
			server.misbehaved(t)
			for range 10 {
				if err := scan(db.SQL.QueryRowContext(t.Context(), readText, "1")); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// TestACancelledStatementLeavesNoDeadConnection cancels while the reply is on its way:
// nothing of it, and half of it.
func TestACancelledStatementLeavesNoDeadConnection(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		for name, part := range map[string][]byte{"nothing": nil, "half a message": dataRow("7")[:7]} {
			t.Run(w.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				server := newFakeServer(t)
				db := server.dial(t, w.pooling)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				err := w.run(ctx, db, func() {
					server.arm(misbehaviour{at: w.messages[len(w.messages)-1:], do: func(s *fakeSession, _ byte) bool {
						s.send(part)
						s.flush()
						cancel()
						return true
					}})
				})
				if err == nil || !fault.IsTransient(err) {
					t.Errorf("error is %v, want a transient one", err)
				}
				for range 10 {
					if err := w.run(t.Context(), db, func() {}); err != nil {
						t.Fatal(err)
					}
				}
			})
		}
	}
}

// TestAnErrorOfAStatementKeepsItsConnection: errors are frequent, connections are dear.
func TestAnErrorOfAStatementKeepsItsConnection(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		for stage := range strings.SplitSeq(w.messages, "") {
			if stage == "S" || w.name == "rollback" || w.name == "ping" {
				continue
			}
			t.Run(w.name+"/"+stage, func(t *testing.T) {
				t.Parallel()
				server := newFakeServer(t)
				db := server.dial(t, w.pooling)
				err := w.run(t.Context(), db, func() {
					server.arm(misbehaviour{at: stage, do: instead(notice(), uniqueViolation())})
				})
				if !postgres.IsUnique(err) {
					t.Errorf("error is %v, want the unique violation", err)
				}
				for range 10 {
					if err := w.run(t.Context(), db, func() {}); err != nil {
						t.Fatal(err)
					}
				}
				if n := server.connections.Load(); n != 1 {
					t.Errorf("%d connections, want the first to stay", n)
				}
			})
		}
	}
}
