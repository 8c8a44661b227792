//go:build faults

package preload_test

// liveOrders is the number of orders of the test that rebuilds a large sale, in `make
// faults`: a single statement cannot read them within its timeout.
const liveOrders = 700_000
