package account

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"seckill/internal/platform/captcha"
	"seckill/internal/platform/fault"
	"seckill/internal/testenv"
)

// A thousand guesses at one account, from a hundred addresses, over ten minutes, by an
// attacker who solves every captcha.
func TestAtMostTwentyOfAThousandGuessesAreEvaluated(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"an account", "no account"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := embedded(t).limited()
			who := someone()
			if name == "an account" {
				f.register(who)
			}
			outcomes := map[fault.Reason]int{}
			for guess := range 1000 {
				in := LoginInput{Account: who.Account, Password: fmt.Sprintf("guess %d of many", guess), Addr: address(guess % 100)}
				_, err := f.Login(t.Context(), in)
				if required, ok := errors.AsType[captcha.Required](err); ok {
					in.Captcha = f.solve(*required.Challenge)
					_, err = f.Login(t.Context(), in)
				}
				why := fault.ReasonOf(err)
				if why == "" {
					t.Fatalf("guess %d: %v", guess, err)
				}
				outcomes[why]++
				f.advance(600 * time.Millisecond)
			}
			if n := outcomes[fault.InvalidCredentials]; n > 20 || n < 5 {
				t.Errorf("%d of 1,000 were evaluated: %v", n, outcomes)
			}
			t.Logf("%v", outcomes)
		})
	}
}

func TestGuessesAtOnceAreNotLetThroughTogether(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		who := someone()
		f.register(who)
		var mu sync.Mutex
		outcomes := map[fault.Reason]int{}
		var all sync.WaitGroup
		for guess := range 60 {
			all.Go(func() {
				_, err := f.Login(t.Context(), LoginInput{Account: who.Account, Password: fmt.Sprintf("guess %d of many", guess)})
				mu.Lock()
				defer mu.Unlock()
				outcomes[fault.ReasonOf(testenv.Refusal(t, err))]++
			})
		}
		all.Wait()
		t.Logf("%v", outcomes)
		evaluated, held := outcomes[fault.InvalidCredentials], outcomes[fault.CaptchaRequired]+outcomes[fault.TooManyTries]
		if evaluated < 1 || evaluated > captchaFrom || held == 0 || evaluated+held != 60 {
			t.Errorf("%v; want at most %d evaluated and the others asked for a captcha, or to wait", outcomes, captchaFrom)
		}
	})
}

func TestCaptchaIsAskedForFromTheThirdFailureAndDelayFromTheFifth(t *testing.T) {
	t.Parallel()
	f := embedded(t)
	who := someone()
	f.register(who)
	try := func(password string, answer captcha.Answer) fault.Refusal {
		t.Helper()
		_, err := f.Login(t.Context(), LoginInput{Account: who.Account, Password: password, Captcha: answer})
		return testenv.Refusal(t, err)
	}
	want := func(what string, err error, why fault.Reason) {
		t.Helper()
		if fault.ReasonOf(err) != why {
			t.Fatalf("%s: %v, want %s", what, err, why)
		}
	}
	unused := f.answer(captcha.Login)
	for range 3 {
		want("the first three", try("wrong password", unused), fault.InvalidCredentials)
	}
	want("without a captcha", try(goodPassword, captcha.Answer{}), fault.CaptchaRequired)
	want("wrong captcha", try(goodPassword, captcha.Answer{ChallengeID: unused.ChallengeID, Text: "x"}), fault.CaptchaInvalid)
	want("the fourth", try("wrong password", unused), fault.InvalidCredentials) // it was not consumed before
	want("captcha used up", try("wrong password", unused), fault.CaptchaInvalid)
	want("the fifth", try("wrong password", f.answer(captcha.Login)), fault.InvalidCredentials)

	delay := firstDelay
	for n := 6; n < 20; n++ {
		throttled, ok := try(goodPassword, f.answer(captcha.Login)).(fault.Throttled)
		if !ok || throttled.RetryAfter <= delay-time.Second || throttled.RetryAfter > delay {
			t.Fatalf("try %d: %#v, want to wait %s", n, throttled, delay)
		}
		f.advance(throttled.RetryAfter)
		want(fmt.Sprintf("try %d", n), try("wrong password", f.answer(captcha.Login)), fault.InvalidCredentials)
		delay = min(2*delay, longestWait)
	}
	if delay != longestWait {
		t.Errorf("the delay grew to %s only", delay)
	}
	f.advance(longestWait)
	want("the owner, after the wait", try(goodPassword, f.answer(captcha.Login)), "")
	want("then all is forgotten", try("wrong password", captcha.Answer{}), fault.InvalidCredentials)
	for range 2 {
		try("wrong password", captcha.Answer{})
	}
	want("three new failures", try("wrong password", captcha.Answer{}), fault.CaptchaRequired)
	f.advance(guardMemory)
	want("an hour later", try("wrong password", captcha.Answer{}), fault.InvalidCredentials)
}

func TestOneAddressCannotTryManyAccounts(t *testing.T) {
	t.Parallel()
	f := real(t).limited()
	outcomes, began := map[fault.Reason]int{}, time.Now()
	for n := 0; n < 60 || outcomes[fault.TooManyTries] == 0 && time.Since(began) < testenv.Wait; n++ {
		_, err := f.Login(t.Context(), LoginInput{Account: someone().Account, Password: goodPassword, Addr: address(1)})
		outcomes[fault.ReasonOf(testenv.Refusal(t, err))]++
	}
	if outcomes[fault.InvalidCredentials] > loginsPerAddress.Burst+5+int(loginsPerAddress.PerSecond*time.Since(began).Seconds()) || outcomes[fault.TooManyTries] == 0 {
		t.Errorf("%v", outcomes)
	}
	if _, err := f.Login(t.Context(), LoginInput{Account: someone().Account, Password: goodPassword, Addr: address(2)}); fault.ReasonOf(err) != fault.InvalidCredentials {
		t.Errorf("another address: %v", err)
	}
}

func TestNoKeyNamesAPerson(t *testing.T) {
	t.Parallel()
	f := embedded(t)
	who := someone()
	f.register(who)
	if _, err := f.Login(t.Context(), LoginInput{Account: who.Account, Password: "wrong password"}); fault.ReasonOf(err) == "" {
		t.Fatal(err)
	}
	for _, key := range f.mini.Keys() {
		if strings.Contains(key, who.Account) {
			t.Errorf("key %s", key)
		}
	}
}

func TestSignInIsRefusedWhileGuessesCannotBeCounted(t *testing.T) {
	t.Parallel()
	f := embedded(t)
	who := someone()
	f.register(who)
	f.mini.SetError("LOADING no data yet")
	defer f.mini.SetError("")
	if in, err := f.Login(t.Context(), LoginInput{Account: who.Account, Password: goodPassword}); in != nil || fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("%+v, %v; want UNAVAILABLE", in, err)
	}
}

// Guesses at other accounts behind the same address use up the limit of that address.
func TestGuessesOfOthersBehindAnAddressDoNotLockOutAKnownDevice(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		f.limited()
		who := someone()
		known := f.register(who)
		refused := 0
		for range 2 * loginsPerAddress.Burst {
			if _, err := f.Login(t.Context(), LoginInput{Account: someone().Account, Password: "a guess", Addr: address(7)}); fault.ReasonOf(err) == fault.TooManyTries {
				refused++
			}
		}
		if refused == 0 {
			t.Fatal("the address has no limit")
		}
		if _, err := f.Login(t.Context(), LoginInput{Account: who.Account, Password: who.Password, Device: known.Device, Addr: address(7)}); err != nil {
			t.Errorf("a known device: %v", err)
		}
		if _, err := f.Login(t.Context(), LoginInput{Account: who.Account, Password: who.Password, Addr: address(7)}); fault.ReasonOf(err) != fault.TooManyTries {
			t.Errorf("an unknown device: %v, want %s", err, fault.TooManyTries)
		}
	})
}
