package account

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"seckill/ent"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/ratelimit"
)

const (
	// refreshGrace is how long the previous token returns the same successor: for a lost
	// reply, or two tabs that refresh at once (RFC 9700 §4.14.2).
	refreshGrace = 10 * time.Second
	// refreshTries limits the attempts of a refresh that lost a race.
	refreshTries = 3
)

// Refresh exchanges a refresh token for a new pair and extends the session. Concurrent
// requests with one token return the same successor. A token that was replaced longer ago
// than the grace period ends the session, because it was copied. The refusal is
// SESSION_INVALID.
func (s *Service) Refresh(ctx context.Context, token string) (*SignedIn, error) {
	invalid := refused(fault.SessionInvalid, "refreshToken")
	shown, ok := s.refresher.open(token)
	if !ok {
		return nil, invalid
	}
	for range refreshTries {
		row, err := s.store.session(ctx, shown.session)
		if err != nil {
			return nil, err
		}
		now := s.cfg.Clock.Now()
		if row == nil || row.RevokedAt != nil || !now.Before(row.ExpiresAt) {
			return nil, invalid
		}
		switch s.classify(row, shown, now) {
		case tokenCurrent:
			next := s.refresher.successors(shown, row.Generation+1)[0]
			expires := s.expiry(row, now)
			moved, err := s.store.rotate(ctx, row, next.hash(), now, expires)
			if err != nil {
				return nil, err
			}
			if moved {
				row.ExpiresAt = expires
				return s.refreshed(ctx, row, next)
			}
		case tokenReplaced:
			for _, next := range s.refresher.successors(shown, row.Generation) {
				if sameHash(next.hash(), row.TokenHash) {
					return s.refreshed(ctx, row, next)
				}
			}
			return nil, invalid // issued with a removed key
		case tokenReused:
			return nil, cmp.Or(s.endReused(ctx, row.ID), invalid)
		}
	}
	return nil, fault.New(fault.Unavailable, "The session is being refreshed by another call. Please try again shortly.")
}

// Refresher returns the rate limit subject of a refresh token: its session, so that other
// clients cannot use up its attempts. It is false for a token that no key verifies; a
// verified one may be used already or its session ended. It does no I/O.
func (s *Service) Refresher(token string) (ratelimit.Subject, bool) {
	shown, ours := s.refresher.open(token)
	if !ours {
		return "", false
	}
	return ratelimit.Session(shown.session), true
}

// tokenState is the state of a verified refresh token in its session.
type tokenState int

const (
	tokenCurrent  tokenState = iota // the newest
	tokenReplaced                   // the previous one, within the grace period
	tokenReused                     // older: the token was copied
)

func (s *Service) classify(row *ent.Session, shown refreshToken, now time.Time) tokenState {
	hash := shown.hash()
	switch {
	case sameHash(hash, row.TokenHash):
		return tokenCurrent
	case row.PreviousHash != nil && sameHash(hash, *row.PreviousHash) && now.Sub(row.RotatedAt) <= refreshGrace:
		return tokenReplaced
	default:
		return tokenReused
	}
}

// refreshed returns a pair with the user's present role.
func (s *Service) refreshed(ctx context.Context, row *ent.Session, next refreshToken) (*SignedIn, error) {
	user, err := s.store.User(ctx, row.UserID)
	if err != nil {
		return nil, err
	}
	if user == nil || user.Disabled {
		return nil, refused(fault.SessionInvalid, "refreshToken")
	}
	s.cfg.Directory.cache(ctx, user)
	return s.tokensOf(user, row, next)
}

func (s *Service) endReused(ctx context.Context, session id.Session) error {
	s.cfg.Log.WarnContext(ctx, "refresh token shown twice, session ended", slog.String("session_id", session.String()))
	s.cfg.Admin.cfg.Security.Write(ctx, Event{Kind: EventTokenReused, Detail: "session " + session.String()})
	if _, err := s.store.end(ctx, session, endedByReuse); err != nil {
		return err
	}
	return s.cfg.Revocations.Revoke(ctx, session)
}

// Logout ends the user's session, or all of them, with their access tokens and open
// sockets, in all processes within a second. It returns the number of sessions ended.
// After an error, call again: ending twice is harmless, and UNAUTHENTICATED means that
// the session is ended; other processes are notified, and its tickets end, as soon as Redis answers.
func (s *Service) Logout(ctx context.Context, p *auth.Principal, everywhere bool) (int, error) {
	if !everywhere {
		count, err := s.store.end(ctx, p.SessionID, endedByLogout)
		if err != nil {
			return 0, err
		}
		return count, s.cfg.Revocations.Revoke(ctx, p.SessionID)
	}
	live, err := s.store.endAll(ctx, p.UserID, id.Session{}, endedByLogout)
	if err != nil {
		return 0, err
	}
	return len(live), s.cfg.Revocations.Revoke(ctx, append(live, p.SessionID)...)
}
