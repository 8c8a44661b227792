package ratelimit

import (
	"net/netip"
	"time"

	"seckill/internal/platform/id"
)

// Calls of signed-in users of one public network in any window of shareWindow: anyCalls by
// all accounts as they come, and shareCalls more for accounts that made fewer than ownCalls.
// A company or a campus behind one address so serves each of its buyers once, also while
// scripts with a few accounts use up the rest. With two calls of its own, a campus of 150 lost
// places of the waitlist when the sale sold out at once.
const (
	shareWindow = 5 * time.Second
	anyCalls    = 20
	shareCalls  = 600
	ownCalls    = 4 // a captcha and its answer, for a path token and for a place of the waitlist
	// shareNetworks bounds the networks that a process keeps.
	shareNetworks = 1 << 12
)

// shares counts the calls of accounts by network, in this process only: a client that
// spreads over n processes has n times as many. It is safe for concurrent use.
type shares struct {
	windows *subjects[netip.Prefix, shareCount]
}

// shareCount is the count of one network in its present window.
type shareCount struct {
	ends          int64 // Unix microseconds
	any, reserved int
	byUser        map[id.User]int
}

func newShares() *shares {
	return &shares{newSubjects[netip.Prefix, shareCount](shareNetworks)}
}

// take counts a call of a user from a network whose limits are multiplied, and returns the
// wait in microseconds; 0 = it is allowed.
func (s *shares) take(network netip.Prefix, factor int, user id.User, now int64) (wait int64) {
	s.windows.with(network, func(c *shareCount) {
		if now >= c.ends || c.ends-now > shareWindow.Microseconds() {
			*c = shareCount{ends: now + shareWindow.Microseconds(), byUser: make(map[id.User]int)}
		}
		switch {
		case c.byUser[user] < ownCalls && c.reserved < factor*shareCalls:
			c.reserved++
		case c.any < factor*anyCalls:
			c.any++
		default:
			wait = c.ends - now
			return
		}
		c.byUser[user]++
	})
	return wait
}

// AllowShare counts one call of a signed-in user against the share of the networks that
// contain the address. Addresses that are not public belong to a proxy or to the machine
// itself and have no limit. It does no I/O.
func (l *Limiter) AllowShare(name string, ip netip.Addr, user id.User) Decision {
	ip = ip.Unmap().WithZone("")
	if l.cfg.Off || !Network(ip).IsValid() {
		return decision(0)
	}
	for _, r := range blocks(ip) {
		if wait := l.shares.take(r.prefix, r.factor, user, l.local.now()); wait > 0 {
			l.count(name, RefusedHere)
			return decision(wait)
		}
	}
	return decision(0)
}
