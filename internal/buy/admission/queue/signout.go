package queue

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"seckill/internal/platform/id"
	"seckill/internal/platform/redisconn"
)

// SignedOut ends the tickets of sessions, and voids their unused path tokens. A ticket
// that another session of the user took over stays.
func (s *Service) SignedOut(ctx context.Context, sessions ...id.Session) error {
	var errs []error
	for _, session := range sessions {
		errs = append(errs, s.signedOut(ctx, session))
	}
	return errors.Join(errs...)
}

func (s *Service) signedOut(ctx context.Context, session id.Session) error {
	sets := make([]*redis.StringSliceCmd, id.Shards)
	pipe := s.cfg.Client.Pipeline()
	for shard := range sets {
		sets[shard] = pipe.SMembers(ctx, s.cfg.Keys.SessionTickets(shard, session))
	}
	redisconn.ExecEach(ctx, pipe)
	var errs []error
	for shard, set := range sets {
		if err := set.Err(); err != nil {
			errs = append(errs, unavailable("list tickets of a session", err))
		}
		for _, text := range set.Val() {
			errs = append(errs, s.giveUp(ctx, shard, text, session))
		}
	}
	return errors.Join(errs...)
}

// giveUp ends one ticket if it still belongs to the session.
func (s *Service) giveUp(ctx context.Context, shard int, text string, session id.Session) error {
	ticket, err := id.ParseUUID[id.Ticket](text)
	if err != nil {
		return fmt.Errorf("place of a session: %w", err)
	}
	holder, err := s.cfg.Client.HMGet(ctx, s.cfg.Keys.Ticket(shard, ticket), "session", "user").Result()
	if err != nil {
		return unavailable("read ticket", err)
	}
	if holder[0] != session.String() {
		return nil
	}
	userText, _ := holder[1].(string)
	user, err := id.ParseUUID[id.User](userText)
	if err != nil {
		return fmt.Errorf("ticket %s: %w", ticket, err)
	}
	_, err = s.Leave(ctx, ticket, user)
	return err
}
