package media

import (
	"context"
	"fmt"
	"sync"
)

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
