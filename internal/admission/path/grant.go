package path

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"seckill/internal/id"
)

// grantBatch is the number of path tokens written in one round trip.
const grantBatch = 1000

// GrantInput lists the users who get path tokens.
type GrantInput struct {
	Sale  uuid.UUID
	Item  uuid.UUID
	Users []uuid.UUID
	Life  time.Duration // 0 = the service's lifetime
}

// Grant issues path tokens without any check, one per user in order, so that a load
// tool can start at the order. It bypasses captchas, the opening and permits: never
// offer it in production. The gate must be loaded, because path tokens carry its epoch.
func (s *Service) Grant(ctx context.Context, in GrantInput) ([]string, error) {
	if in.Life == 0 {
		in.Life = s.cfg.Life
	}
	shard := id.ShardOf(in.Sale)
	epoch, err := s.cfg.Client.HGet(ctx, s.cfg.Keys.Item(shard, in.Item), "epoch").Result()
	if err != nil {
		return nil, fmt.Errorf("grant paths: epoch of %s: %w", in.Item, err)
	}
	tokens := make([]string, len(in.Users))
	for start := 0; start < len(in.Users); start += grantBatch {
		end := min(start+grantBatch, len(in.Users))
		_, err := s.cfg.Client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for i := start; i < end; i++ {
				var err error
				if tokens[i], err = newToken(); err != nil {
					return err
				}
				pipe.Set(ctx, s.cfg.Keys.Path(shard, in.Item, in.Users[i]), epoch+"|"+tokens[i], in.Life)
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("grant paths: %w", err)
		}
	}
	return tokens, nil
}
