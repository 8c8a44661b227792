package order_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	"seckill/ent"
	"seckill/internal/buy/order"
	"seckill/internal/buy/orderintake"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
	"seckill/internal/platform/stream"
	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

// cut is the point at which a wire cuts a connection.
type cut int32

const (
	never        cut = iota
	beforeCommit     // the database never receives the commit
	afterCommit      // the commit succeeds, and its reply is lost
)

// wire is a TCP proxy in front of Postgres that cuts connections at a commit.
type wire struct {
	t      testing.TB
	listen net.Listener
	target string
	mode   atomic.Int32
	cuts   atomic.Int32
	wg     sync.WaitGroup
}

func newWire(t testing.TB, databaseURL string) (*wire, string) {
	t.Helper()
	u, err := url.Parse(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{t: t, listen: l, target: u.Host}
	u.Host = l.Addr().String()
	w.wg.Go(w.accept)
	t.Cleanup(func() {
		_ = l.Close()
		w.wg.Wait()
	})
	return w, u.String()
}

// next sets where the next connection that commits is cut.
func (w *wire) next(c cut) { w.mode.Store(int32(c)) }

func (w *wire) accept() {
	for {
		client, err := w.listen.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", w.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		var lost atomic.Bool // the server's replies are dropped
		w.wg.Go(func() { w.upstream(client, server, &lost) })
		w.wg.Go(func() {
			defer client.Close()
			defer server.Close()
			buf := make([]byte, 64<<10)
			for {
				n, err := server.Read(buf)
				if err != nil || lost.Load() {
					return
				}
				if _, err := client.Write(buf[:n]); err != nil {
					return
				}
			}
		})
	}
}

func (w *wire) upstream(client, server net.Conn, lost *atomic.Bool) {
	defer client.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := client.Read(buf)
		if err != nil {
			_ = server.Close()
			return
		}
		if bytes.Contains(buf[:n], []byte("COMMIT\x00")) {
			mode := cut(w.mode.Swap(int32(never)))
			if mode != never {
				w.cuts.Add(1)
			}
			if mode == beforeCommit {
				_ = server.Close()
				return
			}
			lost.Store(mode == afterCommit)
		}
		if _, err := server.Write(buf[:n]); err != nil && !errors.Is(err, io.EOF) {
			return
		}
	}
}

// A connection that fails around a commit leaves the outcome unknown. The redelivered
// message finds the rows or writes them.
func TestACutAroundTheCommitLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cut      cut
		replayed bool
	}{
		"before the commit": {beforeCommit, false},
		"after the commit":  {afterCommit, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			direct := testdb.PostgresURL(t)
			db, err := postgres.Open(t.Context(), postgres.Options{URL: direct})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = db.Close() })
			e := setupOn(t, db, stock{units: 100, limit: 1})
			wire, url := newWire(t, direct)
			through, err := postgres.Open(t.Context(), postgres.Options{URL: url})
			e.must(err)
			t.Cleanup(func() { _ = through.Close() })
			w := order.NewWriter(order.WriterConfig{
				DB: through, AfterCommit: e.afterCommit(order.AfterCommitConfig{Cache: e.cache}), Clock: e.clock, Timeout: testenv.Wait,
			})
			t.Cleanup(func() { e.must(w.Close(context.Background())) })
			requests := e.requests(40)
			for i, r := range requests {
				wire.next(c.cut)
				if end := w.Write(t.Context(), r)[0]; !errors.Is(end.Err, postgres.ErrCommitUnknown) {
					t.Fatalf("order %d: error %v", i, end.Err)
				}
				if err := orderintake.NewHandler(w, nil, nil).Handle(message(t, r)); err != nil {
					t.Fatalf("order %d again: %v", i, err)
				}
				if out := e.write(w, r); !out.Replayed || out.Order == nil {
					t.Fatalf("order %d a third time: %+v", i, out)
				}
			}
			if n := int(wire.cuts.Load()); n != len(requests) {
				t.Errorf("%d cuts", n)
			}
			if e.orders() != len(requests) || e.figures() != (figures{60, 40, 0, 100}) {
				t.Errorf("%d orders, %+v", e.orders(), e.figures())
			}
			e.conserved()
		})
	}
}

func message(t testing.TB, r order.Request) *stream.Message {
	t.Helper()
	msg, err := r.Message()
	if err != nil {
		t.Fatal(err)
	}
	return msg
}

// A request that the table rejects does not prevent the rest of its batch.
func TestOnePoisonousRequestFailsAlone(t *testing.T) {
	t.Parallel()
	e := setup(t, stock{units: 100, limit: 1})
	requests := e.requests(33)
	poison := requests[20]
	e.must(e.db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		_, err := tx.ExecContext(ctx, `ALTER TABLE orders ADD CONSTRAINT poison CHECK (user_id <> '`+poison.User.String()+`')`)
		return err
	}))
	if failed := e.failedOf(requests); len(failed) != 1 || failed[poison.Task] == nil || stream.IsRetryable(failed[poison.Task]) {
		t.Errorf("failed: %v", failed)
	}
	if e.orders() != 32 {
		t.Errorf("%d orders", e.orders())
	}
	e.conserved()
}

// During a failover of Postgres, its address may lead to a standby that is not promoted
// yet; a permission or a column may be missing until an operator repairs it. Messages
// are redelivered until then, and none counts as failed.
func TestAServerThatRefusesStatementsIsWaitedFor(t *testing.T) {
	t.Parallel()
	for name, state := range map[string]string{
		"no transaction that may write": "0A000", "no writing": "25006", "no permission": "42501", "no such column": "42703",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := setup(t, stock{units: 100, limit: 1})
			exec := func(statements ...string) {
				e.must(e.db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) error {
					for _, s := range statements {
						if _, err := tx.ExecContext(ctx, s); err != nil {
							return err
						}
					}
					return nil
				}))
			}
			exec(`CREATE FUNCTION standby() RETURNS trigger LANGUAGE plpgsql AS
				$$ BEGIN RAISE EXCEPTION 'this is a standby' USING ERRCODE = '`+state+`'; END $$`,
				`CREATE TRIGGER standby BEFORE INSERT ON orders EXECUTE FUNCTION standby()`)
			requests := e.requests(5)
			for task, err := range e.failedOf(requests) {
				if !order.IsTransient(err) {
					t.Errorf("order %s: %v", task, err)
				}
			}
			h := orderintake.NewHandler(e.writer(nil), nil, nil)
			for _, r := range requests {
				if err := h.Handle(message(t, r)); !stream.IsRetryable(err) {
					t.Errorf("order %s: %v is no reason to wait", r.Task, err)
				}
			}
			exec(`DROP TRIGGER standby ON orders`)
			for _, r := range requests {
				e.must(h.Handle(message(t, r)))
			}
			if e.orders() != len(requests) {
				t.Errorf("%d orders", e.orders())
			}
			e.conserved()
		})
	}
}

// failedOf writes requests concurrently and returns the errors of those that failed.
func (e *env) failedOf(requests []order.Request) map[id.Task]error {
	e.t.Helper()
	w := e.writer(nil)
	failed := map[id.Task]error{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, r := range requests {
		wg.Go(func() {
			if end := w.Write(e.t.Context(), r)[0]; end.Err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed[r.Task] = end.Err
			}
		})
	}
	wg.Wait()
	return failed
}

func TestAnOrderStandsWhenItsPublicationFails(t *testing.T) {
	t.Parallel()
	e := setup(t, stock{units: 1, limit: 1})
	w := e.writer(func(context.Context, []order.Task) error { return errors.New("the bus is away") })
	if out := e.write(w, e.request()); out.Task.Status != order.Succeeded {
		t.Errorf("outcome %+v", out)
	}
}
