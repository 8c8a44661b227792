//go:build !faults

package app_test

// manyOrders is the number of orders of the test that kills workers: enough for three
// kills.
const manyOrders = 1500
