package transport

import (
	"context"
	"time"

	"seckill/internal/auth"
	"seckill/internal/fault"
	"seckill/internal/ratelimit"
)

// Share of MaxSockets that one network may use for anonymous sockets. A smaller share
// would lock out the users of a company or mobile carrier behind one address; with a
// larger one a few addresses could use all anonymous sockets of the process.
const (
	guestShare = 10  // one tenth
	fewGuests  = 100 // minimum when MaxSockets is small
)

// guest identifies the networks of a client, and whether connection_init came without a
// token. Sockets before connection_init are counted separately, so that users can sign in
// from a network whose anonymous sockets have reached the bound.
type guest struct {
	networks  []ratelimit.Range // each with Factor times the share
	anonymous bool
}

type guestKey struct {
	network   ratelimit.Subject
	anonymous bool
}

// guests counts anonymous members.
type guests map[guestKey]int

// full reports whether a network of a guest has reached its bound.
func (g guests) full(of guest, maxSockets int) bool {
	for _, n := range of.networks {
		if g[guestKey{n.Subject, of.anonymous}] >= max(maxSockets/guestShare, fewGuests)*n.Factor {
			return true
		}
	}
	return false
}

func (g guests) add(of guest) {
	for _, n := range of.networks {
		g[guestKey{n.Subject, of.anonymous}]++
	}
}

func (g guests) remove(of guest) {
	for _, n := range of.networks {
		key := guestKey{n.Subject, of.anonymous}
		if g[key]--; g[key] <= 0 {
			delete(g, key)
		}
	}
}

// stranger returns the guest of a request before its caller is authenticated.
func stranger(ctx context.Context) guest {
	return guest{networks: ratelimit.Ranges(auth.ClientAddr(ctx))}
}

func errTooManyGuests() error {
	return &fault.Error{Code: fault.RateLimited, Message: "Too many connections from one network.", RetryAfter: 10 * time.Second}
}
