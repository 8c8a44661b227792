package testenv

import (
	"net"
	"os/exec"
	"testing"
)

// Without a reservation 200 of 12,000 ports would have duplicates, and 1,000 listeners
// would meet one of 200 ports of the kernel's range of about 28,000.
func TestAReservedAddressIsOnlyForWhoKnowsIt(t *testing.T) {
	t.Parallel()
	reserved := map[string]bool{}
	for range 200 {
		addr := ReserveAddr(t)
		if reserved[addr] {
			t.Fatalf("%s twice", addr)
		}
		reserved[addr] = true
	}
	var open []net.Listener
	defer func() {
		for _, l := range open {
			_ = l.Close()
		}
	}()
	for range 1000 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, l)
		if reserved[l.Addr().String()] {
			t.Fatalf("%s is reserved and was assigned", l.Addr())
		}
	}
}

// A process that another test starts has a copy of every open socket until it calls exec,
// so that a port which was bound for a check may stay bound for some milliseconds.
func TestAReservedAddressIsFreeWhileProcessesStart(t *testing.T) {
	t.Parallel()
	done := make(chan struct{})
	started := make(chan error)
	go func() {
		var err error
		for err == nil {
			select {
			case <-done:
				started <- nil
				return
			default:
				err = exec.Command("true").Run()
			}
		}
		started <- err
	}()
	for range 1000 {
		l, err := net.Listen("tcp", ReserveAddr(t))
		if err != nil {
			t.Error(err)
			break
		}
		defer func() { _ = l.Close() }()
	}
	close(done)
	if err := <-started; err != nil {
		t.Fatal(err)
	}
}
