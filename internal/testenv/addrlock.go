//go:build unix

package testenv

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// lockPort locks a port against the other processes that call it, until unlock or the end
// of this process.
func lockPort(port int) (unlock func(), err error) {
	dir := filepath.Join(os.TempDir(), "seckill-test-ports-"+strconv.Itoa(os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, strconv.Itoa(port)), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, err
	}
	return func() { _ = f.Close() }, nil
}
