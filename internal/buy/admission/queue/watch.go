package queue

import (
	"context"
	"time"

	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/notifier"
)

// beatEvery is the interval at which a follower reads its ticket: the interval of its
// heartbeat, and the maximum delay of a change.
const beatEvery = time.Second

// Watch returns the state of a user's ticket: the present one, then every change, at
// most one per second, until the ticket no longer waits or ctx ends. Watching is the
// heartbeat. A failed read is made up for by the next. The error is NOT_FOUND if the
// user has no such ticket.
func (s *Service) Watch(ctx context.Context, ticketID id.Ticket, user id.User) (<-chan notifier.State[*Ticket], error) {
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
		return nil, fault.New(fault.NotFound, "There is no such ticket.")
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
			now.Position.steady(next.Value.Position)
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

// same reports whether two reads are equal for the client.
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
