package sale

import (
	"context"
	_ "embed"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

// writingLife is how long readers query the database after a writer that has not
// reported its end: longer than any of its transactions.
const writingLife = 15 * time.Second

// versionTimeout is the timeout of a writer's Redis commands: the write itself is more
// important than its immediate visibility to other processes.
const versionTimeout = time.Second

//go:embed lua/writing.lua
var writingLua string

//go:embed lua/version.lua
var versionLua string

var (
	writingScript = redis.NewScript(writingLua)
	versionScript = redis.NewScript(versionLua)
)

// Versions is the version of the catalogue in Redis: browsing reads it instead of the
// database. Code that writes sales or products does so within Write. With a nil
// *Versions, readers query the database every second.
type Versions struct {
	client  redis.UniversalClient
	version string // counter; grows with every write
	writing string // active writers
	log     *slog.Logger
}

// NewVersions returns a Versions with the given key prefix.
func NewVersions(client redis.UniversalClient, prefix string, log *slog.Logger) *Versions {
	return &Versions{client: client, version: prefix + "{catalog}:version", writing: prefix + "{catalog}:writing",
		log: log}
}

// Write runs write, which changes sales or products in the database, and makes the
// change visible to every process. It records the writer first, so that readers find
// the change within a second even if this process crashes. A Redis failure is logged
// and does not stop the write: readers that cannot reach Redis query the database.
func (v *Versions) Write(ctx context.Context, write func(ctx context.Context) error) error {
	if v == nil {
		return write(ctx)
	}
	token := uuid.NewString()
	v.try(ctx, "note a writer", func(ctx context.Context) error {
		return writingScript.Run(ctx, v.client, []string{v.writing}, token, writingLife.Milliseconds()).Err()
	})
	err := write(ctx)
	// Also after an error: a commit whose reply was lost may have happened.
	v.try(ctx, "publish the new version", func(ctx context.Context) error {
		_, err := v.client.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
			pipe.Incr(ctx, v.version)
			pipe.ZRem(ctx, v.writing, token)
			return nil
		})
		return err
	})
	return err
}

func (v *Versions) try(ctx context.Context, what string, do func(ctx context.Context) error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), versionTimeout)
	defer cancel()
	if err := do(ctx); err != nil {
		v.log.WarnContext(ctx, "version of the catalogue", slog.String("step", what), slog.Any("error", err))
	}
}

// mark is the version as it was read. The zero mark is never current.
type mark struct {
	known   bool
	version int64
	writers int64
}

// settled reports whether a catalogue read under m is still the newest, given the
// present mark.
func (m mark) settled(now mark) bool {
	return m.known && now.known && m.version == now.version && now.writers == 0
}

// read returns the mark; the zero mark if Redis cannot be read.
func (v *Versions) read(ctx context.Context) mark {
	if v == nil {
		return mark{}
	}
	reply, err := versionScript.Run(ctx, v.client, []string{v.version, v.writing}).Int64Slice()
	if err == nil && len(reply) != 2 {
		err = fmt.Errorf("reply of %d values", len(reply))
	}
	if err != nil {
		v.log.WarnContext(ctx, "version of the catalogue", slog.String("step", "read"), slog.Any("error", err))
		return mark{}
	}
	return mark{known: true, version: reply[0], writers: reply[1]}
}
