package path_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seckill/internal/buy/admission/path"
	"seckill/internal/buy/reservation"
	"seckill/internal/buy/sale"
	"seckill/internal/platform/captcha"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

func TestRightAnswerGivesAPathOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		user := id.New[id.User]()
		a := f.challenge(user)
		before := f.redis.Time(t.Context()).Val()
		p := f.issue(f.input(user, a))
		after := f.redis.Time(t.Context()).Val()
		if got, want := f.stored(user), "7|"+p.Token; got != want {
			t.Errorf("stored %q, want %q", got, want)
		}
		if issued := p.ExpiresAt.Add(-path.DefaultLife); issued.Before(before.Add(-time.Millisecond)) || issued.After(after.Add(time.Millisecond)) {
			t.Errorf("lives %s from %s, issued between %s and %s", path.DefaultLife, issued, before, after)
		}
		if len(p.Token) != 34 || f.permits() != 1 {
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
		user := id.New[id.User]()
		a := f.challenge(user)
		var mu sync.Mutex
		var tokens []string
		var unclear atomic.Int64 // Redis may reply late on a busy machine
		var all sync.WaitGroup
		places := make(chan struct{}, 20)
		for range 100 {
			all.Go(func() {
				places <- struct{}{}
				defer func() { <-places }()
				p, err := f.paths.Issue(t.Context(), f.input(user, a))
				switch {
				case fault.IsTransient(err):
					unclear.Add(1)
				case testenv.Refusal(t, err) == nil && err == nil:
					mu.Lock()
					defer mu.Unlock()
					tokens = append(tokens, p.Token)
				}
			})
		}
		all.Wait()
		stored := f.stored(user)
		if len(tokens) == 0 && unclear.Load() > 0 { // the token of a call whose reply came too late
			tokens = append(tokens, strings.TrimPrefix(stored, "7|"))
		}
		if len(tokens) != 1 || len(tokens[0]) != 34 || stored != "7|"+tokens[0] || f.permits() != 1 {
			t.Errorf("%d paths, stored %q, %d permits; want the one", len(tokens), stored, f.permits())
		}
	})
}

func TestTokensAreNotGuessable(t *testing.T) {
	t.Parallel()
	f, _ := embedded(t, 0)
	seen := map[string]bool{}
	for range 200 {
		user := id.New[id.User]()
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
	user := id.New[id.User]()
	a := f.challenge(user)
	for _, early := range []time.Duration{time.Minute, time.Second, time.Millisecond} {
		mini.SetTime(opens.Add(-early))
		r := refused[sale.NotOpen](f, f.input(user, a))
		if r.Reason() != fault.SaleNotStarted || r.StartsAt == nil || !r.StartsAt.Equal(opens) || !r.ServerTime.Equal(opens.Add(-early)) {
			t.Errorf("%s early: %+v", early, r)
		}
		r = refused[sale.NotOpen](f, f.input(user, captcha.Answer{ChallengeID: a.ChallengeID, Text: "wrong"}))
		if r.Reason() != fault.SaleNotStarted {
			t.Errorf("a wrong answer is checked early: %+v", r)
		}
	}
	if f.stored(user) != "" || f.permits() != 0 {
		t.Error("something was given")
	}
	mini.SetTime(opens)
	r := refused[captcha.Required](f, f.input(user, a))
	if r.Challenge == nil || r.Challenge.Kind != captcha.ProofOfWork || f.stored(user) != "" {
		t.Errorf("a proof of work solved before the opening: %+v; want a new challenge", r)
	}
	f.issue(f.input(user, f.solve(*r.Challenge)))
}

// A bot can prepare answers of any kind of captcha before the opening, not only proofs of work.
func TestACaptchaAnsweredBeforeTheOpeningIsRefusedAfterIt(t *testing.T) {
	t.Parallel()
	f, mini := embedded(t, 0)
	check := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"success":true}`)) }))
	t.Cleanup(check.Close)
	f.captchas = newCaptchas(t, f.conn, f.keys, &captcha.Outside{VerifyURL: check.URL, SiteKey: "site", Secret: "secret", Client: check.Client()})
	f.paths = path.New(path.Config{Client: f.conn.Script, Keys: f.keys, Captchas: f.captchas, Tokens: path.NewTokens(secrets)})
	opens := time.Now().Add(time.Minute).Truncate(time.Millisecond).UTC()
	f.gate("opens", opens.UnixMilli())
	user := id.New[id.User]()
	seen := func() captcha.Answer {
		c, err := f.captchas.Create(t.Context(), captcha.CreateInput{Purpose: captcha.Seckill, Sale: f.sale, User: user, Kind: captcha.External})
		if err != nil || c.Kind != captcha.External {
			t.Fatal(c, err)
		}
		return captcha.Answer{ChallengeID: c.ID, Text: "token of the widget"}
	}
	mini.SetTime(opens.Add(-time.Second))
	a := seen()
	mini.SetTime(opens)
	r := refused[captcha.Required](f, f.input(user, a))
	if r.Challenge == nil || r.Challenge.Kind != captcha.External || r.Challenge.Early || f.permits() != 0 {
		t.Errorf("a check that was passed before the opening: %+v; want another one", r)
	}
	f.issue(f.input(user, seen()))
}

func TestEachClosedGateHasItsOwnError(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		user := id.New[id.User]()
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
		f.issue(f.input(user, a)) // no refusal used the answer up
	})
}

func TestWhoHoldsUnitsIsLedToTheTask(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		user, task := id.New[id.User](), id.NewTask(f.shard)
		f.redis.HSet(t.Context(), f.keys.Reservations(f.shard, f.item), user.String(), task.String()+"|1|1700000000000|key")
		r := refused[reservation.AlreadyOrdered](f, f.input(user, captcha.Answer{}))
		if r.Task != task {
			t.Errorf("task %s, want %s", r.Task, task)
		}
	})
}

func TestCaptchaIsCheckedInTheSameStep(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		user, stranger := id.New[id.User](), id.New[id.User]()
		required := refused[captcha.Required](f, f.input(user, captcha.Answer{}))
		p := f.issue(f.input(user, f.solve(*required.Challenge)))

		mine := f.challenge(user)
		refused[captcha.Invalid](f, f.input(stranger, mine))
		testenv.Eventually(t, testenv.Wait, func() bool { return f.stored(user) == "" }, "the new challenge voids the path "+p.Token)
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
		login, err := f.captchas.Create(t.Context(), captcha.CreateInput{Purpose: captcha.Login, Kind: captcha.ProofOfWork})
		if err != nil {
			t.Fatal(err)
		}
		refused[captcha.Invalid](f, f.input(stranger, f.solve(login)))
	})
}

func TestCaptchaCanBeWaived(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		in := f.input(id.New[id.User](), captcha.Answer{})
		in.Waived = true
		f.issue(in)
	})
}

func TestSecondPathReplacesTheFirst(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		user := id.New[id.User]()
		in := f.input(user, captcha.Answer{})
		in.Waived = true
		first, second := f.issue(in), f.issue(in)
		if first.Token == second.Token || f.stored(user) != "7|"+second.Token || f.permits() != 1 {
			t.Errorf("stored %q, %d permits", f.stored(user), f.permits())
		}
		// For another item of the sale: still one unused path token per user.
		other := *f
		other.item = id.New[id.Item]()
		other.gate("gate", "open")
		in.Item = other.item
		other.issue(in)
		if f.stored(user) != "" || f.permits() != 0 || other.stored(user) == "" || other.permits() != 1 {
			t.Errorf("first item %q, %d permits; second %q, %d", f.stored(user), f.permits(), other.stored(user), other.permits())
		}
	})
}

func TestPathExpires(t *testing.T) {
	t.Parallel()
	f, mini := embedded(t, 1)
	f.gate("stock", 1)
	now := time.Now()
	mini.SetTime(now)
	user := id.New[id.User]()
	in := f.input(user, captcha.Answer{})
	in.Waived = true
	f.issue(in)
	in.User = id.New[id.User]()
	refused[path.NoPermit](f, in)
	mini.SetTime(now.Add(path.DefaultLife))
	if f.stored(user) != "" {
		t.Error("the path is there after its life")
	}
	f.issue(in) // its permit is free
	mini.SetTime(now.Add(3*path.DefaultLife + 2*reservation.LongestWait))
	gate := []string{f.keys.Item(f.shard, f.item), f.keys.Units(f.shard, f.sale)}
	if keys := mini.Keys(); !slices.Equal(keys, gate) {
		t.Errorf("left are %v, want only the gate, %v", keys, gate)
	}
}

func TestWithoutRedisTheGateIsAFault(t *testing.T) {
	t.Parallel()
	server := testenv.RedisServer(t)
	f := newFixture(t, server.Conn(), "t:", 0)
	a := f.challenge(id.User(f.sale))
	server.Kill()
	_, err := f.paths.Issue(context.WithoutCancel(t.Context()), f.input(id.User(f.sale), a))
	if fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("%v; want UNAVAILABLE", err)
	}
}
