package config

import (
	"fmt"
	"math"
	"syscall"
)

// OpenFiles returns how many files and sockets this process may have open
// (RLIMIT_NOFILE). The Go runtime raises the soft limit to the hard one at the start.
func OpenFiles() (int, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("read the limit of open files: %w", err)
	}
	return int(min(limit.Cur, math.MaxInt32)), nil
}

// Connections returns how many public connections a process accepts that may open so many
// files, and how many of them may be sockets and event streams. The remaining files are for
// the admin listener, Postgres, Redis and outgoing requests, and the remaining connections
// for requests.
func Connections(files int) (connections, sockets int) {
	connections = files - min(files/4, 1000)
	return connections, connections - min(connections/4, 2000)
}
