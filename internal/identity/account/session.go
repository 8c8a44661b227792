package account

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"seckill/ent"
	"seckill/ent/session"
	"seckill/ent/user"
	"seckill/internal/outbox/notice"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
)

// Reasons why a session ended, as stored.
const (
	endedByLogout = "logout"
	endedByReuse  = "refresh token used twice"

	endedByPassword  = "password changed"
	endedByRole      = "role changed"
	endedByDisabling = "user disabled"
	endedByDeletion  = "user deleted"
	endedByStaff     = "ended by staff"
	endedByTOTP      = "one-time codes changed"
)

const purgeAfter = 7 * 24 * time.Hour // sessions that ended are kept this long for questions

// newSession returns a session that is not stored yet.
func (s *Service) newSession(user id.User, now time.Time) (*ent.Session, refreshToken, error) {
	row := &ent.Session{ID: id.New[id.Session](), UserID: user, Generation: 1, CreatedAt: now, RotatedAt: now}
	token, err := s.refresher.first(row.ID)
	if err != nil {
		return nil, refreshToken{}, err
	}
	row.TokenHash, row.ExpiresAt = token.hash(), s.expiry(row, now)
	return row, token, nil
}

// expiry returns when a session ends if it is refreshed now.
func (s *Service) expiry(row *ent.Session, now time.Time) time.Time {
	idle, longest := now.Add(s.cfg.Idle), row.CreatedAt.Add(s.cfg.Longest)
	if longest.Before(idle) {
		return longest.UTC()
	}
	return idle.UTC()
}

func insertSession(ctx context.Context, tx *ent.Tx, row *ent.Session) error {
	return tx.Session.Create().SetID(row.ID).SetUserID(row.UserID).SetTokenHash(row.TokenHash).
		SetGeneration(row.Generation).
		SetCreatedAt(row.CreatedAt).SetRotatedAt(row.RotatedAt).SetExpiresAt(row.ExpiresAt).SetIssuer(row.Issuer).Exec(ctx)
}

// write runs a transaction that inserts the session, and resolves a commit with unknown
// outcome.
func (s *Store) write(ctx context.Context, row *ent.Session, fn func(ctx context.Context, tx *ent.Tx) error) error {
	err := s.db.WithTx(ctx, fn)
	if !errors.Is(err, postgres.ErrCommitUnknown) {
		return err
	}
	there, findErr := s.db.Ent.Session.Query().Where(session.ID(row.ID)).Exist(ctx)
	if findErr == nil && there {
		return nil
	}
	return fault.Wrap(fault.Unavailable, "It is unknown whether this worked. Sign in to find out.",
		errors.Join(err, findErr))
}

// session returns a session; nil if there is none.
func (s *Store) session(ctx context.Context, id id.Session) (*ent.Session, error) {
	row, err := s.db.Ent.Session.Get(ctx, id)
	if ent.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read session: %w", err)
	}
	return row, nil
}

// rotate replaces the token of a session with the next one. It returns false if another
// process rotated or ended the session first.
func (s *Store) rotate(ctx context.Context, row *ent.Session, next []byte, now, expires time.Time) (bool, error) {
	moved := 0
	err := s.db.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) (err error) {
		moved, err = tx.Session.Update().
			Where(session.ID(row.ID), session.Generation(row.Generation), session.RevokedAtIsNil(), session.ExpiresAtGT(now)).
			SetTokenHash(next).SetPreviousHash(row.TokenHash).SetGeneration(row.Generation + 1).
			SetRotatedAt(now).SetExpiresAt(expires).Save(ctx)
		return err
	})
	if errors.Is(err, postgres.ErrCommitUnknown) {
		return false, nil // the caller reads the row again
	}
	if err != nil {
		return false, fmt.Errorf("rotate session: %w", err)
	}
	return moved == 1, nil
}

// end ends one session and returns how many were active.
func (s *Store) end(ctx context.Context, id id.Session, why string) (int, error) {
	ended := 0
	now := s.clock.Now()
	err := s.db.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) (err error) {
		ended, err = tx.Session.Update().Where(session.ID(id), session.RevokedAtIsNil(), session.ExpiresAtGT(now)).
			SetRevokedAt(now).SetRevokedReason(why).Save(ctx)
		if err != nil {
			return err
		}
		return notice.SignedOut(ctx, tx, id)
	})
	if err != nil {
		return 0, endError(err)
	}
	return ended, nil
}

// endAll ends all active sessions of a user except keep (Nil = none) and returns them.
func (s *Store) endAll(ctx context.Context, userID id.User, keep id.Session, why string) ([]id.Session, error) {
	var live []id.Session
	now := s.clock.Now()
	err := s.db.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) (err error) {
		if err := notice.SignedOutElsewhere(ctx, tx, userID, keep); err != nil {
			return err
		}
		live, err = tx.Session.Query().Where(session.UserID(userID), session.IDNEQ(keep), session.RevokedAtIsNil(),
			session.ExpiresAtGT(now)).IDs(ctx)
		if err != nil || len(live) == 0 {
			return err
		}
		return tx.Session.Update().Where(session.IDIn(live...), session.RevokedAtIsNil()).
			SetRevokedAt(now).SetRevokedReason(why).Exec(ctx)
	})
	if err != nil {
		return nil, endError(err)
	}
	return live, nil
}

// endError makes an error retryable when it is unknown whether sessions were ended:
// ending twice is harmless.
func endError(err error) error {
	if errors.Is(err, postgres.ErrCommitUnknown) {
		return fault.Wrap(fault.Unavailable, "It is unknown whether the session was ended. Please try again.", err)
	}
	return fmt.Errorf("end session: %w", err)
}

// Ended returns the sessions ended since a time, and those of users disabled since: both
// may have been written by SQL. See auth.RevocationsConfig.
func (s *Store) Ended(ctx context.Context, since time.Time) ([]id.Session, error) {
	ids, err := s.db.Ent.Session.Query().Where(session.RevokedAtGTE(since)).IDs(ctx)
	if err != nil {
		return nil, fmt.Errorf("read ended sessions: %w", err)
	}
	disabled, err := s.db.Ent.User.Query().Where(user.DisabledAtGTE(since)).IDs(ctx)
	if err != nil || len(disabled) == 0 {
		return ids, err
	}
	open, err := s.db.Ent.Session.Query().Where(session.UserIDIn(disabled...), session.RevokedAtIsNil(),
		session.ExpiresAtGT(since)).IDs(ctx)
	if err != nil {
		return nil, fmt.Errorf("read sessions of disabled users: %w", err)
	}
	return append(ids, open...), nil
}

// Purge deletes sessions that ended a week ago, in batches. It is a periodic.Step. If
// another process deletes the same batch first, it stops.
func (s *Store) Purge(ctx context.Context) (map[string]int, error) {
	before := s.clock.Now().Add(-purgeAfter)
	return s.db.Purge(ctx, "sessions_deleted", session.Table, session.ExpiresAtLT(before), session.ByExpiresAt())
}

func sameHash(a, b []byte) bool { return bytes.Equal(a, b) } // hashes: timing reveals nothing about tokens
