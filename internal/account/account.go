// Package account owns people's accounts: names to sign in with, passwords,
// sessions and their refresh tokens, roles, and what bounds guessing.
//
// It does not own access tokens or the memory of ended sessions (package auth),
// nor captchas, whose verdicts it asks for. HTTP, cookies and GraphQL are above it.
//
//	          Register, Login
//	person ─────────────────────► session (generation 1)
//	                                │  Refresh: compare-and-set on the generation,
//	                                │  the refresh token before stays good for 10 s
//	                                ▼  and gives the same successor
//	                              session (generation n + 1) ──┐
//	                                │  ▲                        │ Refresh
//	                                │  └────────────────────────┘
//	   Logout, an older token shown,│
//	   30 minutes idle, 24 h in all ▼
//	                              ended, everywhere within a second
//
// An unknown account and a wrong password are one refusal that takes the same
// time; only the person who knows the password learns that there is an account.
package account

import (
	"errors"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"seckill/internal/admission/captcha"
	"seckill/internal/auth"
	"seckill/internal/clock"
	"seckill/internal/fault"
	"seckill/internal/postgres"
	"seckill/internal/ratelimit"
)

const (
	// DefaultIdle ends a session that was not refreshed for this long.
	DefaultIdle = 30 * time.Minute
	// DefaultLongest ends a session this long after signing in, refreshed or not.
	DefaultLongest = 24 * time.Hour
)

// Limits per address, of IPv6 per /64. They bound guessing of many accounts from
// one place; guessing of one account from many places is bounded by the guard.
var (
	loginsPerAddress    = ratelimit.Policy{Name: "login_address", Burst: 20, PerSecond: 0.5, Mode: ratelimit.FailClosed}
	registersPerAddress = ratelimit.Policy{Name: "register_address", Burst: 10, PerSecond: 0.1, Mode: ratelimit.FailClosed}
)

// User is an account. It is shared between requests: never change one.
type User struct {
	ID          uuid.UUID
	Account     string // normalised e-mail address or E.164 phone number
	DisplayName string
	Role        auth.Role
	Version     int64 // grows with every change
	Disabled    bool  // cannot sign in
	CreatedAt   time.Time
}

// Tokens are what a signed-in person holds.
type Tokens struct {
	Access           string
	AccessExpiresAt  time.Time
	Refresh          string // opaque; good for one refresh
	RefreshExpiresAt time.Time
}

// SignedIn is a user and the tokens of a session.
type SignedIn struct {
	User    *User
	Session uuid.UUID
	Tokens  Tokens
	// Device is the device token, which expires at DeviceExpiresAt; "" after a refresh.
	Device          string
	DeviceExpiresAt time.Time
}

// Config is what a Service needs.
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
	Clock       clock.Clock
	Log         *slog.Logger
	Idle        time.Duration // 0 = DefaultIdle
	Longest     time.Duration // 0 = DefaultLongest
	Admin       *Admin
}

// Service holds the use cases. It is safe for concurrent use.
type Service struct {
	cfg       Config
	store     *Store
	passwords *passwords
	guard     *guard
	refresher refresher
	devices   devices
}

// New returns a service. It hashes one password, about 25 ms.
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
	pw, err := newPasswords(owaspMinimum)
	if err != nil {
		return nil, err
	}
	return &Service{
		cfg: cfg, store: NewStore(cfg.DB, cfg.Clock), passwords: pw,
		guard:     &guard{client: cfg.Redis, prefix: cfg.Prefix, captchas: cfg.Captchas},
		refresher: newRefresher(cfg.Keys), devices: newDevices(cfg.Keys),
	}, nil
}

// Admin returns what changes users on behalf of staff.
func (s *Service) Admin() *Admin { return s.cfg.Admin }

// Directory returns the reader of users.
func (s *Service) Directory() *Directory { return s.cfg.Directory }

// refused is a refusal with nothing to tell but why.
func refused(why fault.Reason, at ...string) fault.Refusal {
	return fault.Refused{Why: why, At: at}
}
