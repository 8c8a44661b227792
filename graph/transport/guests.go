package transport

import (
	"context"
	"time"

	"seckill/internal/fault"
)

// One network may have a share of MaxSockets open without signing in. A smaller share
// would lock out an office or the customers of a mobile carrier behind one address, a
// larger one would let few addresses take every anonymous socket of the process.
const (
	guestShare = 10  // one tenth
	fewGuests  = 100 // at least, where MaxSockets is small
)

// guest is a network, and whether connection_init came without a token. Sockets
// before connection_init are counted apart, so that users can sign in from a network
// whose anonymous sockets have reached the bound.
type guest struct {
	network   string // "" is not counted
	anonymous bool
}

// guests counts anonymous members.
type guests map[guest]int

// full reports whether there is no room for one more.
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

// stranger returns what a request is counted as before its caller is known.
func (r *Sockets) stranger(ctx context.Context) guest {
	if r.opts.Network == nil {
		return guest{}
	}
	return guest{network: r.opts.Network(ctx)}
}

func errTooManyGuests() error {
	return &fault.Error{Code: fault.RateLimited, Message: "Too many connections from one network.", RetryAfter: 10 * time.Second}
}
