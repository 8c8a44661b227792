package reservation

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"seckill/internal/id"
)

// State is how the gate of an item stands in Redis, for those who keep it.
type State struct {
	Gate  string    // "" when there is no gate
	Epoch int64     // 0 when there is no gate
	Since time.Time // when the present build began
	// SaleRevision is the revision of the sale that turned the gate last.
	SaleRevision int64
	Stock        int // units left; 0 while it is being built
	// Foreign says that the gate was built in another life of the server: Redis was
	// restarted, failed over or restored. Nothing can be reserved there.
	Foreign bool
}

// States reads how gates stand.
type States struct {
	client redis.UniversalClient
	keys   Keys
}

// NewStates returns a reader of gate states.
func NewStates(client redis.UniversalClient, keys Keys) *States {
	return &States{client: client, keys: keys}
}

// Of returns how the gate of an item stands.
func (s *States) Of(ctx context.Context, sale, item uuid.UUID) (State, error) {
	f, err := stateScript.Run(ctx, s.client, []string{s.keys.Item(id.ShardOf(sale), item)}).StringSlice()
	if err != nil {
		return State{}, fmt.Errorf("read gate of %s: %w", item, err)
	}
	if len(f) != 6 {
		return State{}, fmt.Errorf("read gate of %s: reply of %d values", item, len(f))
	}
	st := State{Gate: f[0], Foreign: f[5] == "0"}
	var errs error
	number := func(text string) int64 {
		if text == "" {
			return 0
		}
		n, err := strconv.ParseInt(text, 10, 64)
		errs = errors.Join(errs, err)
		return n
	}
	st.Epoch, st.SaleRevision, st.Stock = number(f[1]), number(f[3]), int(number(f[4]))
	if ms := number(f[2]); ms > 0 {
		st.Since = time.UnixMilli(ms).UTC()
	}
	if errs != nil {
		return State{}, fmt.Errorf("read gate of %s: %w", item, errs)
	}
	return st, nil
}
