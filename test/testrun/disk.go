package main

import (
	"fmt"
	"os"
	"syscall"
)

// wantedSpace is the free disk space that a run wants: builds and test binaries take most
// of the 2.2 GB that a run from an empty cache needs.
const wantedSpace = 3 << 30

// checkSpace returns an error that names a directory with less free space than wanted, in
// bytes. Without the check, a full disk appears as many failed tests.
func checkSpace(wanted uint64, dirs ...string) error {
	for _, dir := range dirs {
		var fs syscall.Statfs_t
		if err := syscall.Statfs(dir, &fs); err != nil {
			return &os.PathError{Op: "statfs", Path: dir, Err: err}
		}
		free := fs.Bavail * uint64(fs.Bsize)
		if free < wanted {
			return fmt.Errorf("%s has %.1f GB of free space, and a run wants %.1f: free some, or set TMPDIR", dir,
				float64(free)/(1<<30), float64(wanted)/(1<<30))
		}
	}
	return nil
}
