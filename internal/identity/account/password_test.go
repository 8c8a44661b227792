package account

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"seckill/internal/platform/captcha"
	"seckill/internal/platform/fault"
	"seckill/internal/testenv"
)

func TestPasswordsAreHashedAsStronglyAsAskedFor(t *testing.T) {
	t.Parallel()
	hash, err := HashPassword(goodPassword)
	if err != nil || !strings.HasPrefix(hash, "$argon2id$v=19$m=19456,t=2,p=1$") || strings.Contains(hash, goodPassword) {
		t.Errorf("%s, %v", hash, err)
	}
	other, err := HashPassword(goodPassword)
	if err != nil || other == hash {
		t.Error("two hashes of one password are equal: no salt")
	}
	p := newPasswords(owaspMinimum)
	if ok, stale, err := p.matches(t.Context(), goodPassword, hash); !ok || stale || err != nil {
		t.Errorf("%t, %t, %v", ok, stale, err)
	}
}

func TestNothingMatchesNoAccount(t *testing.T) {
	t.Parallel()
	p := newPasswords(cheap)
	for _, password := range []string{"", " ", goodPassword} {
		if ok, _, err := p.matches(t.Context(), password, ""); ok || err != nil {
			t.Errorf("%q: %t, %v", password, ok, err)
		}
	}
}

func TestFewHashesAtOnceAndAShortQueue(t *testing.T) {
	t.Parallel()
	f := embedded(t)
	p := f.passwords
	for range hashWorkers { // all workers are busy
		p.running <- struct{}{}
	}
	answer := f.answer(captcha.Register)
	waiting, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	var gaveUp atomic.Int32
	device := func(account string) string {
		token, err := f.devices.issue("", account, f.clock.Now())
		if err != nil {
			t.Error(err)
		}
		return token
	}
	for i := range trusted.places() {
		all.Go(func() {
			account := fmt.Sprintf("waiter%d@example.com", i)
			_, err := f.Login(waiting, LoginInput{Account: account, Password: goodPassword, Device: device(account)})
			if err != nil && fault.ReasonOf(err) == "" {
				gaveUp.Add(1)
			}
		})
	}
	testenv.Eventually(t, testenv.Wait, func() bool { return p.full(trusted) }, "all sit")
	late := someone().Account
	_, err := f.Login(t.Context(), LoginInput{Account: late, Password: goodPassword, Device: device(late)})
	if throttled, ok := errors.AsType[fault.Throttled](err); !ok || throttled.RetryAfter <= 0 {
		t.Errorf("login past the queue: %v; want RATE_LIMITED", err)
	}
	_, err = f.Register(t.Context(), RegisterInput{NewUser: someone(), Captcha: answer})
	if fault.ReasonOf(err) != fault.TooManyTries {
		t.Errorf("register past the queue: %v", err)
	}
	cancel()
	all.Wait()
	if gaveUp.Load() == 0 {
		t.Error("no caller that left got an error")
	}
	for range hashWorkers {
		<-p.running
	}
	if _, err := f.Register(t.Context(), RegisterInput{NewUser: someone(), Captcha: answer}); err != nil {
		t.Errorf("the refused try used the captcha up: %v", err)
	}
}
