package path

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/internal/buy/reservation"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/id"
)

// grantBatch is the number of path tokens written in one round trip.
const grantBatch = 1000

// GrantInput lists the users who get path tokens.
type GrantInput struct {
	Sale  id.Sale
	Item  id.Item
	Users []id.User
	Life  time.Duration // 0 = the service's lifetime
}

// Grant issues path tokens without any check, one per user in order, so that a load
// tool can start at the order. It bypasses captchas, the opening and the count of
// permits: never offer it in production. The gate must be loaded, because path tokens carry its epoch.
func (s *Service) Grant(ctx context.Context, in GrantInput) ([]string, error) {
	if in.Life == 0 {
		in.Life = s.cfg.Life
	}
	shard := id.ShardOf(in.Sale)
	epoch, err := s.cfg.Client.HGet(ctx, s.cfg.Keys.Item(shard, in.Item), "epoch").Int64()
	if err != nil {
		return nil, fmt.Errorf("grant paths: epoch of %s: %w", in.Item, err)
	}
	now, err := s.cfg.Client.Time(ctx).Result()
	if err != nil {
		return nil, fmt.Errorf("grant paths: %w", err)
	}
	// negative: not counted
	permit := reservation.Permit{Epoch: epoch, Until: time.UnixMilli(-now.Add(in.Life).UnixMilli())}
	permits := s.cfg.Keys.Permits(shard, in.Item)
	for batch := range slices.Chunk(in.Users, grantBatch) {
		members := collect.Map(batch, func(user id.User) redis.Z {
			return redis.Z{Score: float64(permit.Until.UnixMilli()), Member: user.String()}
		})
		if err := s.cfg.Client.ZAdd(ctx, permits, members...).Err(); err != nil {
			return nil, fmt.Errorf("grant paths: %w", err)
		}
	}
	if err := s.cfg.Client.PExpire(ctx, permits, in.Life+reservation.ExpiredWait).Err(); err != nil {
		return nil, fmt.Errorf("grant paths: %w", err)
	}
	return collect.Map(in.Users, func(user id.User) string { return s.cfg.Tokens.Token(user, in.Item, permit) }), nil
}
