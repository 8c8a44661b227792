package servicetoken

import (
	"cmp"
	"context"
	"crypto/sha256"
	"log/slog"
	"time"

	"seckill/ent"
	"seckill/ent/predicate"
	"seckill/ent/servicetoken"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

// Verify returns the principal of a token. A token that is unknown, expired or revoked is
// a fault UNAUTHENTICATED; UNAVAILABLE means that the tokens cannot be read.
func (s *Service) Verify(ctx context.Context, token string) (*auth.Principal, error) {
	hash := sha256.Sum256([]byte(token))
	if err := s.refresh(ctx); err != nil {
		return nil, fault.Wrap(fault.Unavailable, "Service tokens cannot be checked now. Please try again shortly.", err)
	}
	now := s.now()
	s.mu.Lock()
	found := s.known[hash]
	if found == nil || !now.Before(found.principal.ExpiresAt) {
		s.mu.Unlock()
		return nil, fault.New(fault.Unauthenticated, "The service token is unknown, expired or revoked.")
	}
	first := now.Sub(found.lastUsed) >= usedEvery
	if first {
		found.lastUsed = now
	}
	s.mu.Unlock()
	if first {
		s.used(ctx, found.principal, now)
	}
	return found.principal, nil
}

// used stores the last use of a token. An error is logged: the use is allowed.
func (s *Service) used(ctx context.Context, p *auth.Principal, now time.Time) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cmp.Or(s.cfg.Timeout, WriteTimeout))
	defer cancel()
	err := s.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		return tx.ServiceToken.Update().Where(servicetoken.ID(id.ServiceToken(p.UserID)), unusedSince(now.Add(-usedEvery))).
			SetLastUsedAt(now).Exec(ctx)
	})
	if err != nil {
		s.cfg.Log.WarnContext(ctx, "last use of a service token not written", slog.String("token", p.UserID.String()),
			slog.Any("error", err))
	}
}

// unusedSince selects tokens whose last use was not written after a time, by any process.
func unusedSince(at time.Time) predicate.ServiceToken {
	return servicetoken.Or(servicetoken.LastUsedAtIsNil(), servicetoken.LastUsedAtLTE(at))
}

// forget makes the next Verify of this process read the tokens.
func (s *Service) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readAt = time.Time{}
}

// refresh reads the tokens when the copy is too old. One caller reads, the others wait for
// it.
func (s *Service) refresh(ctx context.Context) error {
	for {
		s.mu.Lock()
		if s.cfg.Clock.Now().Sub(s.readAt) < copyFor {
			s.mu.Unlock()
			return nil
		}
		reading := s.reading
		if reading == nil {
			s.reading = make(chan struct{})
			s.mu.Unlock()
			return s.read(ctx)
		}
		s.mu.Unlock()
		select {
		case <-reading:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// read replaces the copy. Its age counts from before the read.
func (s *Service) read(ctx context.Context) error {
	at := s.cfg.Clock.Now()
	rows, err := s.rows(context.WithoutCancel(ctx)) // others wait for it
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.reading)
	s.reading = nil
	if err != nil {
		return err
	}
	former := s.known
	s.known, s.readAt = make(map[[sha256.Size]byte]*known, len(rows)), at
	for _, row := range rows {
		k := &known{principal: &auth.Principal{UserID: id.User(row.ID), SessionID: id.Session(row.ID),
			ExpiresAt: row.ExpiresAt.UTC(), Scopes: splitScopes(row.Scopes)}}
		if row.LastUsedAt != nil {
			k.lastUsed = row.LastUsedAt.UTC()
		}
		hash := [sha256.Size]byte(row.Hash)
		if before := former[hash]; before != nil && before.lastUsed.After(k.lastUsed) {
			k.lastUsed = before.lastUsed
		}
		s.known[hash] = k
	}
	return nil
}
