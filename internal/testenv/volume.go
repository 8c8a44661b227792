package testenv

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Volume is a file system of its own, in memory, that a test may fill.
type Volume struct {
	t    testing.TB
	path string
}

// MountVolume mounts a volume of some megabytes on an empty directory, for the user of the
// ids. It is unmounted when the test ends, after what was started on it since has ended.
func MountVolume(t testing.TB, path string, megabytes, uid, gid int) *Volume {
	t.Helper()
	options := fmt.Sprintf("size=%dm,mode=0700,uid=%d,gid=%d", megabytes, uid, gid)
	asRoot(t, "mount", "-t", "tmpfs", "-o", options, "tmpfs", path)
	t.Cleanup(func() { asRoot(t, "umount", "--lazy", path) }) // lazily: a test that fails must leave none
	return &Volume{t, path}
}

func asRoot(t testing.TB, command ...string) {
	t.Helper()
	if os.Getuid() != 0 {
		command = append([]string{"sudo", "--non-interactive"}, command...)
	}
	text, err := exec.Command(command[0], command[1:]...).CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v %s", strings.Join(command, " "), err, text)
		t.Fatal("a full disk needs a file system of its own: run the test as root on Linux, or as a user with sudo, in a container with CAP_SYS_ADMIN")
	}
}

// Fill takes all space of the volume until the returned function is called.
func (v *Volume) Fill() (free func()) {
	v.t.Helper()
	path := filepath.Join(v.path, "full")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		v.t.Fatal(err)
	}
	defer f.Close()
	for block := make([]byte, 64<<10); err == nil; {
		_, err = f.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		v.t.Fatal(err)
	}
	return func() {
		v.t.Helper()
		if err := os.Remove(path); err != nil {
			v.t.Error(err)
		}
	}
}
