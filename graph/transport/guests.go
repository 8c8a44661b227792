package transport

import (
	"context"
	"time"

	"seckill/internal/fault"
)

// What one network may have open without signing in is a share of MaxSockets: less
// would shut out an office or the customers of a mobile carrier behind one address,
// more would let few addresses take every socket of the process.
const (
	guestShare = 10  // one tenth
	fewGuests  = 100 // at least, where MaxSockets is small
)

// guest is a network, and whether its sockets have come without a token. Before
// connection_init they may still become anybody's and are counted apart, so that
// people can sign in where the anonymous have all that they may.
type guest struct {
	network   string // "" is not counted
	anonymous bool
}

// guests counts members that nobody signed in on.
type guests map[guest]int

// full says whether there is no room for one more.
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

// stranger is a request of whom nothing is known yet.
func (r *Sockets) stranger(ctx context.Context) guest {
	if r.opts.Network == nil {
		return guest{}
	}
	return guest{network: r.opts.Network(ctx)}
}

func errTooManyGuests() error {
	return &fault.Error{Code: fault.RateLimited, Message: "Too many connections from one network.", RetryAfter: 10 * time.Second}
}
