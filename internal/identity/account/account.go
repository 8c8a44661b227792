// Package account implements user accounts: account names, passwords, sessions, refresh
// tokens, roles, and the limits on password guessing.
//
// Access tokens and revoked sessions belong to package auth, captchas to package captcha.
// HTTP, cookies and GraphQL are in the layers above.
//
//	          Register, Login
//	user ───────────────────────► session (generation 1)
//	                                │  Refresh: compare-and-set on the generation,
//	                                │  the previous refresh token stays valid for 10 s
//	                                ▼  and returns the same successor
//	                              session (generation n + 1) ──┐
//	                                │  ▲                        │ Refresh
//	                                │  └────────────────────────┘
//	   Logout, reuse of an old token│
//	   30 minutes idle, 24 h total  ▼
//	                              ended, in all processes within a second
//
// An unknown account and a wrong password return the same refusal after the same time.
// Only a client that sends the right password learns that the account exists.
package account

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/ent"
	"seckill/internal/outbox/mail"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/captcha"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
	"seckill/internal/platform/ratelimit"
)

const (
	// DefaultIdle is the time after the last refresh at which a session ends.
	DefaultIdle = 30 * time.Minute
	// DefaultLongest is the time after sign-in at which a session ends, even if it was
	// refreshed.
	DefaultLongest = 24 * time.Hour
)

// Limits per address, for IPv6 per /64. They limit guessing of many accounts from one
// network;
// the guard limits guessing of one account from many networks.
var (
	loginsPerAddress    = ratelimit.Policy{Name: "login_address", Burst: 20, PerSecond: 0.5, Mode: ratelimit.FailClosed}
	registersPerAddress = ratelimit.Policy{Name: "register_address", Burst: 10, PerSecond: 0.1, Mode: ratelimit.FailClosed}
)

// User is an account. It is shared between requests and must not be changed.
type User struct {
	ID          id.User
	Account     string // normalised e-mail address or E.164 phone number
	DisplayName string
	Role        auth.Role
	Version     int64  // grows with every change
	Disabled    bool   // cannot sign in
	TOTP        bool   // sign-in needs a one-time code
	Verified    bool   // the user has shown that they read the account's address
	ExternalID  string // in another system; "" = none
	Claims      Claims // of the last sign-in with another provider
	CreatedAt   time.Time
}

// Contact returns what reaches the person of an account, or names the person in another system;
// false when there is neither.
func (u *User) Contact() (string, bool) {
	switch {
	case !strings.HasPrefix(u.Account, externalAccount):
		return u.Account, true
	case u.ExternalID != "":
		return externalAccount + u.ExternalID, true
	}
	return "", false
}

// Tokens are the access and refresh token of a session.
type Tokens struct {
	Access           string
	AccessExpiresAt  time.Time
	Refresh          string // opaque; valid for one refresh
	RefreshExpiresAt time.Time
}

// SignedIn is a user with the tokens of a new or refreshed session.
type SignedIn struct {
	User    *User
	Role    auth.Role // granted to the session: lower than the user's while a required one-time code is not set up
	Session id.Session
	Tokens  Tokens
	// Device is the device token, which expires at DeviceExpiresAt; "" after a refresh.
	Device          string
	DeviceExpiresAt time.Time
}

// Config configures a Service.
type Config struct {
	DB          *postgres.DB
	Redis       redis.UniversalClient // without retries
	Prefix      string                // of every key, for example "sk:"
	Keys        auth.Keys
	Tokens      *auth.Tokens
	Revocations *auth.Revocations
	Directory   *Directory
	Captchas    *captcha.Service
	Limits      *ratelimit.Limiter
	Names       Names // of accounts
	Clock       clock.Clock
	Log         *slog.Logger
	Idle        time.Duration // 0 = DefaultIdle
	Longest     time.Duration // 0 = DefaultLongest
	Admin       *Admin
	Mail        *mail.Outbox // nil = no e-mails are sent
	Texts       *mail.Outbox // nil = nothing is sent to phone numbers
	Purchases   Purchases    // nil = nothing counts beyond an account
}

// Purchases keeps what an account that is being deleted bought in running sales.
type Purchases interface {
	// Keep returns what the transaction that deletes the account does too.
	Keep(ctx context.Context, u *User) (func(context.Context, *ent.Tx) error, error)
}

// Service implements registration, sign-in, refresh and sign-out. It is safe for
// concurrent use.
type Service struct {
	cfg       Config
	store     *Store
	passwords *passwords
	guard     *guard
	refresher refresher
	devices   devices
	totp      auth.Sealer
}

// New returns a Service. It hashes one password, which takes about 25 ms.
func New(cfg Config) (*Service, error) {
	for _, missing := range []bool{
		cfg.DB == nil, cfg.Redis == nil, cfg.Tokens == nil, cfg.Revocations == nil,
		cfg.Directory == nil, cfg.Captchas == nil, cfg.Limits == nil, cfg.Admin == nil, cfg.Clock == nil, cfg.Log == nil,
	} {
		if missing {
			return nil, errors.New("account: a part is missing")
		}
	}
	if cfg.Idle == 0 {
		cfg.Idle = DefaultIdle
	}
	if cfg.Longest == 0 {
		cfg.Longest = DefaultLongest
	}
	return &Service{
		cfg: cfg, store: NewStore(cfg.DB, cfg.Clock, cfg.Names), passwords: newPasswords(owaspMinimum),
		guard:     &guard{client: cfg.Redis, prefix: cfg.Prefix, captchas: cfg.Captchas},
		refresher: newRefresher(cfg.Keys), devices: newDevices(cfg.Keys), totp: auth.NewSealer(cfg.Keys, "totp secrets"),
	}, nil
}

// Admin returns the service for changes of users by operators.
func (s *Service) Admin() *Admin { return s.cfg.Admin }

// Directory returns the reader of users.
func (s *Service) Directory() *Directory { return s.cfg.Directory }

// refused returns a refusal that carries only a reason.
func refused(why fault.Reason, at ...string) error {
	return fault.Refused{Why: why, At: at}
}
