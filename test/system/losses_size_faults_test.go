//go:build faults

package system_test

// manyOrders is the number of orders of the test that kills workers, in `make faults`.
const manyOrders = 5000

// callsInFlight is the number of calls of one buyer that are under way at the same time, in
// `make faults`.
const callsInFlight = 10_000

// killsPerTest is above the number of moments in any test.
const killsPerTest = 100
