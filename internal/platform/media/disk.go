package media

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Disk stores files in a folder. Several processes may share it.
type Disk struct{ root *os.Root }

// openDisk returns a store in a folder, which it creates when missing.
func openDisk(dir string) (*Disk, error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("folder for pictures: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("folder for pictures: %w", err)
	}
	return &Disk{root: root}, nil
}

// Close closes the folder.
func (d *Disk) Close() error { return d.root.Close() }

// Put stores a file atomically: after a failure the file is complete or missing.
func (d *Disk) Put(_ context.Context, name, _ string, body []byte) error {
	if _, err := d.root.Stat(name); err == nil {
		return nil
	}
	temporary := "." + name + "." + rand.Text()
	f, err := d.root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o640)
	if err != nil {
		return fmt.Errorf("keep %s: %w", name, err)
	}
	_, err = f.Write(body)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = d.root.Rename(temporary, name)
	}
	if err != nil {
		_ = d.root.Remove(temporary)
		return fmt.Errorf("keep %s: %w", name, err)
	}
	return nil
}

// Get returns a file.
func (d *Disk) Get(_ context.Context, name string) ([]byte, error) {
	f, err := d.root.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read %s: %w", name, ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	defer func() { _ = f.Close() }()
	body, err := io.ReadAll(io.LimitReader(f, MaxBytes))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return body, nil
}

// Check returns the error that Open would have, and creates nothing.
func Check(address string) error {
	if address == "" || address == InMemory {
		return nil
	}
	if strings.HasPrefix(address, "s3://") {
		_, err := openS3(address)
		return err
	}
	const mayWrite = 2 // W_OK of access(2)
	folder := filepath.Clean(strings.TrimPrefix(address, "file://"))
	for dir := folder; ; dir = filepath.Dir(dir) { // up to the one in which Open creates the others
		info, err := os.Stat(dir)
		switch {
		case err == nil && info.IsDir() && (dir == folder || syscall.Access(dir, mayWrite) == nil):
			return nil
		case err == nil && info.IsDir():
			return fmt.Errorf("folder for pictures: %s cannot be written by this user", dir)
		case err == nil:
			return fmt.Errorf("folder for pictures: %s is no folder", dir)
		case !errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("folder for pictures: %w", err)
		}
	}
}
