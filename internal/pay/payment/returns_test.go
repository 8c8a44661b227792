package payment_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"seckill/internal/buy/order"
	"seckill/internal/pay/payment"
	"seckill/internal/platform/id"
)

// deadShard fails every command on keys of one shard, as a Redis Cluster does when that
// shard has no master.
type deadShard struct{ tag string }

var errNoMaster = errors.New("dial tcp: connection refused")

func (d deadShard) DialHook(next redis.DialHook) redis.DialHook { return next }

func (d deadShard) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (d deadShard) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		for _, arg := range cmd.Args() {
			if key, ok := arg.(string); ok && strings.Contains(key, d.tag) {
				cmd.SetErr(errNoMaster)
				return errNoMaster
			}
		}
		return next(ctx, cmd)
	}
}

func TestReturnsToAnUnreachableShardDelayNoOther(t *testing.T) {
	t.Parallel()
	s := newShop(t, 20)
	cancelled := func(n int) {
		for range n {
			o := s.buy()
			_, err := s.pay.Cancel(t.Context(), o.ID, o.User, "")
			s.must(err)
		}
	}
	cancelled(20) // ids are ordered by time, so these are processed first
	dead := id.ShardOf(s.sale)
	for {
		s.newSale(5)
		if id.ShardOf(s.sale) != dead {
			break
		}
	}
	cancelled(5)
	s.conn.Script.AddHook(deadShard{tag: fmt.Sprintf("{s%02d}", dead)})
	gate := payment.NewRedisGate(s.releaser, nil)
	counts, err := order.OrderReturns(s.db, gate.ReturnAll, s.clock, quiet).Step(t.Context())
	if !errors.Is(err, errNoMaster) {
		t.Errorf("error %v, want that of the dead shard", err)
	}
	if counts["orders"] != 5 {
		t.Errorf("returned %v, want the 5 orders of the other shard", counts)
	}
	s.wantFigures(figures{available: 5, stock: 5})
}
