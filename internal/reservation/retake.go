package reservation

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"seckill/internal/id"
)

//go:embed lua/retake.lua
var retakeLua string

var retakeScript = redis.NewScript(runLua + retakeLua)

// RetakeCode is the outcome of taking units again. The numbers are those of
// lua/retake.lua.
type RetakeCode int

// Outcomes of taking units again.
const (
	RetakeDone       RetakeCode = 1
	RetakeDoneBefore RetakeCode = 2  // under the same name
	RetakeTooFew     RetakeCode = 0  // fewer units are left
	RetakeNotLoaded  RetakeCode = -1 // the item has no gate in Redis
	RetakeNotYet     RetakeCode = -2 // the gate is being built, or what was held before is not back yet
	RetakeOther      RetakeCode = -3 // the user holds units for another order
)

// Retake names units to take again for an order that had lapsed.
type Retake struct {
	Hold               // its Task is the new name of the claim
	Before   uuid.UUID // the name under which the units were held
	Quantity int
}

// Retaken is the answer to a Retake.
type Retaken struct {
	Code      RetakeCode
	Remaining int
	Revision  int64
	Epoch     int64
}

// Retake takes units past window, path and queue for a buyer who had them. It is
// idempotent: units are taken once per name, however often it is called.
func (r *Releaser) Retake(ctx context.Context, t Retake) (Retaken, error) {
	shard := id.ShardOf(t.Sale)
	keys := []string{r.keys.Item(shard, t.Item), r.keys.Holders(shard, t.Item)}
	reply, err := retakeScript.Run(ctx, r.client, keys, t.User.String(), t.Task.String(), t.Quantity, t.Before.String()).Int64Slice()
	if err != nil {
		return Retaken{}, fmt.Errorf("retake %s: %w", t.Task, err)
	}
	if len(reply) != 4 {
		return Retaken{}, fmt.Errorf("retake %s: reply of %d values", t.Task, len(reply))
	}
	return Retaken{Code: RetakeCode(reply[0]), Remaining: int(reply[1]), Revision: reply[2], Epoch: reply[3]}, nil
}
