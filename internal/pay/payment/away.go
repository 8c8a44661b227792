package payment

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"seckill/ent"
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

// goneEvery is the interval of the warnings about a provider that is not set up.
const goneEvery = time.Hour

// goneWarnings are the times of the last warnings, by what waits and provider.
type goneWarnings struct {
	mu   sync.Mutex
	last map[[2]string]time.Time // guarded by mu
}

// putOffGone puts off the checks of payments whose provider is not set up in this process, and warns
// while one of their orders can wait for it.
func (s *Service) putOffGone(ctx context.Context, rows []*ent.Payment, now time.Time) (map[string]int, error) {
	for _, row := range rows {
		if now.Before(row.ExpiresAt.Add(providerGrace)) { // then the order expires without the provider
			s.warnGone(ctx, "payments", row.Provider, "set the provider up again until its payments are paid or have expired, "+
				"or end their orders: seckill order expire, or *Release unpaid order* on the admin pages")
		}
		if err := s.later(ctx, row, now); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// warnGone logs what to do about a provider that is not set up, once in goneEvery.
func (s *Service) warnGone(ctx context.Context, what, provider, advice string) {
	now := s.cfg.Clock.Now()
	s.gone.mu.Lock()
	defer s.gone.mu.Unlock()
	key := [2]string{what, provider}
	if last, ok := s.gone.last[key]; ok && now.Sub(last) < goneEvery {
		return
	}
	if s.gone.last == nil {
		s.gone.last = map[[2]string]time.Time{}
	}
	s.gone.last[key] = now
	setting := "payments." + provider
	if provider == "sandbox" {
		setting = "SECKILL_SANDBOX=trial"
	}
	s.cfg.Log.WarnContext(ctx, "payments or refunds of a provider that is not set up", slog.String("waiting", what),
		slog.String("advice", advice), slog.String("provider", provider), slog.String("setting", setting))
}

// putOffGoneRefunds puts off refunds whose provider is not set up in this process.
func (s *Service) putOffGoneRefunds(ctx context.Context, rows []*ent.Refund, now time.Time) error {
	for _, row := range rows {
		of, err := s.cfg.DB.Ent.Payment.Get(ctx, row.PaymentID)
		if err != nil {
			return fmt.Errorf("read payment %s: %w", row.PaymentID, err)
		}
		s.warnGone(ctx, "refunds", of.Provider, "set the provider up again until they are sent, "+
			"or send the money back another way and settle them on the admin pages")
		if err := s.putOffRefund(ctx, row, now); err != nil {
			return err
		}
	}
	return nil
}
