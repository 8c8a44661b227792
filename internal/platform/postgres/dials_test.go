package postgres_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"seckill/internal/platform/fault"
	"seckill/internal/platform/postgres"
	"seckill/internal/testenv"
)

// TestAPoolOpensFewConnectionsAtOnce: when Postgres comes back, every process wants its whole
// pool in the same moment, and each connection costs the server a process.
func TestAPoolOpensFewConnectionsAtOnce(t *testing.T) {
	t.Parallel()
	const processes, perProcess, callers = 10, 4, 32
	server := newFakeServer(t)
	var pools []*postgres.DB
	for range processes {
		pools = append(pools, server.dial(t, false))
		pools[len(pools)-1].SQL.SetMaxIdleConns(0) // an outage: the pool is empty
		pools[len(pools)-1].SQL.SetMaxOpenConns(16)
	}
	server.starts = make(chan struct{})
	var group sync.WaitGroup
	for _, db := range pools {
		for range callers {
			group.Go(func() {
				if err := scan(db.SQL.QueryRowContext(t.Context(), readText, "1")); err != nil {
					t.Error(err)
				}
			})
		}
	}
	testenv.Eventually(t, testenv.Wait, func() bool { return server.starting.Load() == processes*perProcess }, "each process opens its first connections")
	close(server.starts)
	group.Wait()
	if most := server.mostAtOnce.Load(); most != processes*perProcess {
		t.Errorf("%d connections were opened at once, want at most %d", most, processes*perProcess)
	}
}

// TestACallerThatWaitsForAConnectionKeepsItsDeadline: a server that does not answer holds the
// connections that are being opened.
func TestACallerThatWaitsForAConnectionKeepsItsDeadline(t *testing.T) {
	t.Parallel()
	server := newFakeServer(t)
	db := server.dial(t, false)
	db.SQL.SetMaxIdleConns(0)
	db.SQL.SetMaxOpenConns(16)
	server.starts = make(chan struct{})
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			err := scan(db.SQL.QueryRowContext(ctx, readText, "1"))
			if !errors.Is(err, context.DeadlineExceeded) || !fault.IsTransient(err) {
				t.Errorf("error is %v, want the deadline", err)
			}
		})
	}
	group.Wait()
}
