//go:build !faults

package payment_test

// Sizes of the random tests in `make test`; the full sizes are in `make faults`.
const (
	manyLives    = "12"
	manyRaces    = 30
	manyAtEach   = 100 // payments at each of five providers
	manyPayments = 60
)
