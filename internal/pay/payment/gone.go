package payment

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"seckill/ent"
)

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
