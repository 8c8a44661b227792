//go:build !faults

package system_test

// manyOrders is the number of orders of the test that kills workers: enough for three
// kills.
const manyOrders = 1500

// callsInFlight is the number of calls of one buyer that are under way at the same time:
// each takes an open file of this process and one of the server's.
const callsInFlight = 2500

// killsPerTest is the number of moments at which a test kills a process that has more of
// them: the first of its list. `make faults` kills at all.
const killsPerTest = 2
