//go:build !faults

package stream

// Numbers of messages in `make test`; the full numbers are in `make faults`. The worker is killed after
// the 1,000th.
const (
	manyMessages = 1000
	beforeKill   = 1500
)
