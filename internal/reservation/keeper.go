package reservation

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"seckill/internal/id"
)

//go:embed lua/adjust.lua
var adjustLua string

//go:embed lua/gate.lua
var gateLua string

//go:embed lua/unload.lua
var unloadLua string

var (
	adjustScript = redis.NewScript(adjustLua)
	gateScript   = redis.NewScript(gateLua)
	unloadScript = redis.NewScript(unloadLua)
)

// Keeper changes gates that stand: their state, their stock, and their end. Each
// change may be made again without harm.
type Keeper struct {
	client redis.UniversalClient
	keys   Keys
}

// NewKeeper returns a keeper.
func NewKeeper(client redis.UniversalClient, keys Keys) *Keeper {
	return &Keeper{client: client, keys: keys}
}

// Turn is a wanted state of an item's gate.
type Turn struct {
	Sale, Item uuid.UUID
	Epoch      int64
	Revision   int64  // of the sale, when it was decided
	State      string // GateOpen, GatePaused or GateEnded
}

// Turn sets the state of a gate. It returns false when there is no gate of that
// epoch, when it is being built, or when a later revision was here first.
func (k *Keeper) Turn(ctx context.Context, t Turn) (bool, error) {
	done, err := gateScript.Run(ctx, k.client, []string{k.keys.Item(id.ShardOf(t.Sale), t.Item)},
		t.Epoch, t.Revision, t.State).Int()
	if err != nil {
		return false, fmt.Errorf("turn gate of %s to %s: %w", t.Item, t.State, err)
	}
	return done == 1, nil
}

// AdjustCode is the outcome of an adjustment. The numbers are those of
// lua/adjust.lua.
type AdjustCode int

// Outcomes of an adjustment.
const (
	AdjustDone       AdjustCode = 1
	AdjustDoneBefore AdjustCode = 2 // the gate has counted this act already
	AdjustNothing    AdjustCode = 3 // the act to take back was not counted by this gate
	AdjustTooFew     AdjustCode = 0 // fewer units are left than are to be taken off
	AdjustNotLoaded  AdjustCode = -1
	AdjustBuilding   AdjustCode = -2 // the gate is being built; ask again
)

// Adjustment puts units on sale, or takes units nobody has off it.
type Adjustment struct {
	Sale, Item uuid.UUID
	Act        uuid.UUID // counts once
	Units      int       // signed
	TakesBack  uuid.UUID // the act that this one undoes, if the gate counted it; Nil = none
}

// Adjusted is the answer to an adjustment.
type Adjusted struct {
	Code      AdjustCode
	Remaining int
	Revision  int64
	Epoch     int64
}

// Counted reports whether the gate has the act in its stock.
func (a Adjusted) Counted() bool { return a.Code == AdjustDone || a.Code == AdjustDoneBefore }

func (a Adjustment) undone() string {
	if a.TakesBack == uuid.Nil {
		return ""
	}
	return a.TakesBack.String()
}

// Adjust changes the stock of an item's gate, once per act.
func (k *Keeper) Adjust(ctx context.Context, a Adjustment) (Adjusted, error) {
	reply, err := adjustScript.Run(ctx, k.client, []string{k.keys.Item(id.ShardOf(a.Sale), a.Item)},
		a.Act.String(), a.Units, a.undone()).Int64Slice()
	if err != nil {
		return Adjusted{}, fmt.Errorf("adjust stock of %s: %w", a.Item, err)
	}
	if len(reply) != 4 {
		return Adjusted{}, fmt.Errorf("adjust stock of %s: reply of %d values", a.Item, len(reply))
	}
	return Adjusted{Code: AdjustCode(reply[0]), Remaining: int(reply[1]), Revision: reply[2], Epoch: reply[3]}, nil
}

// Unload removes the gate of an item whose sale is over, unless it has a
// higher epoch. It returns whether there was one.
func (k *Keeper) Unload(ctx context.Context, sale, item uuid.UUID, epoch int64) (bool, error) {
	shard := id.ShardOf(sale)
	keys := []string{k.keys.Item(shard, item), k.keys.Holders(shard, item), k.keys.Permits(shard, item)}
	done, err := unloadScript.Run(ctx, k.client, keys, epoch).Int()
	if err != nil {
		return false, fmt.Errorf("unload gate of %s: %w", item, err)
	}
	return done == 1, nil
}
