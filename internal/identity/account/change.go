package account

import (
	"context"
	"net/netip"

	"seckill/ent"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/captcha"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/locale"
	"seckill/internal/platform/ratelimit"
)

// ChangePasswordInput holds the present and the new password of the signed-in user.
type ChangePasswordInput struct {
	Current  string
	Next     string
	Code     string          // one-time or recovery code; "" = none was sent
	Language locale.Language // of the notice
	Addr     netip.Addr      // of the client
}

// ChangePassword changes the password of the signed-in user, ends the user's other
// sessions and returns their number. Guesses of the present password are limited per
// session. Refusals: BadField, INVALID_CREDENTIALS, fault.Throttled, captcha.Required,
// ONE_TIME_CODE_REQUIRED, ONE_TIME_CODE_INVALID.
func (s *Service) ChangePassword(ctx context.Context, p *auth.Principal, in ChangePasswordInput) (int, error) {
	user, err := s.signedIn(ctx, p)
	if err != nil {
		return 0, err
	}
	next := normalisePassword(in.Next)
	if err := checkPassword(next, user.Account, "newPassword"); err != nil {
		return 0, err
	}
	if next == normalisePassword(in.Current) {
		return 0, badField("newPassword", fault.Rule{Code: "not the present password"})
	}
	hash := ""
	if err := s.present(ctx, p, user, presented{password: in.Current, field: "currentPassword", code: in.Code,
		from: in.Addr}, func() (err error) {
		hash, err = s.passwords.hash(ctx, next)
		return err
	}); err != nil {
		return 0, err
	}
	if _, err := s.cfg.Admin.changeWith(ctx, func(ctx context.Context, tx *ent.Tx) (*ent.User, error) {
		return s.cfg.Admin.passwordChanged(ctx, tx, tx.User.UpdateOneID(user.ID).AddVersion(1).SetPasswordHash(hash),
			in.Language)
	}); err != nil {
		return 0, err
	}
	s.cfg.Admin.cfg.Security.Write(ctx, Event{Kind: EventPasswordChanged, Actor: user.ID, Subject: user.ID, Addr: in.Addr})
	return s.cfg.Admin.endAll(ctx, user.ID, p.SessionID, endedByPassword)
}

func (s *Service) signedIn(ctx context.Context, p *auth.Principal) (*User, error) {
	user, err := s.store.User(ctx, p.UserID)
	if err == nil && user == nil {
		err = fault.New(fault.Unauthenticated, "The account no longer exists. Sign in again.")
	}
	return user, err
}

// presented is what a signed-in user enters before a change of the account.
type presented struct {
	password string
	field    string // of the password in the input
	code     string // one-time or recovery code; "" = none was sent
	from     netip.Addr
}

// present verifies the password, and a one-time code of a user whose sign-in needs one,
// and then calls fn (may be nil) with a place in the hash queue. Guesses are limited per
// session. Refusals: INVALID_CREDENTIALS, ONE_TIME_CODE_REQUIRED, ONE_TIME_CODE_INVALID,
// fault.Throttled, captcha.Required.
func (s *Service) present(ctx context.Context, p *auth.Principal, user *User, in presented, fn func() error) error {
	leave, err := s.passwords.enqueue(trusted, ratelimit.Network(in.from))
	if err != nil {
		return err
	}
	defer leave()
	try := guarded{account: user.Account, device: "s:" + p.SessionID.String(), from: in.from, answer: captcha.Answer{}}
	if err := s.guard.admit(ctx, try); err != nil {
		return err
	}
	ok, err := s.samePassword(ctx, user, in.password)
	if err != nil {
		return err
	}
	if !ok {
		s.signInFailed(ctx, user, in.from, wrongPassword)
		return fault.Refused{Why: fault.InvalidCredentials, At: []string{in.field}}
	}
	if err := s.requireCode(ctx, user, in.code, in.from); err != nil {
		return err
	}
	if err := s.guard.succeeded(ctx, try); err != nil || fn == nil {
		return err
	}
	return fn()
}

// samePassword compares a password with the stored hash.
func (s *Service) samePassword(ctx context.Context, user *User, password string) (bool, error) {
	_, hash, err := s.store.byAccount(ctx, user.Account)
	if err != nil {
		return false, err
	}
	ok, _, err := s.passwords.matches(ctx, password, hash)
	return ok, err
}
