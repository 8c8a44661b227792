//go:build faults

package preload_test

import "seckill/internal/testdb"

// liveOrders is the number of orders of the test that rebuilds a large sale, in `make
// faults`: a single statement cannot read them within its timeout.
const liveOrders = 700_000

// largeURL returns a database with the product's timeouts.
var largeURL = testdb.ShortPostgresURL
