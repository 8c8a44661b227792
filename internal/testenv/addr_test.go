package testenv

import (
	"net"
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
	for addr := range reserved {
		for range 2 { // the second time as after a restart
			l, err := net.Listen("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		}
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
