//go:build !linux

package postgres

import (
	"syscall"
	"time"
)

// userTimeout does nothing, because the option is not portable. The deadlines of reads
// and writes still apply.
func userTimeout(time.Duration) func(network, address string, c syscall.RawConn) error { return nil }
