package payment

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// awayAfter is how many calls in a row must fail before a provider counts as away:
	// one lost call says nothing.
	awayAfter = 5
	// awayFor is how long a provider that is away is not offered. Then the next buyer
	// tries it, and one failure more hides it again.
	awayFor = 30 * time.Second
)

// breakers know which providers are away, as far as the calls of this process show.
type breakers struct {
	mu     sync.Mutex
	states map[string]*breaker // by provider, guarded by mu
}

type breaker struct {
	failures int // in a row
	until    time.Time
}

func (b *breakers) away(provider string, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	state := b.states[provider]
	return state != nil && now.Before(state.until)
}

// recordResult records the result of a call, and reports whether the provider went away or came
// back with it.
func (b *breakers) recordResult(provider string, failed bool, now time.Time) (away, changed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.states == nil {
		b.states = map[string]*breaker{}
	}
	state := b.states[provider]
	if state == nil {
		state = &breaker{}
		b.states[provider] = state
	}
	was := state.failures >= awayAfter
	if !failed {
		*state = breaker{}
		return false, was
	}
	if state.failures++; state.failures < awayAfter {
		return false, false
	}
	state.until = now.Add(awayFor)
	return true, !was
}

// noteCall records the result of a call. A refusal of the request is an answer; other errors of a
// close or a refund are about one payment, and say nothing about the provider.
func (s *Service) noteCall(ctx context.Context, provider, step string, err error) {
	failed := err != nil && !isRequestRefused(err)
	if failed && step != "create" && step != "query" {
		return
	}
	now := s.now()
	away, changed := s.breakers.recordResult(provider, failed, now)
	s.metrics.setAway(provider, away)
	switch {
	case away:
		s.reportProvider(ctx, provider, now.Add(awayFor))
	case changed:
		s.reportProvider(ctx, provider, time.Time{})
	}
	switch {
	case !changed:
	case away:
		s.cfg.Log.Error("payment provider is away; it is not offered", slog.String("provider", provider), slog.Any("error",
			err))
	default:
		s.cfg.Log.Info("payment provider answers again", slog.String("provider", provider))
	}
}

// reportProvider reports to the inbox until when a provider is away; a zero time means that
// it answers.
func (s *Service) reportProvider(ctx context.Context, provider string, until time.Time) {
	if s.cfg.Inbox != nil {
		s.cfg.Inbox.ProviderAway(ctx, provider, until)
	}
}
