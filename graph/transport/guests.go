package transport

import (
	"context"
	"time"

	"seckill/internal/fault"
)

// Share of MaxSockets that one network may use for anonymous sockets. A smaller share
// would lock out the users of a company or mobile carrier behind one address; with a
// larger one a few addresses could use all anonymous sockets of the process.
const (
	guestShare = 10  // one tenth
	fewGuests  = 100 // minimum when MaxSockets is small
)

// guest identifies a network, and whether connection_init came without a token. Sockets
// before connection_init are counted separately, so that users can sign in from a network
// whose anonymous sockets have reached the bound.
type guest struct {
	network   string // "" = not counted
	anonymous bool
}

// guests counts anonymous members.
type guests map[guest]int

// full reports whether the bound of a guest is reached.
func (g guests) full(of guest, maxSockets int) bool {
	return of.network != "" && g[of] >= max(maxSockets/guestShare, fewGuests)
}

func (g guests) add(of guest) {
	if of.network != "" {
		g[of]++
	}
}

func (g guests) remove(of guest) {
	switch g[of] {
	case 0: // not counted
	case 1:
		delete(g, of)
	default:
		g[of]--
	}
}

// stranger returns the guest of a request before its caller is authenticated.
func (r *Sockets) stranger(ctx context.Context) guest {
	if r.opts.Network == nil {
		return guest{}
	}
	return guest{network: r.opts.Network(ctx)}
}

func errTooManyGuests() error {
	return &fault.Error{Code: fault.RateLimited, Message: "Too many connections from one network.", RetryAfter: 10 * time.Second}
}
