package path_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"seckill/internal/admission/captcha"
	"seckill/internal/admission/path"
	"seckill/internal/clock"
	"seckill/internal/fault"
	"seckill/internal/id"
	"seckill/internal/redisconn"
	"seckill/internal/reservation"
	"seckill/internal/sale"
	"seckill/internal/testenv"
)

// fixture is one open sale with one item of ten units.
type fixture struct {
	t        testing.TB
	redis    redis.UniversalClient
	keys     reservation.Keys
	captchas *captcha.Service
	paths    *path.Service
	sale     uuid.UUID
	item     uuid.UUID
	shard    int
}

func newFixture(t *testing.T, conn *redisconn.Conn, prefix string, ratio float64) *fixture {
	t.Helper()
	f := &fixture{t: t, redis: conn.Cmd, keys: reservation.Keys{Prefix: prefix}, sale: id.New(), item: id.New()}
	f.shard = id.ShardOf(f.sale)
	f.captchas = newCaptchas(t, conn, f.keys)
	f.paths = path.New(path.Config{Client: conn.Script, Keys: f.keys, Captchas: f.captchas, Ratio: ratio})
	f.gate("gate", "open")
	return f
}

func newCaptchas(t testing.TB, conn *redisconn.Conn, keys reservation.Keys) *captcha.Service {
	t.Helper()
	s, err := captcha.New(captcha.Config{
		Client: conn.Script, Keys: keys, Clock: clock.System{}, Secret: []byte(strings.Repeat("captcha!", 4)), PowMax: 20,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// gate writes the hash of the item as the loader does, with some fields changed.
func (f *fixture) gate(changes ...any) {
	f.t.Helper()
	now := time.Now()
	fields := append([]any{
		"sale", f.sale.String(), "epoch", 7, "limit", 1, "total", 10, "stock", 10, "reserved", 0, "rev", 1,
		"opens", now.Add(-time.Minute).UnixMilli(), "closes", now.Add(time.Hour).UnixMilli(),
	}, changes...)
	if err := f.redis.HSet(f.t.Context(), f.keys.Item(f.shard, f.item), fields...).Err(); err != nil {
		f.t.Fatal(err)
	}
}

func onBoth(t *testing.T, test func(t *testing.T, f *fixture)) { onBothWith(t, 0, test) }

func onBothWith(t *testing.T, ratio float64, test func(t *testing.T, f *fixture)) {
	t.Helper()
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		conn, prefix := testenv.Redis(t)
		test(t, newFixture(t, conn, prefix, ratio))
	})
	t.Run("miniredis", func(t *testing.T) {
		t.Parallel()
		f, _ := embedded(t, ratio)
		test(t, f)
	})
}

func embedded(t *testing.T, ratio float64) (*fixture, *miniredis.Miniredis) {
	t.Helper()
	mini := miniredis.RunT(t)
	mini.ClockTTL(true)
	conn, err := redisconn.Open(t.Context(), "redis://"+mini.Addr()+"/0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return newFixture(t, conn, "t:", ratio), mini
}

// challenge makes a captcha of the user for the sale and finds its answer.
func (f *fixture) challenge(user uuid.UUID) captcha.Answer {
	f.t.Helper()
	c, refusal, err := f.captchas.Create(f.t.Context(), captcha.CreateInput{
		Purpose: captcha.Seckill, Sale: f.sale, User: user, Kind: captcha.ProofOfWork,
	})
	if err != nil || refusal != nil {
		f.t.Fatalf("create captcha: %v, %v", refusal, err)
	}
	return f.solve(c)
}

func (f *fixture) solve(c captcha.Challenge) captcha.Answer {
	f.t.Helper()
	var p struct {
		Salt, Challenge string
		MaxNumber       int
	}
	if err := json.Unmarshal([]byte(c.Parameters), &p); err != nil {
		f.t.Fatal(err)
	}
	for n := range p.MaxNumber + 1 {
		sum := sha256.Sum256(fmt.Append([]byte(p.Salt), n))
		if hex.EncodeToString(sum[:]) == p.Challenge {
			return captcha.Answer{ChallengeID: c.ID, Text: fmt.Sprint(n)}
		}
	}
	f.t.Fatal("no answer")
	return captcha.Answer{}
}

func (f *fixture) input(user uuid.UUID, a captcha.Answer) path.IssueInput {
	return path.IssueInput{Sale: f.sale, Item: f.item, User: user, Captcha: a}
}

// issue wants a path.
func (f *fixture) issue(in path.IssueInput) path.Path {
	f.t.Helper()
	p, refusal, err := f.paths.Issue(f.t.Context(), in)
	if err != nil || refusal != nil || p.Token == "" {
		f.t.Fatalf("issue: %+v, %+v, %v", p, refusal, err)
	}
	return p
}

// refused wants a refusal of type R.
func refused[R fault.Refusal](f *fixture, in path.IssueInput) R {
	f.t.Helper()
	p, refusal, err := f.paths.Issue(f.t.Context(), in)
	r, ok := refusal.(R)
	if !ok || err != nil || p.Token != "" {
		f.t.Fatalf("issue: %+v, %#v, %v; want %T", p, refusal, err, r)
	}
	return r
}

// stored returns what Redis has as the user's path, "" when there is none.
func (f *fixture) stored(user uuid.UUID) string {
	f.t.Helper()
	v, err := f.redis.Get(f.t.Context(), f.keys.Path(f.shard, f.item, user)).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		f.t.Fatal(err)
	}
	return v
}

func (f *fixture) permits() int64 {
	f.t.Helper()
	return f.redis.ZCard(f.t.Context(), f.keys.Permits(f.shard, f.item)).Val()
}

func TestRightAnswerGivesAPathOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		user := id.New()
		a := f.challenge(user)
		p := f.issue(f.input(user, a))
		if got, want := f.stored(user), "7|"+p.Token; got != want {
			t.Errorf("stored %q, want %q", got, want)
		}
		if life := time.Until(p.ExpiresAt); life < 50*time.Second || life > path.DefaultLife+time.Second {
			t.Errorf("lives %s", life)
		}
		if len(p.Token) != 22 || f.permits() != 1 {
			t.Errorf("token %q, %d permits", p.Token, f.permits())
		}
		refused[captcha.Invalid](f, f.input(user, a)) // the answer is used up
		if got := f.stored(user); got != "7|"+p.Token {
			t.Errorf("the refused repeat took the path away: %q", got)
		}
	})
}

func TestOneOfAHundredEqualRequestsGetsAPath(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		user := id.New()
		a := f.challenge(user)
		var mu sync.Mutex
		var tokens []string
		var all sync.WaitGroup
		places := make(chan struct{}, 20)
		for range 100 {
			all.Go(func() {
				places <- struct{}{}
				defer func() { <-places }()
				p, refusal, err := f.paths.Issue(t.Context(), f.input(user, a))
				if err != nil {
					t.Error(err)
				}
				if refusal == nil && err == nil {
					mu.Lock()
					defer mu.Unlock()
					tokens = append(tokens, p.Token)
				}
			})
		}
		all.Wait()
		if len(tokens) != 1 || f.stored(user) != "7|"+tokens[0] || f.permits() != 1 {
			t.Errorf("%d paths, stored %q, %d permits; want the one", len(tokens), f.stored(user), f.permits())
		}
	})
}

func TestTokensAreNotGuessable(t *testing.T) {
	t.Parallel()
	f, _ := embedded(t, 0)
	seen := map[string]bool{}
	for range 200 {
		user := id.New()
		in := f.input(user, captcha.Answer{})
		in.Waived = true
		token := f.issue(in).Token
		if seen[token] || strings.Contains(token, user.String()[:8]) {
			t.Fatalf("token %q", token)
		}
		seen[token] = true
	}
}

func TestBeforeTheOpeningNothingIsGivenAndNothingUsedUp(t *testing.T) {
	t.Parallel()
	f, mini := embedded(t, 0)
	opens := time.Now().Add(time.Minute).Truncate(time.Millisecond).UTC()
	f.gate("opens", opens.UnixMilli())
	user := id.New()
	a := f.challenge(user)
	for _, early := range []time.Duration{time.Minute, time.Second, time.Millisecond} {
		mini.SetTime(opens.Add(-early))
		r := refused[sale.NotOpen](f, f.input(user, a))
		if r.Reason() != fault.SaleNotStarted || r.StartsAt == nil || !r.StartsAt.Equal(opens) || !r.ServerTime.Equal(opens.Add(-early)) {
			t.Errorf("%s early: %+v", early, r)
		}
		r = refused[sale.NotOpen](f, f.input(user, captcha.Answer{ChallengeID: a.ChallengeID, Text: "wrong"}))
		if r.Reason() != fault.SaleNotStarted {
			t.Errorf("a wrong answer is judged early: %+v", r)
		}
	}
	if f.stored(user) != "" || f.permits() != 0 {
		t.Error("something was given")
	}
	mini.SetTime(opens)
	f.issue(f.input(user, a))
}

func TestClosedGatesAreToldApart(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		user := id.New()
		a := f.challenge(user)
		past, future := time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
		for name, test := range map[string]struct {
			change []any
			phase  sale.Phase
		}{
			"paused":                   {[]any{"gate", "paused"}, sale.PhasePaused},
			"being built":              {[]any{"gate", "loading"}, sale.PhasePaused},
			"ended by an operator":     {[]any{"gate", "ended"}, sale.PhaseEnded},
			"ended by the clock":       {[]any{"gate", "open", "closes", past.UnixMilli()}, sale.PhaseEnded},
			"paused when time was up":  {[]any{"gate", "paused", "closes", past.UnixMilli()}, sale.PhaseEnded},
			"paused before it begins":  {[]any{"gate", "paused", "opens", future.UnixMilli()}, sale.PhasePaused},
			"open but not begun":       {[]any{"gate", "open", "opens", future.UnixMilli()}, sale.PhaseUpcoming},
			"without its stock figure": {[]any{"gate", "open", "stock", "x"}, sale.PhasePaused},
		} {
			f.gate(test.change...)
			if r := refused[sale.NotOpen](f, f.input(user, a)); r.Phase != test.phase {
				t.Errorf("%s: %s, want %s", name, r.Phase, test.phase)
			}
		}
		f.redis.Del(t.Context(), f.keys.Item(f.shard, f.item))
		in := f.input(user, a)
		if r := refused[sale.NotOpen](f, in); r.Phase != sale.PhasePaused {
			t.Errorf("no gate: %+v; want PAUSED, never sold out", r)
		}
		in.Opens = future
		if r := refused[sale.NotOpen](f, in); r.Phase != sale.PhaseUpcoming || !r.StartsAt.Equal(future) {
			t.Errorf("no gate yet: %+v", r)
		}
		f.gate("gate", "open")
		f.issue(f.input(user, a)) // none of it used the answer up
	})
}

func TestWhoHoldsUnitsIsLedToTheTask(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		user, task := id.New(), id.NewTask(f.shard)
		f.redis.HSet(t.Context(), f.keys.Holders(f.shard, f.item), user.String(), task.String()+"|1|1700000000000|key")
		r := refused[reservation.LimitReached](f, f.input(user, captcha.Answer{}))
		if r.Task != task {
			t.Errorf("task %s, want %s", r.Task, task)
		}
	})
}

func TestCaptchaIsJudgedInTheSameStep(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		user, stranger := id.New(), id.New()
		required := refused[captcha.Required](f, f.input(user, captcha.Answer{}))
		p := f.issue(f.input(user, f.solve(*required.Challenge)))

		mine := f.challenge(user)
		refused[captcha.Invalid](f, f.input(stranger, mine))
		if f.stored(user) == "7|"+p.Token {
			t.Error("the path outlives the new challenge")
		}
		wrong := captcha.Answer{ChallengeID: mine.ChallengeID, Text: "wrong"}
		for range captcha.MaxTries {
			refused[captcha.Invalid](f, f.input(user, wrong))
		}
		refused[captcha.Invalid](f, f.input(user, mine)) // right, but the fourth try
		if f.stored(user) != "" || f.stored(stranger) != "" || f.permits() != 0 {
			t.Error("a path was given")
		}
		next := refused[captcha.Invalid](f, f.input(user, wrong)).Challenge
		f.issue(f.input(user, f.solve(*next)))
		login, _, err := f.captchas.Create(t.Context(), captcha.CreateInput{Purpose: captcha.Login, Kind: captcha.ProofOfWork})
		if err != nil {
			t.Fatal(err)
		}
		refused[captcha.Invalid](f, f.input(stranger, f.solve(login)))
	})
}

func TestCaptchaCanBeWaived(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		in := f.input(id.New(), captcha.Answer{})
		in.Waived = true
		f.issue(in)
	})
}

func TestSecondPathReplacesTheFirst(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		user := id.New()
		in := f.input(user, captcha.Answer{})
		in.Waived = true
		first, second := f.issue(in), f.issue(in)
		if first.Token == second.Token || f.stored(user) != "7|"+second.Token || f.permits() != 1 {
			t.Errorf("stored %q, %d permits", f.stored(user), f.permits())
		}
		// Of another item of the sale: still one unused path per person.
		other := *f
		other.item = id.New()
		other.gate("gate", "open")
		in.Item = other.item
		other.issue(in)
		if f.stored(user) != "" || f.permits() != 0 || other.stored(user) == "" || other.permits() != 1 {
			t.Errorf("first item %q, %d permits; second %q, %d", f.stored(user), f.permits(), other.stored(user), other.permits())
		}
	})
}

func TestPathLapses(t *testing.T) {
	t.Parallel()
	f, mini := embedded(t, 1)
	f.gate("stock", 1)
	now := time.Now()
	mini.SetTime(now)
	user := id.New()
	in := f.input(user, captcha.Answer{})
	in.Waived = true
	f.issue(in)
	in.User = id.New()
	refused[path.NoPermit](f, in)
	mini.SetTime(now.Add(path.DefaultLife))
	if f.stored(user) != "" {
		t.Error("the path is there after its life")
	}
	f.issue(in) // and its permit is free
	mini.SetTime(now.Add(3 * path.DefaultLife))
	if keys := mini.Keys(); len(keys) != 1 {
		t.Errorf("only the item stays, got %v", keys)
	}
}

func TestWithoutRedisTheGateIsAFault(t *testing.T) {
	t.Parallel()
	server := testenv.RedisServer(t)
	f := newFixture(t, server.Conn(), "t:", 0)
	a := f.challenge(f.sale)
	server.Kill()
	_, refusal, err := f.paths.Issue(context.WithoutCancel(t.Context()), f.input(f.sale, a))
	if refusal != nil || fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("%v, %v; want UNAVAILABLE", refusal, err)
	}
}
