package testenv

import (
	"net"
	"runtime"
	"strconv"
	"syscall"
	"testing"
)

// ReserveAddr returns host and port of ReservePort.
func ReserveAddr(t testing.TB) string {
	t.Helper()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(ReservePort(t)))
}

// ReservePort returns a port of 127.0.0.1 for a process that must be given a fixed port,
// for example to get it again after a restart. It is assigned to no other process until
// the test ends: a socket without a listener stays bound to it, so that the kernel skips
// the port when it chooses one. A server with SO_REUSEADDR (Go, Redis, nginx) may listen
// on it all the same. That works on Linux only; elsewhere the port is merely free now.
func ReservePort(t testing.TB) int {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	syscall.CloseOnExec(fd)
	if runtime.GOOS == "linux" {
		t.Cleanup(func() { _ = syscall.Close(fd) })
	} else {
		defer func() { _ = syscall.Close(fd) }()
	}
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return name.(*syscall.SockaddrInet4).Port
}
