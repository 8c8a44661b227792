//go:build !faults

package preload_test

import "seckill/internal/testdb"

// liveOrders is the number of orders of the test that rebuilds a large sale: several
// pages.
const liveOrders = 12_000

// largeURL returns a database whose timeouts a busy machine does not exceed.
var largeURL = testdb.PostgresURL
