package account

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"log/slog"
	"time"

	"seckill/ent"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/ratelimit"
)

// A refresh token is base64url(session | secret | tag).
//
// The first secret of a session is random. Each later one is an HMAC of its predecessor,
// so that repeated requests with one token return the same successor in every process,
// while only hashes are stored: neither the database alone nor the key alone yields a
// token. The tag distinguishes issued tokens from forged ones, so that only an issued
// token can end its session when it is reused late.
const (
	secretBytes  = 32 // 256 bits
	tagBytes     = 16
	refreshBytes = 16 + secretBytes + tagBytes
)

type refreshToken struct {
	session id.Session
	secret  [secretBytes]byte
	text    string // as the client holds it
}

// hash returns the stored form of a token.
func (t refreshToken) hash() []byte {
	sum := sha256.Sum256([]byte(t.text))
	return sum[:]
}

// refresher issues and verifies refresh tokens.
type refresher struct {
	keys [][]byte // the first signs, all verify
}

func newRefresher(keys auth.Keys) refresher { return refresher{keys: keys.Derive("refresh tokens")} }

func (r refresher) first(session id.Session) (refreshToken, error) {
	var secret [secretBytes]byte
	if _, err := rand.Read(secret[:]); err != nil {
		return refreshToken{}, fmt.Errorf("refresh token: %w", err)
	}
	return r.make(r.keys[0], session, secret), nil
}

// successors returns the possible successors of a token for the given generation: one per
// key, that of the present key first. During a key rotation, processes may differ in
// which key comes first.
func (r refresher) successors(t refreshToken, generation int64) []refreshToken {
	next := make([]refreshToken, len(r.keys))
	for i, key := range r.keys {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(generation))
		secret := mac(key, "next", t.session[:], n[:], t.secret[:])
		next[i] = r.make(key, t.session, [secretBytes]byte(secret))
	}
	return next
}

// open parses and verifies a token; it returns false if no key matches.
func (r refresher) open(text string) (refreshToken, bool) {
	if base64.RawURLEncoding.DecodedLen(len(text)) != refreshBytes {
		return refreshToken{}, false
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(raw) != refreshBytes {
		return refreshToken{}, false
	}
	t := refreshToken{session: id.Session(raw[:16]), secret: [secretBytes]byte(raw[16 : 16+secretBytes]), text: text}
	for _, key := range r.keys {
		if hmac.Equal(raw[16+secretBytes:], tag(key, t)) {
			return t, true
		}
	}
	return refreshToken{}, false
}

func (r refresher) make(key []byte, session id.Session, secret [secretBytes]byte) refreshToken {
	t := refreshToken{session: session, secret: secret}
	raw := make([]byte, 0, refreshBytes)
	raw = append(raw, session[:]...)
	raw = append(raw, secret[:]...)
	raw = append(raw, tag(key, t)...)
	t.text = base64.RawURLEncoding.EncodeToString(raw)
	return t
}

func tag(key []byte, t refreshToken) []byte {
	return mac(key, "tag", t.session[:], t.secret[:])[:tagBytes]
}

// mac is HMAC-SHA256 over parts of fixed length, with a separate use per purpose.
func mac(key []byte, use string, parts ...[]byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(use))
	h.Write([]byte{0})
	for _, part := range parts {
		h.Write(part)
	}
	return h.Sum(nil)
}

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
