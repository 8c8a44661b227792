//go:build unix

package postgres

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// quiet reports whether an idle connection is open and the server has sent nothing: what
// comes between statements is the end of the connection, or its reason.
func (w *netConn) quiet() bool {
	c, ok := w.Conn.(syscall.Conn)
	if !ok {
		return true
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	var peekErr error
	err = raw.Control(func(fd uintptr) { // Read would heed the deadline of the last read, which has passed
		_, _, peekErr = unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
	})
	return err == nil && (errors.Is(peekErr, unix.EAGAIN) || errors.Is(peekErr, unix.EINTR))
}
