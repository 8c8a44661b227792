package account

import (
	"context"
	"log/slog"
	"net/netip"

	"seckill/ent"
	"seckill/internal/admission/captcha"
	"seckill/internal/auth"
	"seckill/internal/fault"
	"seckill/internal/postgres"
	"seckill/internal/ratelimit"
)

// RegisterInput is what a new person sends.
type RegisterInput struct {
	NewUser
	Captcha captcha.Answer
	Addr    netip.Addr // where the request came from
}

// Register makes an account and signs the person in. Refusals: BadField,
// fault.Throttled, captcha.Required, captcha.Invalid, ACCOUNT_TAKEN.
func (s *Service) Register(ctx context.Context, in RegisterInput) (*SignedIn, fault.Refusal, error) {
	clean, refusal := in.NewUser.clean()
	if refusal != nil {
		return nil, refusal, nil
	}
	if refusal, err := s.limit(ctx, registersPerAddress, in.Addr); refusal != nil || err != nil {
		return nil, refusal, err
	}
	leave, refusal := s.passwords.enqueue()
	if refusal != nil {
		return nil, refusal, nil
	}
	defer leave()
	if refusal, err := s.cfg.Captchas.Check(ctx, captcha.Scope{Purpose: captcha.Register, From: in.Addr}, in.Captcha); refusal != nil || err != nil {
		return nil, refusal, err
	}
	taken := refused(fault.AccountTaken, "input", "account")
	if there, _, err := s.store.byAccount(ctx, clean.Account); there != nil || err != nil {
		return nil, taken, err
	}
	hash, err := s.passwords.hash(ctx, clean.Password)
	if err != nil {
		return nil, nil, err
	}
	made := s.store.newUser(clean, auth.Customer)
	signed, err := s.signIn(ctx, made, func(ctx context.Context, tx *ent.Tx) error { return insertUser(ctx, tx, made, hash) })
	if postgres.IsUnique(err) {
		return nil, taken, nil
	}
	return signed, nil, err
}

// LoginInput is what a person sends to sign in.
type LoginInput struct {
	Account  string
	Password string
	Captcha  captcha.Answer // zero = none was sent; used up only when one is needed
	Addr     netip.Addr     // where the request came from
}

// Login opens a session. Refusals: INVALID_CREDENTIALS, whichever of the two was
// wrong, fault.Throttled, captcha.Required, captcha.Invalid.
func (s *Service) Login(ctx context.Context, in LoginInput) (*SignedIn, fault.Refusal, error) {
	account := lookupName(in.Account)
	if refusal, err := s.limit(ctx, loginsPerAddress, in.Addr); refusal != nil || err != nil {
		return nil, refusal, err
	}
	leave, refusal := s.passwords.enqueue()
	if refusal != nil {
		return nil, refusal, nil
	}
	defer leave()
	if refusal, err := s.guard.admit(ctx, account, in.Addr, in.Captcha); refusal != nil || err != nil {
		return nil, refusal, err
	}
	user, hash, err := s.store.byAccount(ctx, account)
	if err != nil {
		return nil, nil, err
	}
	password := normalisePassword(in.Password)
	ok, stale, err := s.passwords.matches(ctx, password, hash)
	if err != nil {
		return nil, nil, err
	}
	if !ok {
		return nil, refused(fault.InvalidCredentials), nil
	}
	if err := s.guard.reset(ctx, account); err != nil {
		s.cfg.Log.WarnContext(ctx, "failures of an account stay counted", slog.Any("error", err))
	}
	if stale {
		s.renewHash(ctx, user, password, hash)
	}
	signed, err := s.signIn(ctx, user, nil)
	return signed, nil, err
}

func (s *Service) limit(ctx context.Context, p ratelimit.Policy, addr netip.Addr) (fault.Refusal, error) {
	d, err := s.cfg.Limits.AllowAddr(ctx, p, addr)
	if err != nil {
		return nil, err
	}
	return d.Refusal(), nil
}

// renewHash brings a hash up to the parameters in force. A fault is only logged:
// the next time will do.
func (s *Service) renewHash(ctx context.Context, user *User, password, old string) {
	hash, err := s.passwords.hash(ctx, password)
	if err == nil {
		err = s.store.setHash(ctx, user.ID, old, hash)
	}
	if err != nil {
		s.cfg.Log.WarnContext(ctx, "password hash not renewed", slog.Any("error", err))
	}
}

// signIn opens a session, in one transaction with what comes before it.
func (s *Service) signIn(ctx context.Context, user *User, before func(ctx context.Context, tx *ent.Tx) error) (*SignedIn, error) {
	row, token, err := s.newSession(user.ID, s.cfg.Clock.Now())
	if err != nil {
		return nil, err
	}
	err = s.store.write(ctx, row, func(ctx context.Context, tx *ent.Tx) error {
		if before != nil {
			if err := before(ctx, tx); err != nil {
				return err
			}
		}
		return insertSession(ctx, tx, row)
	})
	if err != nil {
		return nil, err
	}
	s.cfg.Directory.cache(ctx, user)
	return s.tokensOf(user, row, token)
}

// tokensOf makes the pair of tokens of a session as it stands.
func (s *Service) tokensOf(user *User, row *ent.Session, token refreshToken) (*SignedIn, error) {
	expires := row.ExpiresAt.UTC()
	access, accessExpires, err := s.cfg.Tokens.Mint(auth.MintInput{
		User: user.ID, Session: row.ID, Role: user.Role,
		Life: min(s.cfg.Tokens.AccessLife(), expires.Sub(s.cfg.Clock.Now())),
	})
	if err != nil {
		return nil, err
	}
	return &SignedIn{User: user, Session: row.ID, Tokens: Tokens{
		Access: access, AccessExpiresAt: accessExpires, Refresh: token.text, RefreshExpiresAt: expires,
	}}, nil
}
