package stream

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"seckill/internal/platform/redisconn"
)

//go:embed lua/trim.lua
var trim string

// Trimmer removes finished entries, which watermill never does: those that every group
// of a stream has read and acknowledged. MAXLEN would remove unread ones.
type Trimmer struct {
	client  redis.UniversalClient
	keys    []string
	script  *redis.Script
	metrics *Metrics
}

// NewTrimmer returns a trimmer of the streams under keys.
func NewTrimmer(client redis.UniversalClient, keys []string, metrics *Metrics) *Trimmer {
	return &Trimmer{client: client, keys: keys, script: redis.NewScript(trim), metrics: metrics}
}

// Step trims every stream once. It is a periodic.Step and may run on all processes
// concurrently. A stream that fails does not prevent the others.
func (t *Trimmer) Step(ctx context.Context) (counts map[string]int, err error) {
	total := 0
	var failed []error
	runs := make([]redisconn.Run, len(t.keys))
	for i, key := range t.keys {
		runs[i].Keys = []string{key}
	}
	for i, reply := range redisconn.RunEach(ctx, t.client, t.script, runs) {
		key := t.keys[i]
		n, err := reply.Int()
		if err != nil {
			failed = append(failed, fmt.Errorf("trim %s: %w", key, err))
			continue
		}
		t.metrics.count(Trimmed, key, n)
		total += n
	}
	return map[string]int{"trimmed": total}, errors.Join(failed...)
}
