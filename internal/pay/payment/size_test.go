//go:build !faults

package payment_test

// Sizes of the random tests in `make test`; the full sizes are in `make faults`.
const (
	manyLives    = "12"
	manyRaces    = 12
	manyAtEach   = 40 // payments at each of five providers
	manyPayments = 24
)
