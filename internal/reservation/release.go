package reservation

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"seckill/internal/id"
)

// Ref names a reservation.
type Ref struct {
	Sale, Item, User uuid.UUID
	Task             uuid.UUID // or the waitlist entry that the units are reserved for
	// Expired counts the release against the buyer, who did not pay in time.
	Expired bool
	// Oversold removes the units instead of returning them: Postgres refused the order
	// because it has no such units.
	Oversold bool
}

const (
	// MaxExpired is how many reservations of one buyer may expire in a sale before a
	// wait: a buyer who never pays keeps units from others.
	MaxExpired = 2
	// ExpiredWait is that wait, from the last expiry.
	ExpiredWait = 30 * time.Minute
)

// Released is the outcome of a release.
type Released struct {
	Done      bool // false: no reservation has that task, or there is no gate, so nothing changed
	Building  bool // the gate is being built and may have the reservation: release again later
	Remaining int
	Revision  int64
	Epoch     int64
}

// Release returns the units of one reservation to the available stock, once per task
// however often it is called.
func (g *Gate) Release(ctx context.Context, r Ref) (Released, error) {
	shard := id.ShardOf(r.Sale)
	keys := []string{g.keys.Item(shard, r.Item), g.keys.Reservations(shard, r.Item), g.keys.Expiries(shard, r.Sale, r.User)}
	var wait time.Duration
	if r.Expired {
		wait = ExpiredWait
	}
	reply, err := releaseScript.Run(ctx, g.client, keys, r.User.String(), r.Task.String(), wait.Milliseconds(), r.Oversold).Int64Slice()
	if err == nil && len(reply) != 4 {
		err = fmt.Errorf("reply of %d values", len(reply))
	}
	if err != nil {
		return Released{}, fmt.Errorf("release %s: %w", r.Task, err)
	}
	return Released{
		Done: reply[0] == 1, Building: reply[0] == -2,
		Remaining: int(reply[1]), Revision: reply[2], Epoch: reply[3],
	}, nil
}
