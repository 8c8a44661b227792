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
	f, err := s.client.HMGet(ctx, s.keys.Item(id.ShardOf(sale), item), "gate", "epoch", "since").Result()
	if err != nil {
		return State{}, fmt.Errorf("read gate of %s: %w", item, err)
	}
	var st State
	var errs error
	if gate, ok := f[0].(string); ok {
		st.Gate = gate
	}
	if text, ok := f[1].(string); ok {
		st.Epoch, err = strconv.ParseInt(text, 10, 64)
		errs = errors.Join(errs, err)
	}
	if text, ok := f[2].(string); ok {
		ms, err := strconv.ParseInt(text, 10, 64)
		errs = errors.Join(errs, err)
		st.Since = time.UnixMilli(ms).UTC()
	}
	if errs != nil {
		return State{}, fmt.Errorf("read gate of %s: %w", item, errs)
	}
	return st, nil
}
