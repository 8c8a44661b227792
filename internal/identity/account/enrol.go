package account

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"seckill/ent"
	"seckill/ent/user"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
	"seckill/internal/platform/typed"
)

// TOTPSecret is a new secret for an authenticator app.
type TOTPSecret struct {
	Secret string // base32
	URI    string // otpauth://
}

// StartTOTP makes a secret for the user. Sign-in needs no code before ConfirmTOTP.
// Refusals: those of a wrong password, see ChangePassword, and CONFLICT while codes are
// needed already.
func (s *Service) StartTOTP(ctx context.Context, p *auth.Principal, password string, from netip.Addr) (TOTPSecret,
	error) {
	u, err := s.signedIn(ctx, p)
	if err != nil {
		return TOTPSecret{}, err
	}
	if u.TOTP {
		return TOTPSecret{}, refused(fault.Conflict)
	}
	if err := s.present(ctx, p, u, presented{password: password, field: "password", from: from}, nil); err != nil {
		return TOTPSecret{}, err
	}
	secret, err := newTOTPSecret()
	if err != nil {
		return TOTPSecret{}, err
	}
	sealed, err := s.totp.Seal(u.ID.UUID(), secret)
	if err != nil {
		return TOTPSecret{}, err
	}
	moved, err := s.store.setTOTP(ctx, u.ID, func(up *ent.UserUpdate) {
		up.Where(user.TotpSinceIsNil()).SetTotpSecret(sealed).SetTotpStep(0)
	})
	if err != nil {
		return TOTPSecret{}, err
	}
	if !moved {
		return TOTPSecret{}, refused(fault.Conflict)
	}
	text := letters.EncodeToString(secret)
	return TOTPSecret{Secret: text, URI: totpURI(u.Account, text)}, nil
}

// ConfirmTOTP checks a code of the secret that StartTOTP made. From then on sign-in needs
// a code, and the user's other sessions are ended. It returns recovery codes and the
// number of ended sessions. Refusals: ONE_TIME_CODE_INVALID, CONFLICT.
func (s *Service) ConfirmTOTP(ctx context.Context, p *auth.Principal, code string) (codes []string, ended int,
	err error) {
	row, err := s.store.db.Ent.User.Get(ctx, p.UserID)
	if err != nil {
		return nil, 0, fmt.Errorf("read user: %w", err)
	}
	if len(row.TotpSecret) == 0 || row.TotpSince != nil {
		return nil, 0, refused(fault.Conflict)
	}
	secret, _, err := s.totp.Open(row.ID.UUID(), row.TotpSecret)
	if err != nil {
		return nil, 0, err
	}
	step, ok := totpStep(secret, typed.Code(code), s.cfg.Clock.Now(), row.TotpStep)
	if !ok {
		return nil, 0, refused(fault.OneTimeCodeInvalid, "oneTimeCode")
	}
	codes, stored, err := newRecoveryCodes()
	if err != nil {
		return nil, 0, err
	}
	changed, err := s.cfg.Admin.change(ctx, row.ID, func(up *ent.UserUpdateOne) {
		up.Where(user.TotpSinceIsNil(), user.TotpSecret(row.TotpSecret)).
			SetTotpSince(s.cfg.Clock.Now()).SetTotpStep(step).SetRecoveryCodes(stored)
	})
	if err != nil {
		return nil, 0, err
	}
	if changed == nil {
		return nil, 0, refused(fault.Conflict)
	}
	s.cfg.Admin.cfg.Security.Write(ctx, Event{Kind: EventTOTPOn, Actor: row.ID, Subject: row.ID})
	ended, err = s.cfg.Admin.endAll(ctx, row.ID, p.SessionID, endedByTOTP)
	return codes, ended, err
}

// RemoveTOTPInput holds what the signed-in user enters to remove one-time codes.
type RemoveTOTPInput struct {
	Password string
	Code     string     // one-time or recovery code
	Addr     netip.Addr // of the client
}

// RemoveTOTP makes sign-in need no code, ends the user's other sessions and returns their
// number. It needs the password and a code. Refusals: those of a wrong password, see
// ChangePassword, and ONE_TIME_CODE_INVALID.
func (s *Service) RemoveTOTP(ctx context.Context, p *auth.Principal, in RemoveTOTPInput) (int, error) {
	u, err := s.signedIn(ctx, p)
	if err != nil {
		return 0, err
	}
	if err := s.present(ctx, p, u, presented{password: in.Password, field: "password", code: in.Code, from: in.Addr},
		nil); err != nil {
		return 0, err
	}
	if _, err := s.cfg.Admin.change(ctx, u.ID, clearTOTP); err != nil {
		return 0, err
	}
	s.cfg.Admin.cfg.Security.Write(ctx, Event{Kind: EventTOTPOff, Actor: u.ID, Subject: u.ID, Addr: in.Addr})
	return s.cfg.Admin.endAll(ctx, u.ID, p.SessionID, endedByTOTP)
}

// ResetTOTP makes sign-in of a user need no code, for users who lost their device, and
// ends the user's sessions.
func (a *Admin) ResetTOTP(ctx context.Context, by, userID id.User) error {
	if _, err := a.change(ctx, userID, clearTOTP); err != nil {
		return err
	}
	a.cfg.Security.Write(ctx, Event{Kind: EventTOTPOff, Actor: by, Subject: userID, Detail: "by staff"})
	_, err := a.endAll(ctx, userID, id.Session{}, endedByTOTP)
	return err
}

func clearTOTP(up *ent.UserUpdateOne) {
	up.ClearTotpSecret().ClearTotpSince().SetTotpStep(0).SetRecoveryCodes("")
}

// requireCode verifies the one-time or recovery code of a user who needs one. Refusals:
// ONE_TIME_CODE_REQUIRED without a code, ONE_TIME_CODE_INVALID.
func (s *Service) requireCode(ctx context.Context, u *User, code string, from netip.Addr) error {
	if u.TOTP && code == "" {
		return refused(fault.OneTimeCodeRequired, "oneTimeCode")
	}
	ok, err := s.redeem(ctx, u, code)
	if err != nil {
		return err
	}
	if !ok {
		s.signInFailed(ctx, u, from, wrongCode)
		return refused(fault.OneTimeCodeInvalid, "oneTimeCode")
	}
	return nil
}

// redeem verifies a one-time or recovery code of a user and uses it up. Only one of
// concurrent calls with the same code returns true. It is true without a code if the user
// needs none.
func (s *Service) redeem(ctx context.Context, u *User, code string) (bool, error) {
	row, err := s.store.db.Ent.User.Get(ctx, u.ID)
	if err != nil {
		return false, fmt.Errorf("read user: %w", err)
	}
	if row.TotpSince == nil {
		return true, nil
	}
	code = typed.Code(code)
	if left, ok := withoutRecovery(row.RecoveryCodes, code); ok {
		moved, err := s.store.setTOTP(ctx, u.ID, func(up *ent.UserUpdate) {
			up.Where(user.RecoveryCodes(row.RecoveryCodes)).SetRecoveryCodes(left)
		})
		if moved {
			s.cfg.Admin.cfg.Security.Write(ctx, Event{Kind: EventRecoveryCode, Actor: u.ID, Subject: u.ID})
		}
		return moved, err
	}
	secret, old, err := s.totp.Open(row.ID.UUID(), row.TotpSecret)
	if err != nil {
		return false, err
	}
	step, ok := totpStep(secret, code, s.cfg.Clock.Now(), row.TotpStep)
	if !ok {
		return false, nil
	}
	sealed := row.TotpSecret
	if old {
		if sealed, err = s.totp.Seal(row.ID.UUID(), secret); err != nil {
			return false, err
		}
	}
	return s.store.setTOTP(ctx, u.ID, func(up *ent.UserUpdate) {
		up.Where(user.TotpStep(row.TotpStep), user.TotpSecret(row.TotpSecret)).SetTotpStep(step).SetTotpSecret(sealed)
	})
}

// setTOTP updates a user if the conditions that set adds hold, and reports whether they
// did. The cached user is not concerned.
func (s *Store) setTOTP(ctx context.Context, id id.User, set func(*ent.UserUpdate)) (bool, error) {
	moved := 0
	err := s.db.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) (err error) {
		change := tx.User.Update().Where(user.ID(id))
		set(change)
		moved, err = change.Save(ctx)
		return err
	})
	if errors.Is(err, postgres.ErrCommitUnknown) {
		return false, fault.Wrap(fault.Unavailable, "It is unknown whether this worked. Try again with the next code.", err)
	}
	if err != nil {
		return false, fmt.Errorf("change one-time codes: %w", err)
	}
	return moved == 1, nil
}
