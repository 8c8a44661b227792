//go:build faults

package app_test

// manyOrders is the number of orders of the test that kills workers, in `make faults`.
const manyOrders = 5000
