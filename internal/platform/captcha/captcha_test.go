package captcha

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"seckill/internal/buy/reservation"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/redisconn"
	"seckill/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

const testPowMax = 50 // fast to solve

func service(t *testing.T, conn *redisconn.Conn, prefix string) *Service {
	t.Helper()
	s, err := New(Config{
		Client: conn.Script, Keys: reservation.Keys{Prefix: prefix}, Clock: &testClock{},
		Secret: []byte(strings.Repeat("captcha!", 4)), PowMax: testPowMax, PoolSize: 4,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// testClock is the clock of the machine, or stands still.
type testClock struct {
	mu    sync.Mutex
	stood time.Time // guarded by mu
}

func (c *testClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stood.IsZero() {
		return time.Now().UTC()
	}
	return c.stood
}

// stop stops the clocks of a service and its Redis at a time.
func stop(s *Service, mini *miniredis.Miniredis, at time.Time) {
	s.penalties.sends.Wait() // a note that arrives later adds its points at the new time
	mini.SetTime(at)
	c := s.cfg.Clock.(*testClock)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stood = at.UTC()
}

func onBoth(t *testing.T, test func(t *testing.T, s *Service, conn *redisconn.Conn)) {
	t.Helper()
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		conn, prefix := testenv.Redis(t)
		test(t, service(t, conn, prefix), conn)
	})
	t.Run("miniredis", func(t *testing.T) {
		t.Parallel()
		s, conn, _ := embedded(t)
		test(t, s, conn)
	})
}

func embedded(t *testing.T) (*Service, *redisconn.Conn, *miniredis.Miniredis) {
	t.Helper()
	mini := miniredis.RunT(t)
	mini.ClockTTL(true)
	conn, err := redisconn.Open(t.Context(), testenv.RedisURLAt(mini.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return service(t, conn, "t:"), conn, mini
}

func seckill() Scope {
	return Scope{Purpose: Seckill, Sale: id.New[id.Sale](), User: id.New[id.User]()}
}

// of returns the scope for another purpose.
func (scope Scope) of(p Purpose) Scope {
	scope.Purpose = p
	return scope
}

// scopes returns one scope of each purpose.
func scopes() []Scope {
	return []Scope{seckill(), seckill().of(Waitlist), {Purpose: Login}, {Purpose: Register}}
}

func create(t *testing.T, s *Service, scope Scope, kind Kind) Challenge {
	t.Helper()
	c, err := s.Create(t.Context(), CreateInput{Purpose: scope.Purpose, Sale: scope.Sale, User: scope.User, From: scope.From, Kind: kind})
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	return c
}

// puzzleOf parses the parameters of a proof of work.
func puzzleOf(t *testing.T, c Challenge) (p workParameters) {
	t.Helper()
	if err := json.Unmarshal([]byte(c.Parameters), &p); err != nil || p.Algorithm != "SHA-256" || p.MaxNumber < testPowMax || p.Signature == "" {
		t.Fatalf("parameters %s: %v", c.Parameters, err)
	}
	return p
}

// solve finds the number like a browser, from the parameters alone.
func solve(t *testing.T, c Challenge) Answer {
	t.Helper()
	p := puzzleOf(t, c)
	for n := range p.MaxNumber + 1 {
		sum := sha256.Sum256(fmt.Append([]byte(p.Salt), n))
		if hex.EncodeToString(sum[:]) == p.Challenge {
			if got, err := Solve(c.Parameters); got != fmt.Sprint(n) {
				t.Errorf("Solve: %q, %v, want %d", got, err, n)
			}
			return Answer{ChallengeID: c.ID, Text: fmt.Sprint(n)}
		}
	}
	t.Fatalf("no number up to %d fits %s", p.MaxNumber, c.Parameters)
	return Answer{}
}

func wrong(c Challenge) Answer { return Answer{ChallengeID: c.ID, Text: "no such answer"} }

func wantRight(t *testing.T, s *Service, scope Scope, a Answer) {
	t.Helper()
	if err := s.Check(t.Context(), scope, a); err != nil {
		t.Fatalf("right answer for %s: got %v", scope.Purpose, err)
	}
}

// wantInvalid requires that an answer is refused, and returns the next challenge.
func wantInvalid(t *testing.T, s *Service, scope Scope, a Answer) Challenge {
	t.Helper()
	err := s.Check(t.Context(), scope, a)
	invalid, ok := errors.AsType[Invalid](err)
	if !ok || invalid.Challenge == nil || invalid.Reason() != fault.CaptchaInvalid {
		t.Fatalf("for %s: got %v; want CAPTCHA_INVALID with the next challenge", scope.Purpose, err)
	}
	return *invalid.Challenge
}

func TestRightAnswerCountsOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *Service, _ *redisconn.Conn) {
		for _, scope := range scopes() {
			a := solve(t, create(t, s, scope, ProofOfWork))
			wantRight(t, s, scope, a)
			wantInvalid(t, s, scope, a)
		}
	})
}

func TestOneOfAHundredEqualAnswersCounts(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *Service, _ *redisconn.Conn) {
		scope := seckill()
		a := solve(t, create(t, s, scope, ProofOfWork))
		var right atomic.Int32
		var all sync.WaitGroup
		places := make(chan struct{}, 20)
		for range 100 {
			all.Go(func() {
				places <- struct{}{}
				defer func() { <-places }()
				err := s.Check(t.Context(), scope, a)
				if testenv.Refusal(t, err) == nil {
					right.Add(1)
				}
			})
		}
		all.Wait()
		if n := right.Load(); n != 1 {
			t.Errorf("%d of 100 counted, want 1", n)
		}
	})
}

func TestThreeWrongAnswersVoidIt(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *Service, _ *redisconn.Conn) {
		for _, scope := range scopes() {
			c := create(t, s, scope, ProofOfWork)
			a := solve(t, c)
			for range MaxTries - 1 {
				wantInvalid(t, s, scope, wrong(c))
			}
			wantRight(t, s, scope, a) // the third try

			c = create(t, s, scope, ProofOfWork)
			a = solve(t, c)
			for range MaxTries {
				wantInvalid(t, s, scope, wrong(c))
			}
			wantInvalid(t, s, scope, a) // right, but the fourth try
		}
	})
}

func TestRefusalBringsTheNextChallenge(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *Service, _ *redisconn.Conn) {
		for _, scope := range scopes() {
			next := wantInvalid(t, s, scope, wrong(create(t, s, scope, ProofOfWork)))
			wantRight(t, s, scope, solve(t, next))

			err := s.Check(t.Context(), scope, Answer{})
			required, ok := errors.AsType[Required](err)
			if !ok || required.Reason() != fault.CaptchaRequired {
				t.Fatalf("nothing sent: got %v; want CAPTCHA_REQUIRED", err)
			}
			wantRight(t, s, scope, solve(t, *required.Challenge))
		}
		pictures := wantInvalid(t, s, Scope{Purpose: Login}, wrong(create(t, s, Scope{Purpose: Login}, Math)))
		if pictures.Kind != Math {
			t.Errorf("after a MATH comes %s", pictures.Kind)
		}
	})
}

func TestAnswerServesOnlyWhatItWasMadeFor(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *Service, _ *redisconn.Conn) {
		mine := seckill()
		otherUser, otherSale := mine, mine
		otherUser.User, otherSale.Sale = id.New[id.User](), id.New[id.Sale]()
		for name, foreign := range map[string]Scope{
			"other user": otherUser, "other sale": otherSale, "waitlist": mine.of(Waitlist), "login": {Purpose: Login}, "register": {Purpose: Register},
		} {
			a := solve(t, create(t, s, mine, ProofOfWork))
			t.Log(name)
			wantInvalid(t, s, foreign, a)
			wantRight(t, s, mine, a) // the try from another scope did not use it up
		}
		for _, pair := range [][2]Scope{{{Purpose: Login}, {Purpose: Register}}, {{Purpose: Register}, {Purpose: Login}}, {mine.of(Waitlist), mine}} {
			a := solve(t, create(t, s, pair[0], ProofOfWork))
			wantInvalid(t, s, pair[1], a)
		}
	})
}

func TestNewChallengeVoidsTheOldOneAndItsPermit(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *Service, conn *redisconn.Conn) {
		ctx, scope := t.Context(), seckill()
		old := create(t, s, scope, ProofOfWork)
		answers := s.cfg.Keys.Answers(id.ShardOf(scope.Sale), scope.Sale)
		permits := strings.Replace(answers, "answers", "permits", 1)
		conn.Cmd.Do(ctx, "ZADD", permits, time.Now().Add(time.Minute).UnixMilli(), scope.User.String())
		period := conn.Cmd.Time(ctx).Val().UnixMilli() / s.RecordLife().Milliseconds()
		conn.Cmd.HSet(ctx, fmt.Sprintf("%s:%d", answers, period), scope.User.String(), "1|3|r|"+permits)

		wantInvalid(t, s, scope, Answer{ChallengeID: "cap_nonsense", Text: "1"})
		if n := conn.Cmd.Exists(ctx, permits).Val(); n != 1 {
			t.Fatal("a refused answer took the permit away")
		}
		fresh := create(t, s, scope, ProofOfWork)
		testenv.Eventually(t, testenv.Wait, func() bool { return conn.Cmd.Exists(ctx, permits).Val() == 0 }, "the new challenge voids the permit")
		if fresh.ID == old.ID {
			t.Error("the same challenge twice")
		}
		wantInvalid(t, s, scope, solve(t, old))
		wantRight(t, s, scope, solve(t, fresh))
	})
}

// A place on the waitlist must not cost the path token of another item, nor the other way round.
func TestChallengesOfOnePurposeVoidNothingOfAnother(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *Service, conn *redisconn.Conn) {
		ctx, scope := t.Context(), seckill()
		path, join := create(t, s, scope, ProofOfWork), create(t, s, scope.of(Waitlist), ProofOfWork)
		answers := s.cfg.Keys.Answers(id.ShardOf(scope.Sale), scope.Sale)
		permits := strings.Replace(answers, "answers", "permits", 1)
		conn.Cmd.Do(ctx, "ZADD", permits, time.Now().Add(time.Minute).UnixMilli(), scope.User.String())
		period := conn.Cmd.Time(ctx).Val().UnixMilli() / s.RecordLife().Milliseconds()
		conn.Cmd.HSet(ctx, fmt.Sprintf("%s:%d", answers, period), scope.User.String(), "1|3|r|"+permits)
		record := func() string {
			return conn.Cmd.HGet(ctx, fmt.Sprintf("%s:%d", answers, period), scope.of(Waitlist).record()).Val()
		}
		testenv.Eventually(t, testenv.Wait, func() bool { return record() != "" }, "the earlier challenge of the waitlist is noted")
		earlier := record()
		later := create(t, s, scope.of(Waitlist), ProofOfWork)
		testenv.Eventually(t, testenv.Wait, func() bool { return record() != earlier }, "the later challenge of the waitlist voids the earlier")
		wantInvalid(t, s, scope.of(Waitlist), solve(t, join))
		wantRight(t, s, scope.of(Waitlist), solve(t, later))
		if n := conn.Cmd.Exists(ctx, permits).Val(); n != 1 {
			t.Error("a challenge of the waitlist voided a path token")
		}
		wantRight(t, s, scope, solve(t, path))
	})
}

func TestAnAnswerOfTheWaitlistFromBeforeTheOpeningCountsForNothing(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *Service, _ *redisconn.Conn) {
		s.cfg.Sales = &oneRule{Opens: time.Now().Add(time.Minute)}
		scope := seckill().of(Waitlist)
		c := create(t, s, scope, ProofOfWork)
		if err := s.Check(t.Context(), scope, solve(t, c)); !c.Early || fault.ReasonOf(err) != fault.CaptchaRequired {
			t.Errorf("early %t: got %v, want CAPTCHA_REQUIRED", c.Early, err)
		}
	})
}

func TestManyAnswersAreCheckedTogether(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *Service, _ *redisconn.Conn) {
		sale := id.New[id.Sale]()
		var tries []Try
		for range 4 {
			scope := Scope{Purpose: Waitlist, Sale: sale, User: id.New[id.User]()}
			tries = append(tries, Try{scope, s.Claim(scope, solve(t, create(t, s, scope, ProofOfWork)))})
		}
		tries[1].Claim.Verdict = Wrong
		tries[2].Claim = Claim{Verdict: NotOpen}
		for _, want := range [][]Verdict{{Right, Wrong, NotOpen, Right}, {NotOpen, Wrong, NotOpen, NotOpen}} {
			if got, err := s.CheckAll(t.Context(), tries); err != nil || !slices.Equal(got, want) {
				t.Errorf("got %q, %v, want %q", got, err, want)
			}
		}
	})
}

// Processes do not know of each other's challenges until one is answered.
func TestOfTwoProcessesChallengesTheLaterOneVoidsTheEarlier(t *testing.T) {
	t.Parallel()
	conn, prefix := testenv.Redis(t)
	one, other, scope := service(t, conn, prefix), service(t, conn, prefix), seckill()
	first := create(t, one, scope, ProofOfWork)
	second := create(t, other, scope, ProofOfWork)
	wantInvalid(t, one, scope, wrong(second))
	wantInvalid(t, other, scope, solve(t, first))
	wantRight(t, one, scope, solve(t, second))
	wantInvalid(t, one, scope, solve(t, first))
	wantRight(t, one, scope, solve(t, create(t, other, scope, ProofOfWork)))
}

func TestForgedChallengesAreRefused(t *testing.T) {
	t.Parallel()
	conn, prefix := testenv.Redis(t)
	s := service(t, conn, prefix)
	for _, scope := range scopes() {
		a := solve(t, create(t, s, scope, ProofOfWork))
		raw, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(a.ChallengeID, idPrefix))
		if err != nil {
			t.Fatal(err)
		}
		for i := range raw {
			forged := slices.Clone(raw)
			forged[i] ^= 1
			if c := s.Claim(scope, Answer{ChallengeID: idPrefix + base64.RawURLEncoding.EncodeToString(forged), Text: a.Text}); c.Verdict != NotOpen {
				t.Fatalf("byte %d changed: %+v", i, c)
			}
		}
		wantRight(t, s, scope, a)
	}
}

func TestChallengeExpires(t *testing.T) {
	t.Parallel()
	for _, scope := range scopes() {
		s, _, mini := embedded(t)
		now := time.Now()
		stop(s, mini, now)
		a := solve(t, create(t, s, scope, ProofOfWork))
		stop(s, mini, now.Add(DefaultLife))
		wantInvalid(t, s, scope, a)
		if keys := mini.Keys(); len(keys) != 0 {
			t.Errorf("%s: keys %v were written", scope.Purpose, keys)
		}
	}
	// A challenge that was answered wrongly expires at its own time.
	s, _, mini := embedded(t)
	now, scope := time.Now(), seckill()
	stop(s, mini, now)
	c := create(t, s, scope, ProofOfWork)
	a := solve(t, c)
	stop(s, mini, now.Add(DefaultLife-time.Second))
	wantInvalid(t, s, scope, wrong(c))
	stop(s, mini, now.Add(DefaultLife+time.Second))
	wantInvalid(t, s, scope, a)
}

func TestARecordOutlivesTheChallengesThatItVoids(t *testing.T) {
	t.Parallel()
	for _, scope := range scopes() {
		s, _, mini := embedded(t)
		now := time.Now()
		stop(s, mini, now)
		a := solve(t, create(t, s, scope, ProofOfWork))
		wantRight(t, s, scope, a)
		stop(s, mini, now.Add(DefaultLife-time.Millisecond))
		wantInvalid(t, s, scope, a)
		stop(s, mini, now.Add(2*s.RecordLife()+time.Second))
		for _, key := range mini.Keys() {
			if !strings.Contains(key, ":heat:") {
				t.Errorf("%s: %s stays", scope.Purpose, key)
			}
		}
	}
}

// A process whose clock was ahead, or that of Redis, must not lock a user out.
func TestAChallengeOfTheFutureIsForgotten(t *testing.T) {
	t.Parallel()
	s, _, mini := embedded(t)
	now, scope := time.Now(), seckill()
	stop(s, mini, now.Add(time.Hour))
	wantRight(t, s, scope, solve(t, create(t, s, scope, ProofOfWork)))
	stop(s, mini, now)
	wantRight(t, s, scope, solve(t, create(t, s, scope, ProofOfWork)))
}

func TestAChallengeRevealsNothingOfItsAnswer(t *testing.T) {
	t.Parallel()
	conn, prefix := testenv.Redis(t)
	s, scope := service(t, conn, prefix), seckill()
	macs := map[string]bool{}
	for range 2 {
		s.images.text <- picture{kind: Text, answer: "k7m4x", image: "data:"}
		_, mac, ok := s.parse(scope, create(t, s, scope, Text).ID)
		if !ok || macs[string(mac)] {
			t.Errorf("%t; the same answer has the same MAC in two challenges", ok)
		}
		macs[string(mac)] = true
	}
}

func TestAnswersThatAPersonWouldCallEqualAre(t *testing.T) {
	t.Parallel()
	conn, prefix := testenv.Redis(t)
	s, scope := service(t, conn, prefix), Scope{Purpose: Login}
	for _, test := range []struct {
		kind   Kind
		answer string
		typed  string
		right  bool
	}{
		{Text, "k7m4x", "K7M4X", true},
		{Text, "k7m4x", " k7 m4x ", true},
		{Text, "k7m4x", "ｋ７ｍ４ｘ", true},
		{Text, "k7m4x", "\u202ak7\u200bm4x\u202c", true},
		{Text, "k7m4x", "k7m4", false},
		{Text, "k7m4x", "k7m4x0", false},
		{Math, "17452", "017452", true},
		{Math, "17452", "１７４５２", true},
		{Math, "17452", "١٧٤٥٢", true},
		{Math, "17452", "-17452", false},
		{Math, "17452", "17452.0", false},
		{Math, "17452", strings.Repeat(" ", 300) + "17452", false},
	} {
		pool := s.images.text
		if test.kind == Math {
			pool = s.images.math
		}
		pool <- picture{kind: test.kind, answer: test.answer, image: "data:"}
		c := create(t, s, scope, test.kind)
		a := Answer{ChallengeID: c.ID, Text: test.typed}
		if test.right {
			wantRight(t, s, scope, a)
		} else {
			wantInvalid(t, s, scope, a)
		}
	}
}

func TestEachBadRequestHasItsOwnError(t *testing.T) {
	t.Parallel()
	conn, prefix := testenv.Redis(t)
	s := service(t, conn, prefix)
	for name, in := range map[string]CreateInput{
		"unknown purpose":      {Purpose: "PARTY"},
		"no purpose":           {},
		"unknown kind":         {Purpose: Login, Kind: "SMELL"},
		"seckill without sale": {Purpose: Seckill, User: id.New[id.User]()},
	} {
		if _, err := s.Create(t.Context(), in); fault.ReasonOf(err) != fault.InvalidInput {
			t.Errorf("%s: got %v; want INVALID_INPUT", name, err)
		}
	}
	_, err := s.Create(t.Context(), CreateInput{Purpose: Seckill, Sale: id.New[id.Sale]()})
	if fault.CodeOf(err) != fault.Unauthenticated {
		t.Errorf("seckill without a user: got %v; want UNAUTHENTICATED", err)
	}
	for _, malformed := range []string{"", "x", "cap_", "usr_01jd0000000000000000000000", strings.Repeat("c", 300)} {
		wantInvalid(t, s, Scope{Purpose: Login}, Answer{ChallengeID: malformed, Text: "1"})
	}
}

func TestWithoutRedisNoAnswerPasses(t *testing.T) {
	t.Parallel()
	server := testenv.RedisServer(t)
	s := service(t, server.Conn(), "t:")
	a := solve(t, create(t, s, Scope{Purpose: Login}, ProofOfWork))
	server.Kill()
	if err := s.Check(t.Context(), Scope{Purpose: Login}, a); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("check: %v; want UNAVAILABLE", err)
	}
	for _, scope := range scopes() {
		for range 3 {
			create(t, s, scope, ProofOfWork) // waits for nothing
		}
	}
}
