package ratelimit_test

import (
	"net/netip"
	"testing"
	"time"

	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
	"seckill/internal/platform/ratelimit"
)

func users(n int) []id.User {
	out := make([]id.User, n)
	for i := range out {
		out[i] = id.New[id.User]()
	}
	return out
}

func TestAccountsOfANetworkShareItsCalls(t *testing.T) {
	t.Parallel()
	now := clock.NewFake(noon)
	l := ratelimit.New(ratelimit.Config{Clock: now})
	calls := func(at func(n int) netip.Addr, by []id.User, each int) (passed int) {
		for n := range each * len(by) {
			if l.AllowShare("createCaptcha", at(n), by[n%len(by)]).Allowed {
				passed++
			}
		}
		return passed
	}
	home := func(int) netip.Addr { return netip.MustParseAddr("93.184.216.34") }
	if got := calls(home, users(4), 5); got != 20 {
		t.Errorf("a household: %d of 20 calls pass", got)
	}
	now.Advance(10 * time.Second)
	if got := calls(home, users(40), 6); got != 40*4+20 {
		t.Errorf("240 calls of 40 accounts from one address: %d pass, want four of each and 20 more", got)
	}
	late := id.New[id.User]()
	if !l.AllowShare("createCaptcha", home(0), late).Allowed {
		t.Error("an account without a call is refused because others call too often")
	}
	for _, next := range []string{"issueSeckillPath", "createCaptcha", "joinWaitlist"} {
		if d := l.AllowShare(next, home(0), late); !d.Allowed {
			t.Errorf("its %s is refused: %+v", next, d)
		}
	}
	if d := l.AllowShare("createCaptcha", home(0), late); d.Allowed || d.RetryAfter <= 0 || d.RetryAfter > 5*time.Second {
		t.Errorf("a fifth call: %+v", d)
	}
	now.Advance(10 * time.Second)
	if got := calls(home, users(10_000), 1); got != 620 {
		t.Errorf("10,000 accounts from one address: %d calls pass, want 620", got)
	}
	now.Advance(10 * time.Second)
	customer := func(n int) netip.Addr {
		return netip.AddrFrom16([16]byte{0x24, 1, 1, 1, 1, 1, byte(n), byte(n >> 8), 15: 1})
	}
	if got := calls(customer, users(10_000), 1); got != 3*620 {
		t.Errorf("10,000 accounts from one /48: %d calls pass, want %d", got, 3*620)
	}
	now.Advance(10 * time.Second)
	provider := func(n int) netip.Addr { return netip.AddrFrom16([16]byte{0x24, 1, 1, 2, byte(n), byte(n >> 8), 15: 1}) }
	if got := calls(provider, users(30_000), 1); got != 32*620 {
		t.Errorf("30,000 accounts from one /32: %d calls pass, want %d", got, 32*620)
	}
	now.Advance(10 * time.Second)
	hoster := func(n int) netip.Addr { return netip.AddrFrom4([4]byte{93, 185, 1, byte(n)}) }
	if got := calls(hoster, users(15_000), 1); got != 16*620 {
		t.Errorf("15,000 accounts from one /24: %d calls pass, want %d", got, 16*620)
	}
	now.Advance(10 * time.Second)
	company := func(n int) netip.Addr { return netip.AddrFrom4([4]byte{93, 186, byte(n), byte(n >> 8)}) }
	if got := calls(company, users(50_000), 1); got != 64*620 {
		t.Errorf("50,000 accounts from one /16: %d calls pass, want %d", got, 64*620)
	}
	for _, own := range []string{"127.0.0.1", "10.1.2.3", "fd00::1", "::1"} {
		if got := calls(func(int) netip.Addr { return netip.MustParseAddr(own) }, users(1), 1000); got != 1000 {
			t.Errorf("%s is not a public address: %d of 1000 pass", own, got)
		}
	}
}
