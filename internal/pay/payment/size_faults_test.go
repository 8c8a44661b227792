//go:build faults

package payment_test

// Sizes of the random tests in `make faults`.
const (
	manyLives    = "100"
	manyRaces    = 300
	manyAtEach   = 2000 // payments at each of five providers
	manyPayments = 600
)
