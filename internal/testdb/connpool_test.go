package testdb

import (
	"database/sql/driver"
	"sync"
	"sync/atomic"
	"testing"
)

type ownedConn struct {
	driver.Conn
	owners atomic.Int32
}

func TestAConnectionHasOneOwnerAtATime(t *testing.T) {
	t.Parallel()
	var pool connPool
	for range 3 {
		pool.put("server", &ownedConn{})
	}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 2000 {
				c, ok := pool.take("server").(*ownedConn)
				if !ok {
					continue
				}
				if n := c.owners.Add(1); n != 1 {
					t.Errorf("a connection has %d owners", n)
				}
				c.owners.Add(-1)
				pool.put("server", c)
			}
		})
	}
	group.Wait()
}
