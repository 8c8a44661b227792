//go:build faults

package stream

// Numbers of messages in `make faults`. The worker is killed after
// the 1,000th.
const (
	manyMessages = 5000
	beforeKill   = 5000
)
