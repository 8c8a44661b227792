package transport

import (
	"context"
	"time"

	"seckill/internal/platform/auth"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/ratelimit"
)

// Share of MaxSockets that one network may use for anonymous sockets. A smaller share
// would lock out the users of a company or mobile carrier behind one address; with a
// larger one a few addresses could use all anonymous sockets of the process.
const (
	anonymousShare = 10  // one tenth
	minAnonymous   = 100 // minimum when MaxSockets is small
)

// anonymousClient identifies the networks of a client, and whether connection_init came
// without a token. Sockets before connection_init are counted separately, so that users can
// sign in from a network whose anonymous sockets have reached the bound.
type anonymousClient struct {
	networks  []ratelimit.Range // each with Factor times the share
	anonymous bool
}

type anonymousKey struct {
	network   ratelimit.Subject
	anonymous bool
}

type anonymousCounts map[anonymousKey]int

// full reports whether a network of a client has reached its bound.
func (c anonymousCounts) full(of anonymousClient, maxSockets int) bool {
	for _, n := range of.networks {
		if c[anonymousKey{n.Subject, of.anonymous}] >= max(maxSockets/anonymousShare, minAnonymous)*n.Factor {
			return true
		}
	}
	return false
}

func (c anonymousCounts) add(of anonymousClient) {
	for _, n := range of.networks {
		c[anonymousKey{n.Subject, of.anonymous}]++
	}
}

func (c anonymousCounts) remove(of anonymousClient) {
	for _, n := range of.networks {
		key := anonymousKey{n.Subject, of.anonymous}
		if c[key]--; c[key] <= 0 {
			delete(c, key)
		}
	}
}

// unauthenticated returns the client of a request before authentication.
func unauthenticated(ctx context.Context) anonymousClient {
	return anonymousClient{networks: ratelimit.Ranges(auth.ClientAddr(ctx))}
}

func errTooManyAnonymous() error {
	return &fault.Error{Code: fault.RateLimited, Message: "Too many connections from one network.",
		RetryAfter: 10 * time.Second}
}
