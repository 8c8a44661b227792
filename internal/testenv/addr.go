package testenv

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"syscall"
	"testing"
)

// ReserveAddr returns host and port of ReservePort.
func ReserveAddr(t testing.TB) string {
	t.Helper()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(ReservePort(t)))
}

const (
	// Kernels choose ports for connections and for listeners without one from higher
	// ranges: 32768 to 60999 on Linux, 49152 to 65535 elsewhere.
	firstReserved, reservable = 20_000, 12_000
	reserveAttempts           = 1000
)

// ReservePort returns a port of 127.0.0.1 for a process that must be given a fixed port,
// for example to get it again after a restart. No kernel chooses it, and no other call
// of ReservePort returns it until the test ends.
func ReservePort(t testing.TB) int {
	t.Helper()
	for range reserveAttempts {
		port := firstReserved + rand.IntN(reservable)
		unlock, err := lockPort(port)
		if err != nil {
			continue // another test has it
		}
		if !refused(port) { // a service of this machine has it
			unlock()
			continue
		}
		t.Cleanup(unlock)
		return port
	}
	t.Fatalf("no free port of 127.0.0.1 among %d from %d on", reservable, firstReserved)
	return 0
}

// refused reports whether nothing listens on a port of 127.0.0.1. It does not try to bind the
// port: a process that is started at this moment has a copy of the bound socket until exec.
func refused(port int) bool {
	conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err == nil {
		_ = conn.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}
