package account

import (
	"context"
	"net/netip"

	"seckill/ent"
	"seckill/internal/admission/captcha"
	"seckill/internal/auth"
	"seckill/internal/fault"
	"seckill/internal/ratelimit"
)

// ChangePasswordInput holds the present and the new password of the signed-in user.
type ChangePasswordInput struct {
	Current string
	Next    string
	Addr    netip.Addr // of the client
}

// ChangePassword changes the password of the signed-in user, ends the user's other
// sessions and returns their number. Guesses of the present password are limited per
// session. Refusals: BadField, INVALID_CREDENTIALS, fault.Throttled, captcha.Required.
func (s *Service) ChangePassword(ctx context.Context, p *auth.Principal, in ChangePasswordInput) (int, error) {
	user, err := s.store.User(ctx, p.UserID)
	if err != nil {
		return 0, err
	}
	if user == nil {
		return 0, fault.New(fault.Unauthenticated, "the account is gone; sign in")
	}
	next := normalisePassword(in.Next)
	if err := checkPassword(next, user.Account, "newPassword"); err != nil {
		return 0, err
	}
	if next == normalisePassword(in.Current) {
		return 0, badField("newPassword", "not the present password")
	}
	leave, err := s.passwords.enqueue(trusted, ratelimit.Network(in.Addr))
	if err != nil {
		return 0, err
	}
	defer leave()
	try := guarded{account: user.Account, device: "s:" + p.SessionID.String(), from: in.Addr, answer: captcha.Answer{}}
	if err := s.guard.admit(ctx, try); err != nil {
		return 0, err
	}
	ok, err := s.samePassword(ctx, user, in.Current)
	if err != nil {
		return 0, err
	}
	if !ok {
		s.signInFailed(ctx, user, in.Addr, false)
		return 0, fault.Refused{Why: fault.InvalidCredentials, At: []string{"input", "currentPassword"}}
	}
	if err := s.guard.succeeded(ctx, try); err != nil {
		return 0, err
	}
	hash, err := s.passwords.hash(ctx, next)
	if err != nil {
		return 0, err
	}
	if _, err := s.cfg.Admin.change(ctx, user.ID, func(u *ent.UserUpdateOne) { u.SetPasswordHash(hash) }); err != nil {
		return 0, err
	}
	s.cfg.Admin.cfg.Security.Write(ctx, Event{Kind: EventPasswordChanged, Actor: user.ID, Subject: user.ID, Addr: in.Addr})
	return s.cfg.Admin.endAll(ctx, user.ID, p.SessionID, endedByPassword)
}

// samePassword compares a password with the stored hash.
func (s *Service) samePassword(ctx context.Context, user *User, password string) (bool, error) {
	_, hash, err := s.store.byAccount(ctx, user.Account)
	if err != nil {
		return false, err
	}
	ok, _, err := s.passwords.matches(ctx, normalisePassword(password), hash)
	return ok, err
}
