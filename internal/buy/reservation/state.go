package reservation

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/internal/platform/id"
)

// Gate states, as stored in the item hash.
const (
	GateOpen    = "open"
	GatePaused  = "paused"
	GateEnded   = "ended"
	GateLoading = "loading"
)

// State is the state of an item's gate in Redis, for the code that maintains it.
type State struct {
	Gate  string    // "" when there is no gate
	Epoch int64     // 0 when there is no gate
	Since time.Time // last step of the present build
	// SaleRevision is the revision of the sale that set the state.
	SaleRevision int64
	Opens        time.Time // zero while the gate is being built
	Closes       time.Time // as Opens
	Stock        int       // available units; 0 while the gate is being built
	Total        int       // units put on sale; as Stock
	Revision     int64     // of the stock; 0 if the gate was never built
	// Stale means that the gate was built before the last restart, failover or restore
	// of Redis, or that Redis has lost the units per buyer of its sale. Its units cannot be
	// reserved.
	Stale bool
}

// State returns the state of the gate of an item.
func (g *Gate) State(ctx context.Context, sale id.Sale, item id.Item) (State, error) {
	f, err := stateScript.Run(ctx, g.client,
		[]string{g.keys.Item(id.ShardOf(sale), item), g.keys.Units(id.ShardOf(sale), sale)}).StringSlice()
	if err == nil && len(f) != 10 {
		err = fmt.Errorf("reply of %d values", len(f))
	}
	if err != nil {
		return State{}, fmt.Errorf("read gate of %s: %w", item, err)
	}
	var errs error
	number := func(text string) int64 {
		if text == "" {
			return 0
		}
		n, err := strconv.ParseInt(text, 10, 64)
		errs = errors.Join(errs, err)
		return n
	}
	st := State{
		Gate: f[0], Epoch: number(f[1]), SaleRevision: number(f[3]), Stock: int(number(f[4])), Revision: number(f[6]),
		Stale: f[5] == "0",
	}
	st.Total = int(number(f[9]))
	st.Since = moment(number(f[2]))
	st.Opens, st.Closes = moment(number(f[7])), moment(number(f[8]))
	if errs != nil {
		return State{}, fmt.Errorf("read gate of %s: %w", item, errs)
	}
	return st, nil
}

// moment returns a time of a gate in Unix ms; 0 = none.
func moment(ms int64) time.Time {
	if ms <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// StateChange is a new state of an item's gate.
type StateChange struct {
	Sale     id.Sale
	Item     id.Item
	Epoch    int64
	Revision int64  // of the sale, in which State was set
	State    string // GateOpen, GatePaused or GateEnded
	Opens    time.Time
	Closes   time.Time
}

// StateSet is the outcome of SetState.
type StateSet struct {
	// Done is false if there is no gate, if it is being built, if a later revision has set
	// its state, or, for GateOpen, if it has another epoch.
	Done         bool
	Epoch        int64 // of the gate; 0 = there is none
	SaleRevision int64 // that set the former state; 0 = none
}

// SetState sets the state and the times of a gate. GateEnded applies whatever revision
// the gate has: nothing comes after the end of a sale.
func (g *Gate) SetState(ctx context.Context, c StateChange) (StateSet, error) {
	reply, err := setStateScript.Run(ctx, g.client, []string{g.keys.Item(id.ShardOf(c.Sale), c.Item)},
		c.Epoch, c.Revision, c.State, c.Opens.UnixMilli(), c.Closes.UnixMilli()).Int64Slice()
	if err == nil && len(reply) != 3 {
		err = fmt.Errorf("reply of %d values", len(reply))
	}
	if err != nil {
		return StateSet{}, fmt.Errorf("set gate of %s to %s: %w", c.Item, c.State, err)
	}
	return StateSet{Done: reply[0] == 1, Epoch: reply[1], SaleRevision: reply[2]}, nil
}

// AdjustCode is the outcome of an adjustment. The numbers are those of
// lua/adjust.lua.
type AdjustCode int

// Outcomes of an adjustment.
const (
	AdjustDone       AdjustCode = 1
	AdjustDoneBefore AdjustCode = 2 // the gate has counted this adjustment before
	AdjustNothing    AdjustCode = 3 // the adjustment to undo was not counted by this gate
	AdjustTooFew     AdjustCode = 0 // fewer units are available than are to be removed
	AdjustNotLoaded  AdjustCode = -1
	AdjustBuilding   AdjustCode = -2 // the gate is being built; try again
)

// Adjustment adds units to the available stock, or removes available units.
type Adjustment struct {
	Sale   id.Sale
	Item   id.Item
	Act    id.Act // idempotency key of the adjustment
	Units  int    // signed
	Undoes id.Act // the adjustment to undo, if the gate counted it; Nil = none
}

// Adjusted is the result of an adjustment.
type Adjusted struct {
	Code      AdjustCode
	Remaining int
	Revision  int64
	Epoch     int64
}

// Counted reports whether the gate's stock includes the adjustment.
func (a Adjusted) Counted() bool { return a.Code == AdjustDone || a.Code == AdjustDoneBefore }

func (a Adjustment) undone() string {
	if a.Undoes.IsZero() {
		return ""
	}
	return a.Undoes.String()
}

// Adjust changes the stock of an item's gate, once per act.
func (g *Gate) Adjust(ctx context.Context, a Adjustment) (Adjusted, error) {
	reply, err := adjustScript.Run(ctx, g.client, []string{g.keys.Item(id.ShardOf(a.Sale), a.Item)},
		a.Act.String(), a.Units, a.undone()).Int64Slice()
	if err == nil && len(reply) != 4 {
		err = fmt.Errorf("reply of %d values", len(reply))
	}
	if err != nil {
		return Adjusted{}, fmt.Errorf("adjust stock of %s: %w", a.Item, err)
	}
	return Adjusted{Code: AdjustCode(reply[0]), Remaining: int(reply[1]), Revision: reply[2], Epoch: reply[3]}, nil
}

// Unload removes the gate of an item whose sale is over, unless it has a higher epoch.
// It reports whether a gate was removed. The idempotency keys of its reservations are
// kept.
func (g *Gate) Unload(ctx context.Context, sale id.Sale, item id.Item, epoch int64) (bool, error) {
	shard := id.ShardOf(sale)
	keys := []string{g.keys.Item(shard, item), g.keys.Reservations(shard, item), g.keys.Permits(shard, item),
		g.keys.FormerReservations(shard, item), g.keys.Units(shard, sale)}
	for _, hash := range []string{keys[1], keys[3]} {
		if err := g.keepKeys(ctx, sale, item, hash, func() error { return nil }); err != nil {
			return false, err
		}
	}
	done, err := unloadScript.Run(ctx, g.client, keys, epoch).Int()
	if err != nil {
		return false, fmt.Errorf("unload gate of %s: %w", item, err)
	}
	return done == 1, nil
}

// Refs returns the items of gates by their keys. A gate that was never open has no sale,
// and is left out.
func (g *Gate) Refs(ctx context.Context, keys []string) ([]ItemRef, error) {
	var refs []ItemRef
	for _, key := range keys {
		item, ok := g.keys.ItemOf(key)
		if !ok {
			continue
		}
		text, err := g.readClient.HGet(ctx, key, "sale").Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			return nil, fmt.Errorf("read the sale of item %s: %w", item, err)
		}
		if sale, err := id.ParseUUID[id.Sale](text); err == nil {
			refs = append(refs, ItemRef{Sale: sale, Item: item})
		}
	}
	return refs, nil
}

// Suspend stops an open gate until it is rebuilt, or its state is set.
func (g *Gate) Suspend(ctx context.Context, ref ItemRef) error {
	if err := suspendScript.Run(ctx, g.client, []string{g.keys.Item(id.ShardOf(ref.Sale), ref.Item)}).Err(); err != nil {
		return fmt.Errorf("suspend gate of %s: %w", ref.Item, err)
	}
	return nil
}
