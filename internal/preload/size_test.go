//go:build !faults

package preload_test

// liveOrders is the number of orders of the test that rebuilds a large sale: several
// pages.
const liveOrders = 12_000
