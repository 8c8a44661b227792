package account

import (
	"cmp"
	"context"
	"log/slog"
	"net/netip"

	"seckill/ent"
	"seckill/ent/accountlink"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/captcha"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/locale"
	"seckill/internal/platform/postgres"
	"seckill/internal/platform/ratelimit"
)

// RegisterInput describes a new account.
type RegisterInput struct {
	NewUser
	Captcha  captcha.Answer
	Language locale.Language // of e-mails
	Addr     netip.Addr      // of the client
}

// Register creates an account, signs in, and mails a link that verifies an e-mail address.
// Refusals: BadField, fault.Throttled,
// captcha.Required, captcha.Invalid, ACCOUNT_TAKEN. ACCOUNT_TAKEN reveals that an account
// exists; the captcha and rate limits bound how many can be checked.
func (s *Service) Register(ctx context.Context, in RegisterInput) (*SignedIn, error) {
	clean, err := s.store.names.clean(in.NewUser)
	if err != nil {
		return nil, err
	}
	if err := s.limit(ctx, registersPerAddress, in.Addr); err != nil {
		return nil, err
	}
	leave, err := s.passwords.enqueue(proven, ratelimit.Network(in.Addr)) // the captcha is checked below
	if err != nil {
		return nil, err
	}
	defer leave()
	if err := s.cfg.Captchas.Check(ctx, captcha.Scope{Purpose: captcha.Register, From: in.Addr}, in.Captcha); err != nil {
		return nil, err
	}
	taken := refused(fault.AccountTaken, "account")
	if there, _, err := s.store.byAccount(ctx, clean.Account); there != nil || err != nil {
		return nil, cmp.Or(err, taken)
	}
	hash, err := s.passwords.hash(ctx, clean.Password)
	if err != nil {
		return nil, err
	}
	mailed, err := s.mayMail(ctx, clean.Account) // without a link the user asks for one later
	if err != nil {
		return nil, err
	}
	made := s.store.newUser(clean, auth.Customer)
	signed, err := s.signIn(ctx, made, func(ctx context.Context, tx *ent.Tx) error {
		if err := insertUser(ctx, tx, made, hash); err != nil {
			return err
		}
		if err := tx.User.UpdateOneID(made.ID).SetLanguage(string(in.Language)).Exec(ctx); err != nil ||
			s.outbox(made.Account) == nil || !mailed.Allowed {
			return err
		}
		return s.mailLink(ctx, tx, newLink{user: made.ID, purpose: accountlink.PurposeVERIFY, to: made.Account,
			language: in.Language})
	})
	if postgres.IsUnique(err) {
		return nil, taken
	}
	return signed, err
}

// LoginInput describes an attempt to sign in.
type LoginInput struct {
	Account  string
	Password string
	Captcha  captcha.Answer // zero = none was sent; consumed only when required
	Code     string         // one-time or recovery code; "" = none was sent
	Device   string         // device token of an earlier sign-in; "" or an invalid one = unknown device
	Addr     netip.Addr     // of the client
}

// Login opens a session. Refusals: INVALID_CREDENTIALS for an unknown account or a wrong
// password, fault.Throttled, captcha.Required, captcha.Invalid, ONE_TIME_CODE_REQUIRED,
// ONE_TIME_CODE_INVALID.
func (s *Service) Login(ctx context.Context, in LoginInput) (*SignedIn, error) {
	account := s.store.names.lookup(in.Account)
	device := s.devices.open(in.Device, account, s.cfg.Clock.Now())
	if device == "" { // a known device has its own limits: failures of others behind its address do not count
		if err := s.limit(ctx, loginsPerAddress, in.Addr); err != nil {
			return nil, err
		}
	}
	leave, answered, err := s.enqueue(ctx, in, device != "")
	if err != nil {
		return nil, err
	}
	defer leave()
	try := guarded{account: account, device: device, from: in.Addr, answer: in.Captcha, answered: answered}
	if err := s.guard.admit(ctx, try); err != nil {
		return nil, err
	}
	user, hash, err := s.store.byAccount(ctx, account)
	if err != nil {
		return nil, err
	}
	ok, stale, err := s.passwords.matches(ctx, in.Password, hash)
	if err != nil {
		return nil, err
	}
	if !ok || user.Disabled {
		why := wrongPassword
		if ok {
			why = userDisabled
		}
		s.signInFailed(ctx, user, in.Addr, why)
		return nil, refused(fault.InvalidCredentials)
	}
	// Without the right code the attempt stays counted: the password alone must not allow
	// guessing of codes.
	if err := s.requireCode(ctx, user, in.Code, in.Addr); err != nil {
		return nil, err
	}
	if err := s.guard.succeeded(ctx, try); err != nil {
		s.cfg.Log.WarnContext(ctx, "failures of an account stay counted", slog.Any("error", err))
	}
	if stale {
		s.renewHash(ctx, user, normalisePassword(in.Password), hash)
	}
	signed, err := s.signIn(ctx, user, nil)
	if err == nil {
		s.cfg.Admin.cfg.Security.Write(ctx, Event{Kind: EventSignIn, Actor: user.ID, Subject: user.ID, Addr: in.Addr})
	}
	return signed, err
}

// Details of failed attempts in the security log.
const (
	wrongPassword = "wrong password" // #nosec G101 -- a text of the log
	wrongCode     = "wrong one-time code"
	userDisabled  = "user is disabled"
)

// signInFailed writes to the security log, without the account as typed: it may be a
// password.
func (s *Service) signInFailed(ctx context.Context, user *User, addr netip.Addr, why string) {
	e := Event{Kind: EventSignInFailed, Addr: addr, Detail: "unknown account"}
	if user != nil {
		e.Subject, e.Detail = user.ID, why
	}
	s.cfg.Admin.cfg.Security.Write(ctx, e)
}

// KnownDevice returns the rate limit subject of a device that signed in to the account
// before; false for other devices. It does no I/O.
func (s *Service) KnownDevice(account, token string) (ratelimit.Subject, bool) {
	device := s.devices.open(token, s.store.names.lookup(account), s.cfg.Clock.Now())
	return ratelimit.Device(device), device != ""
}

// enqueue reserves a place in the hash queue. When the unproven share is full, an unknown
// device in an unknown network needs a captcha answer, which is consumed (answered). With
// an error leave is nil.
func (s *Service) enqueue(ctx context.Context, in LoginInput, knownDevice bool) (leave func(), answered bool,
	err error) {
	network := ratelimit.Network(in.Addr)
	if knownDevice {
		leave, err = s.passwords.enqueue(trusted, network)
		return leave, false, err
	}
	leave, err = s.passwords.enqueue(unproven, network)
	if err == nil || !s.passwords.full(unproven) {
		return leave, false, err
	}
	if s.guard.knownNetwork(ctx, network) {
		leave, err = s.passwords.enqueue(proven, network)
		return leave, false, err
	}
	if in.Captcha == (captcha.Answer{}) { // reserves no place before there is an answer
		return nil, false, s.cfg.Captchas.Check(ctx, captcha.Scope{Purpose: captcha.Login, From: in.Addr}, in.Captcha)
	}
	leave, err = s.passwords.enqueue(proven, network)
	if err != nil {
		return nil, false, err
	}
	err = s.cfg.Captchas.Check(ctx, captcha.Scope{Purpose: captcha.Login, From: in.Addr}, in.Captcha)
	if err != nil {
		leave()
		return nil, false, err
	}
	return leave, true, nil
}

func (s *Service) limit(ctx context.Context, p ratelimit.Policy, addr netip.Addr) error {
	d, err := s.cfg.Limits.AllowAddr(ctx, p, addr)
	if err != nil {
		return err
	}
	return d.Refusal()
}

// renewHash rehashes with the current parameters. An error is only logged: the next
// sign-in tries again.
func (s *Service) renewHash(ctx context.Context, user *User, password, old string) {
	hash, err := s.passwords.hash(ctx, password)
	if err == nil {
		err = s.store.setHash(ctx, user.ID, old, hash)
	}
	if err != nil {
		s.cfg.Log.WarnContext(ctx, "password hash not renewed", slog.Any("error", err))
	}
}

// signIn opens a session, in one transaction with before.
func (s *Service) signIn(ctx context.Context, user *User,
	before func(ctx context.Context, tx *ent.Tx) error) (*SignedIn, error) {
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
	signed, err := s.tokensOf(user, row, token)
	if err != nil {
		return nil, err
	}
	now := s.cfg.Clock.Now()
	signed.Device, err = s.devices.issue(auth.CookieFrom(ctx).Device(), user.Account, now)
	signed.DeviceExpiresAt = now.Add(DeviceLife)
	return signed, err
}

func (s *Service) tokensOf(user *User, row *ent.Session, token refreshToken) (*SignedIn, error) {
	expires := row.ExpiresAt.UTC()
	access, accessExpires, err := s.cfg.Tokens.Mint(auth.MintInput{
		User: user.ID, Session: row.ID, Role: s.cfg.Directory.granted(user),
		Life: min(s.cfg.Tokens.AccessLife(), expires.Sub(s.cfg.Clock.Now())),
	})
	if err != nil {
		return nil, err
	}
	return &SignedIn{User: user, Role: s.cfg.Directory.granted(user), Session: row.ID, Tokens: Tokens{
		Access: access, AccessExpiresAt: accessExpires, Refresh: token.text, RefreshExpiresAt: expires,
	}}, nil
}
