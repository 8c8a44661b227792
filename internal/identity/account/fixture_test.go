package account

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alexedwards/argon2id"
	"github.com/alicebob/miniredis/v2"
	"github.com/google/uuid"

	"seckill/internal/buy/reservation"
	"seckill/internal/outbox/mail"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/captcha"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
	"seckill/internal/platform/ratelimit"
	"seckill/internal/platform/redisconn"
	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// cheap are hash parameters for tests that do not test hashing: 0.2 ms.
var cheap = &argon2id.Params{Memory: 256, Iterations: 1, Parallelism: 1, SaltLength: 16, KeyLength: 32}

const goodPassword = "correct horse battery"

// fixture is one process with its services.
type fixture struct {
	*Service
	t      *testing.T
	conn   *redisconn.Conn
	prefix string
	db     *postgres.DB
	clock  *clock.Fake
	mini   *miniredis.Miniredis // nil on real Redis

	outbox    *mail.Outbox // before start; nil = no e-mails are sent
	texts     *mail.Outbox // before start; nil = nothing is sent to phone numbers
	staffTOTP bool         // before start: one-time codes are required from staff

	admin    *Admin
	security *SecurityLog
}

var testKeys = mustKeys(auth.Key{ID: "k1", Secret: []byte(strings.Repeat("test-key", 4))})

func mustKeys(signing auth.Key, older ...auth.Key) auth.Keys {
	keys, err := auth.NewKeys(signing, older...)
	if err != nil {
		panic(err)
	}
	return keys
}

// real returns a process on Postgres and Redis.
func real(t *testing.T) *fixture {
	t.Helper()
	conn, prefix := testenv.Redis(t)
	f := &fixture{t: t, conn: conn, prefix: prefix, db: testdb.Postgres(t), clock: clock.NewFake(time.Now().Truncate(time.Millisecond))}
	return f.start(testKeys)
}

// embedded returns a process as in the demo. The clock also moves Redis.
func embedded(t *testing.T) *fixture {
	t.Helper()
	mini := miniredis.RunT(t)
	mini.ClockTTL(true)
	url := testenv.RedisURLAt(mini.Addr())
	conn, err := redisconn.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	db := testdb.SQLite(t)
	f := &fixture{t: t, conn: conn, prefix: "t:", db: db, mini: mini, clock: clock.NewFake(time.Now().Truncate(time.Millisecond))}
	f.advance(0)
	return f.start(testKeys)
}

func onBoth(t *testing.T, test func(t *testing.T, f *fixture)) {
	t.Helper()
	t.Run("postgres and redis", func(t *testing.T) {
		t.Parallel()
		test(t, real(t))
	})
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		test(t, embedded(t))
	})
}

// another returns a second process on the same services, with other keys.
func (f *fixture) another(keys auth.Keys) *fixture {
	g := *f
	return g.start(keys)
}

// start wires the process and follows the revocation stream until the test ends.
func (f *fixture) start(keys auth.Keys) *fixture {
	f.t.Helper()
	log := slog.New(slog.DiscardHandler)
	store := NewStore(f.db, f.clock, Names{})
	directory := NewDirectory(DirectoryConfig{Store: store, Client: f.conn.Script, Prefix: f.prefix, Keys: keys, Clock: f.clock, Log: log, StaffTOTP: f.staffTOTP})
	tail := f.conn.NewBlocking()
	revocations := auth.NewRevocations(auth.RevocationsConfig{
		Client: f.conn.Script, Tail: tail, Prefix: f.prefix, Clock: f.clock, Log: log, Store: store,
	})
	revocations.OnUserChanged(directory.Forget)
	tokens, err := auth.NewTokens(auth.TokensConfig{Keys: keys, Clock: f.clock, Sessions: revocations, Roles: directory})
	if err != nil {
		f.t.Fatal(err)
	}
	captchas, err := captcha.New(captcha.Config{
		Client: f.conn.Script, Keys: reservation.Keys{Prefix: f.prefix}, Secret: keys.Derive("captcha")[0], PowMax: 20, Wait: testenv.Wait, Clock: f.clock,
	})
	if err != nil {
		f.t.Fatal(err)
	}
	f.security = NewSecurityLog(f.db, f.clock, log)
	f.security.Timeout = testenv.Wait
	f.admin = NewAdmin(AdminConfig{Store: store, Directory: directory, Revocations: revocations, Security: f.security, Log: log, Mail: f.outbox, Texts: f.texts})
	f.Service, err = New(Config{
		DB: f.db, Redis: f.conn.Script, Prefix: f.prefix, Keys: keys, Tokens: tokens, Revocations: revocations, Directory: directory,
		Captchas: captchas, Clock: f.clock, Log: log, Admin: f.admin, Mail: f.outbox, Texts: f.texts,
		Limits: ratelimit.New(ratelimit.Config{Client: f.conn.Script, Prefix: f.prefix, Clock: f.clock, Off: true}),
	})
	if err != nil {
		f.t.Fatal(err)
	}
	f.passwords = newPasswords(cheap)
	ctx, stop := context.WithCancel(f.t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = revocations.Run(ctx) })
	f.t.Cleanup(func() {
		stop()
		running.Wait()
		_ = tail.Close()
	})
	<-revocations.Ready()
	return f
}

// limited returns the same process with rate limits enabled.
func (f *fixture) limited() *fixture {
	f.cfg.Limits = ratelimit.New(ratelimit.Config{Client: f.conn.Script, Prefix: f.prefix, Clock: f.clock})
	return f
}

// advance moves the clock, and that of an embedded Redis.
func (f *fixture) advance(d time.Duration) {
	now := f.clock.Advance(d)
	if f.mini != nil {
		f.mini.SetTime(now)
	}
}

var serial atomic.Int64

// someone returns an account name that is not registered.
func someone() NewUser {
	return NewUser{Account: fmt.Sprintf("someone%d@example.com", serial.Add(1)), Password: goodPassword, DisplayName: "Someone"}
}

// answer returns a correct captcha answer for a purpose.
func (f *fixture) answer(purpose captcha.Purpose) captcha.Answer {
	f.t.Helper()
	c, err := f.cfg.Captchas.Create(f.t.Context(), captcha.CreateInput{Purpose: purpose, Kind: captcha.ProofOfWork})
	if err != nil {
		f.t.Fatalf("captcha: %v", err)
	}
	return f.solve(c)
}

func (f *fixture) solve(c captcha.Challenge) captcha.Answer {
	f.t.Helper()
	text, err := captcha.Solve(c.Parameters)
	if err != nil {
		f.t.Fatal(err)
	}
	return captcha.Answer{ChallengeID: c.ID, Text: text}
}

// register creates an account and signs in.
func (f *fixture) register(who NewUser) *SignedIn {
	f.t.Helper()
	in, err := f.Register(f.t.Context(), RegisterInput{NewUser: who, Captcha: f.answer(captcha.Register)})
	if err != nil {
		f.t.Fatalf("register: %v", err)
	}
	return in
}

// login signs in and fails the test on a refusal.
func (f *fixture) login(account, password string) *SignedIn {
	f.t.Helper()
	in, err := f.Login(f.t.Context(), LoginInput{Account: account, Password: password})
	if err != nil {
		f.t.Fatalf("login: %v", err)
	}
	return in
}

func (f *fixture) refresh(token string) *SignedIn {
	f.t.Helper()
	in, err := f.Refresh(f.t.Context(), token)
	if err != nil {
		f.t.Fatalf("refresh: %v", err)
	}
	return in
}

func (f *fixture) refreshRefused(what, token string) {
	f.t.Helper()
	in, err := f.Refresh(f.t.Context(), token)
	if in != nil || fault.ReasonOf(err) != fault.SessionInvalid {
		f.t.Errorf("%s: %+v, %v; want SESSION_INVALID", what, in, err)
	}
}

// principal returns the principal of an access token, nil if it is refused.
func (f *fixture) principal(access string) *auth.Principal {
	f.t.Helper()
	p, err := f.cfg.Tokens.Verify(f.t.Context(), access)
	if err != nil && fault.CodeOf(err) != fault.Unauthenticated {
		f.t.Fatal(err)
	}
	return p
}

func (f *fixture) users() int {
	f.t.Helper()
	n, err := f.db.Ent.User.Query().Count(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	return n
}

func address(n int) netip.Addr { return netip.AddrFrom4([4]byte{198, 51, 100, byte(n)}) }

func sameUser(a, b *User) bool {
	return a != nil && b != nil && a.ID == b.ID && a.Account == b.Account && a.DisplayName == b.DisplayName &&
		a.Role == b.Role && a.Version == b.Version && a.CreatedAt.Equal(b.CreatedAt)
}

// noUser is an id that no account has.
var noUser = id.User(uuid.Max)
