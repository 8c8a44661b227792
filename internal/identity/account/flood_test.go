package account

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seckill/internal/platform/auth"
	"seckill/internal/platform/captcha"
	"seckill/internal/platform/fault"
	"seckill/internal/testenv"
)

// network returns an address of the n-th network.
func network(n int) netip.Addr { return netip.AddrFrom4([4]byte{93, byte(n >> 8), byte(n), 7}) }

// busy blocks the hash workers until the returned function is called.
func (f *fixture) busy() (release func()) {
	for range hashWorkers {
		f.passwords.running <- struct{}{}
	}
	return sync.OnceFunc(func() {
		for range hashWorkers {
			<-f.passwords.running
		}
	})
}

// guess sends a sign-in attempt from each network for a different account and waits until
// all accepted ones are in the hash queue. The returned function ends the attempts.
func (f *fixture) guess(networks int, in func(n int) LoginInput) (end func()) {
	ctx, cancel := context.WithCancel(f.t.Context())
	var all sync.WaitGroup
	var refused atomic.Int32
	for n := range networks {
		all.Go(func() {
			if _, err := f.Login(ctx, in(n)); fault.ReasonOf(err) != "" {
				refused.Add(1)
			}
		})
	}
	testenv.Eventually(f.t, testenv.Wait, func() bool {
		return f.passwords.queued()+int(refused.Load()) >= networks
	}, "every guess waits for a worker or is refused")
	return func() { cancel(); all.Wait() }
}

func TestGuessesFromManyNetworksDoNotKeepOthersFromSigningIn(t *testing.T) {
	t.Parallel()
	f := embedded(t)
	who := someone()
	f.register(who)
	release := f.busy()
	defer release()
	end := f.guess(180, func(n int) LoginInput {
		return LoginInput{Account: fmt.Sprintf("target%d@example.com", n), Password: "a guess", Addr: network(n)}
	})
	defer end()
	in := LoginInput{Account: who.Account, Password: goodPassword, Addr: network(1000)}
	_, err := f.Login(t.Context(), in)
	required, ok := errors.AsType[captcha.Required](err)
	if !ok || required.Challenge.Kind != captcha.ProofOfWork {
		t.Fatalf("a new network: %v; want a proof of work", err)
	}
	in.Captcha = f.solve(*required.Challenge)
	done := make(chan error, 1)
	go func() {
		_, err := f.Login(t.Context(), in)
		done <- err
	}()
	release()
	if err := <-done; err != nil {
		t.Errorf("with a proof of work: %v", err)
	}
}

func TestKnownDevicesHaveThePartOfTheQueueThatStrangersCannotFill(t *testing.T) {
	t.Parallel()
	f := embedded(t)
	who := someone()
	device := f.register(who).Device
	neighbour := someone()
	f.register(neighbour)
	if _, err := f.Login(t.Context(), LoginInput{Account: neighbour.Account, Password: goodPassword, Addr: network(2000)}); err != nil {
		t.Fatal(err)
	}
	release := f.busy()
	defer release()
	answers := make([]captcha.Answer, 180)
	for n := range answers {
		answers[n] = f.answer(captcha.Login)
	}
	end := f.guess(len(answers), func(n int) LoginInput {
		return LoginInput{Account: fmt.Sprintf("target%d@example.com", n), Password: "a guess", Captcha: answers[n], Addr: network(n)}
	})
	defer end()
	if n := f.passwords.queued(); n != proven.places() {
		t.Fatalf("guesses with a proof of work fill %d places, want %d", n, proven.places())
	}
	if _, err := f.Login(t.Context(), LoginInput{Account: who.Account, Password: goodPassword, Addr: network(2000)}); fault.ReasonOf(err) != fault.TooManyTries {
		t.Errorf("a known network past its part: %v", err)
	}
	done := make(chan *SignedIn, 1)
	go func() {
		signed, _ := f.Login(t.Context(), LoginInput{Account: who.Account, Password: goodPassword, Device: device, Addr: network(3000)})
		done <- signed
	}()
	testenv.Eventually(t, testenv.Wait, func() bool { return f.passwords.queued() == proven.places()+1 }, "the known device waits for a worker")
	release()
	if signed := <-done; signed == nil {
		t.Error("a known device was refused")
	}
}

func TestOneNetworkHasAShareOfTheQueue(t *testing.T) {
	t.Parallel()
	f := embedded(t)
	release := f.busy()
	defer release()
	end := f.guess(30, func(n int) LoginInput {
		return LoginInput{Account: fmt.Sprintf("target%d@example.com", n), Password: "a guess", Addr: netip.AddrFrom4([4]byte{93, 1, 1, byte(n)})}
	})
	defer end()
	if n := f.passwords.queued(); n != hashPerNetwork {
		t.Errorf("one network has %d places, want %d", n, hashPerNetwork)
	}
}

// An attacker who knows an account name can fail to sign in to it.
func TestFailuresOfOthersDoNotLockOutADeviceThatSignedInBefore(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		who := someone()
		device := f.register(who).Device
		var last error
		for n := 0; n < 40 && fault.ReasonOf(last) != fault.TooManyTries; n++ { // a slow machine needs more than twelve
			in := LoginInput{Account: who.Account, Password: fmt.Sprintf("guess %d of many", n), Addr: network(n)}
			_, err := f.Login(t.Context(), in)
			if required, ok := errors.AsType[captcha.Required](err); ok {
				in.Captcha = f.solve(*required.Challenge)
				_, err = f.Login(t.Context(), in)
			}
			last = testenv.Refusal(t, err)
		}
		if fault.ReasonOf(last) != fault.TooManyTries {
			t.Fatalf("the attacker: %v, want RATE_LIMITED", last)
		}
		own := LoginInput{Account: who.Account, Password: goodPassword, Device: device, Addr: network(500)}
		if in, err := f.Login(t.Context(), own); in == nil || in.Device == "" || in.Device == device {
			t.Errorf("the owner's device: %v", err)
		}
		own.Password = "wrong password"
		outcomes := map[fault.Reason]int{}
		for range 10 { // a stolen device token must not allow unlimited guesses
			_, err := f.Login(t.Context(), own)
			outcomes[fault.ReasonOf(testenv.Refusal(t, err))]++
		}
		if outcomes[fault.InvalidCredentials] != captchaFrom || outcomes[fault.CaptchaRequired] != 10-captchaFrom {
			t.Errorf("guesses of a known device: %v", outcomes)
		}
	})
}

func TestDeviceTokensServeOneAccountForALimitedTime(t *testing.T) {
	t.Parallel()
	d, other := newDevices(testKeys), newDevices(mustKeys(auth.Key{ID: "k2", Secret: []byte(strings.Repeat("0", 32))}))
	now := time.Now()
	token, err := d.issue("", "a@example.com", now)
	if err != nil || d.open(token, "a@example.com", now) == "" {
		t.Fatalf("%q, %v", token, err)
	}
	for what, got := range map[string]string{
		"another account":      d.open(token, "b@example.com", now),
		"after its life":       d.open(token, "a@example.com", now.Add(DeviceLife)),
		"another installation": other.open(token, "a@example.com", now),
		"a changed token":      d.open(token[:len(token)-8]+"AAAAAAAA", "a@example.com", now),
		"no token":             d.open("", "a@example.com", now),
	} {
		if got != "" {
			t.Errorf("%s: device %s", what, got)
		}
	}
}

func (p *passwords) queued() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waiting
}
