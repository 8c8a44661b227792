package queue

import (
	"context"
	"time"

	"github.com/google/uuid"

	"seckill/internal/fault"
	"seckill/internal/notifier"
)

// beatEvery is how often a follower reads its place, which is the heartbeat that
// keeps it, and so how often it hears of a change at most.
const beatEvery = time.Second

// Watch follows a place of the person: how it stands now, then every change, at
// most one a second, until it is no longer waiting or ctx ends. Watching is the
// heartbeat. A reading that fails is made up for by the next. The error is
// NOT_FOUND when the person has no such place.
func (s *Service) Watch(ctx context.Context, ticketID, user uuid.UUID) (<-chan notifier.State[*Ticket], error) {
	t, err := s.find(ctx, ticketID)
	if err != nil {
		return nil, err
	}
	if t != nil && t.User == user {
		t, err = s.look(ctx, *t, true)
	}
	if err != nil {
		return nil, err
	}
	if t == nil || t.User != user {
		return nil, fault.New(fault.NotFound, "There is no such place.")
	}
	out := make(chan notifier.State[*Ticket])
	go s.follow(ctx, t, out)
	return out, nil
}

func (s *Service) follow(ctx context.Context, t *Ticket, out chan<- notifier.State[*Ticket]) {
	defer close(out)
	ticker := time.NewTicker(beatEvery)
	defer ticker.Stop()
	next := notifier.State[*Ticket]{Value: t, Revision: 1, Terminal: t.Status != Waiting, Snapshot: true}
	for unsent := true; ; {
		var ready chan<- notifier.State[*Ticket]
		if unsent {
			ready = out
		}
		select {
		case <-ctx.Done():
			return
		case ready <- next:
			if next.Terminal {
				return
			}
			unsent = false
		case <-ticker.C:
			now, err := s.look(ctx, *t, true)
			if err != nil || next.Terminal {
				continue
			}
			if now == nil {
				gone := *next.Value
				gone.Status, gone.Position, gone.Path = Left, nil, nil
				now = &gone
			}
			if now.same(next.Value) {
				continue
			}
			next = notifier.State[*Ticket]{
				Value: now, Revision: next.Revision + 1, Terminal: now.Status != Waiting, Snapshot: unsent && next.Snapshot,
			}
			unsent = true
		}
	}
}

// same says whether two readings tell the person the same.
func (t *Ticket) same(u *Ticket) bool {
	if t.Status != u.Status || (t.Position == nil) != (u.Position == nil) {
		return false
	}
	if t.Position == nil {
		return true
	}
	return t.Position.Ahead == u.Position.Ahead && equal(t.Position.Wait, u.Position.Wait) &&
		equal(t.Position.Chance, u.Position.Chance)
}

func equal[T comparable](a, b *T) bool {
	return a == b || (a != nil && b != nil && *a == *b)
}
