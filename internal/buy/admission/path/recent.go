package path

import (
	"context"
	"time"

	"seckill/internal/platform/id"
)

const (
	// recentLife bounds the age of what Recent returns: a permit that is returned is given
	// out again within that time.
	recentLife = 20 * time.Millisecond
	// maxRecent is the number of items from which those that are too old are removed.
	maxRecent = 1024
)

// recent is what the script replied of an item: the outcome for a user without an unused path
// token.
type recent struct {
	reply
	asked time.Time // local time before the call
}

// Recent returns the refusal that a user without an unused path token and without a
// reservation would get for an item; nil if that is not known. It is from a reply of Redis
// for another buyer, at most 20 ms old, so that a crowd that has to wait costs one call in
// that time instead of one each.
func (s *Service) Recent(ctx context.Context, in IssueInput) error {
	s.mu.Lock()
	last, ok := s.recent[in.Item]
	s.mu.Unlock()
	age := time.Since(last.asked)
	if !ok || age > recentLife {
		return nil
	}
	switch last.outcome {
	case outcomePaused, outcomeNotStarted, outcomeEnded, outcomeSoldOut, outcomeNoPermit:
		last.now = last.now.Add(age)
		return s.refusal(ctx, in, last.reply, "")
	case outcomeIssued, outcomeNotLoaded, outcomeHolding, outcomeLimit, outcomePerson, outcomeExpiries, outcomeCaptcha:
	}
	return nil
}

// keep stores what a call replied of its items.
func (s *Service) keep(items map[id.Item]reply, asked time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.recent) > maxRecent {
		for item, last := range s.recent {
			if asked.Sub(last.asked) > recentLife {
				delete(s.recent, item)
			}
		}
	}
	for item, r := range items {
		if last := s.recent[item]; last.asked.Before(asked) {
			s.recent[item] = recent{r, asked}
		}
	}
}
