//go:build !linux

package postgres

import (
	"syscall"
	"time"
)

// userTimeout has no portable form; the deadlines of reads and writes remain.
func userTimeout(time.Duration) func(network, address string, c syscall.RawConn) error { return nil }
