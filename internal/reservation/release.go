package reservation

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"seckill/internal/id"
)

// Hold names units that somebody holds.
type Hold struct {
	Sale, Item, User, Task uuid.UUID
	// Lapsed says that nobody paid in time: it counts against the person.
	Lapsed bool
}

const (
	// MaxLapses is how many holds of one person may lapse in a sale before a wait:
	// whoever never pays keeps units from those who would.
	MaxLapses = 2
	// LapseWait is that wait, from the last lapse.
	LapseWait = 30 * time.Minute
)

// Released is the answer to a release.
type Released struct {
	Done      bool // false: nothing was held under that task, or there is no gate, so nothing changed
	Building  bool // the gate is being built, and may have the units held: release again later
	Remaining int
	Revision  int64
	Epoch     int64
}

// Releaser gives units back.
type Releaser struct {
	client redis.UniversalClient
	keys   Keys
}

// NewReleaser returns a releaser.
func NewReleaser(client redis.UniversalClient, keys Keys) *Releaser {
	return &Releaser{client: client, keys: keys}
}

// Release gives the units of one hold back to the open stock. It is idempotent:
// units come back once per task, however often it is called. While the gate is being
// built nothing changes.
func (r *Releaser) Release(ctx context.Context, h Hold) (Released, error) {
	shard := id.ShardOf(h.Sale)
	keys := []string{r.keys.Item(shard, h.Item), r.keys.Holders(shard, h.Item), r.keys.Lapses(shard, h.Sale, h.User)}
	var wait time.Duration
	if h.Lapsed {
		wait = LapseWait
	}
	reply, err := releaseScript.Run(ctx, r.client, keys, h.User.String(), h.Task.String(), wait.Milliseconds()).Int64Slice()
	if err != nil {
		return Released{}, fmt.Errorf("release %s: %w", h.Task, err)
	}
	if len(reply) != 4 {
		return Released{}, fmt.Errorf("release %s: reply of %d values", h.Task, len(reply))
	}
	return Released{
		Done: reply[0] == 1, Building: reply[0] == -2,
		Remaining: int(reply[1]), Revision: reply[2], Epoch: reply[3],
	}, nil
}
