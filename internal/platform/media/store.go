package media

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
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

// InMemory is the address of a Memory.
const InMemory = "memory://"

// maxMemory bounds the files of a Memory, in bytes: pictures of about a hundred products.
const maxMemory = 32 << 20

// Memory stores files in the process, for the demo. Beyond maxMemory it forgets the oldest
// files.
type Memory struct {
	mu    sync.Mutex
	files map[string][]byte // guarded by mu
	names []string          // guarded by mu; the oldest first
	size  int               // guarded by mu; bytes of files
}

// NewMemory returns an empty store.
func NewMemory() *Memory { return &Memory{files: map[string][]byte{}} }

// Put stores a file.
func (m *Memory) Put(_ context.Context, name, _ string, body []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.files[name]; known {
		return nil
	}
	m.files[name], m.names, m.size = body, append(m.names, name), m.size+len(body)
	for m.size > maxMemory && len(m.names) > 1 {
		oldest := m.names[0]
		m.size -= len(m.files[oldest])
		delete(m.files, oldest)
		m.names = m.names[1:]
	}
	return nil
}

// Get returns a file.
func (m *Memory) Get(_ context.Context, name string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	body, known := m.files[name]
	if !known {
		return nil, fmt.Errorf("read %s: %w", name, ErrNotFound)
	}
	return body, nil
}

// S3 stores files in a bucket of any S3-compatible store.
type S3 struct {
	client *minio.Client
	bucket string
	prefix string
}

// openS3 returns a store in an existing bucket:
// s3://key:secret@host:port/bucket/prefix?region=…&insecure=true. Without a key it
// reads the usual AWS_ variables. It does not connect yet.
func openS3(address string) (*S3, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "s3" || u.Host == "" {
		return nil, fmt.Errorf("store of pictures: want s3://host/bucket")
	}
	bucket, prefix, _ := strings.Cut(strings.Trim(u.Path, "/"), "/")
	if bucket == "" {
		return nil, fmt.Errorf("store of pictures: the bucket is missing")
	}
	keys := credentials.NewEnvAWS()
	if secret, ok := u.User.Password(); ok {
		keys = credentials.NewStaticV4(u.User.Username(), secret, "")
	}
	client, err := minio.New(u.Host, &minio.Options{
		Creds: keys, Secure: u.Query().Get("insecure") != "true", Region: u.Query().Get("region"),
		BucketLookup: minio.BucketLookupAuto,
	})
	if err != nil {
		return nil, fmt.Errorf("store of pictures: %w", err)
	}
	if prefix != "" {
		prefix += "/"
	}
	return &S3{client: client, bucket: bucket, prefix: prefix}, nil
}

// Put stores a file.
func (s *S3) Put(ctx context.Context, name, contentType string, body []byte) error {
	_, err := s.client.PutObject(ctx, s.bucket, s.prefix+name, bytes.NewReader(body), int64(len(body)),
		minio.PutObjectOptions{ContentType: contentType, DisableMultipart: true})
	if err != nil {
		return fmt.Errorf("keep %s: %w", name, err)
	}
	return nil
}

// Get returns a file.
func (s *S3) Get(ctx context.Context, name string) ([]byte, error) {
	object, err := s.client.GetObject(ctx, s.bucket, s.prefix+name, minio.GetObjectOptions{})
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	defer func() { _ = object.Close() }()
	body, err := io.ReadAll(io.LimitReader(object, MaxBytes))
	if err != nil {
		if code := minio.ToErrorResponse(err).Code; code == minio.NoSuchKey {
			return nil, fmt.Errorf("read %s: %w", name, ErrNotFound)
		}
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return body, nil
}

// Open returns the store at an address: s3://… as for OpenS3, InMemory, otherwise a folder.
// closeStore closes it.
func Open(address string) (store Store, closeStore func() error, err error) {
	if address == InMemory {
		return NewMemory(), func() error { return nil }, nil
	}
	if strings.HasPrefix(address, "s3://") {
		s, err := openS3(address)
		return s, func() error { return nil }, err
	}
	d, err := openDisk(strings.TrimPrefix(address, "file://"))
	if err != nil {
		return nil, nil, err
	}
	return d, d.Close, nil
}
