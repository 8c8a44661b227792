package account

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/alexedwards/argon2id"

	"seckill/internal/fault"
)

const (
	hashWorkers = 2  // each takes a core for 25 ms and 19 MiB; the rest of the machine belongs to orders
	hashWaiting = 64 // requests that wait for a worker: the last of them about 1 s
	// hashPerNetwork bounds the places of untrusted requests from one network.
	hashPerNetwork = 8
	// hashRetry is when to retry after the queue was full: about the time it takes to empty.
	hashRetry = time.Second
)

// owaspMinimum is argon2id as the OWASP Password Storage sheet asks for at least:
// 19 MiB, two passes, one lane.
var owaspMinimum = &argon2id.Params{Memory: 19 * 1024, Iterations: 2, Parallelism: 1, SaltLength: 16, KeyLength: 32}

// HashPassword returns the encoded argon2id hash of a password, about 25 ms. It is
// for tools; the service hashes at most two passwords at a time.
func HashPassword(password string) (string, error) {
	hash, err := argon2id.CreateHash(normalisePassword(password), owaspMinimum)
	if err != nil {
		return "", fmt.Errorf("hash password: %w", err)
	}
	return hash, nil
}

// rank says how much of the hash queue a request may fill.
type rank int

const (
	unproven rank = iota // half
	proven               // three quarters: a proof of work, or a network that signed in before
	trusted              // all: a device that signed in to this account before
)

// places returns the bound of the queue for the rank, workers included.
func (r rank) places() int {
	switch r {
	case unproven:
		return hashWorkers + hashWaiting/2
	case proven:
		return hashWorkers + hashWaiting*3/4
	case trusted:
	}
	return hashWorkers + hashWaiting
}

// passwords hashes and compares, hashWorkers at a time, behind a bounded queue.
type passwords struct {
	params  *argon2id.Params
	dummy   string        // hash to compare with when there is no account; no password matches it
	running chan struct{} // a token for each busy worker

	mu        sync.Mutex
	waiting   int                  // guarded by mu; requests in the queue or at work
	byNetwork map[netip.Prefix]int // guarded by mu; those of them that are not trusted
}

func newPasswords(params *argon2id.Params) (*passwords, error) {
	dummy, err := argon2id.CreateHash("", params) // an empty password is never accepted
	if err != nil {
		return nil, fmt.Errorf("hash of no password: %w", err)
	}
	return &passwords{
		params: params, dummy: dummy, running: make(chan struct{}, hashWorkers), byNetwork: make(map[netip.Prefix]int),
	}, nil
}

// full reports whether the part of the queue is full that the rank may fill.
func (p *passwords) full(r rank) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waiting >= r.places()
}

// enqueue takes a place in the queue, before a captcha is used up. It refuses when
// the rank's part is full or the network has its share; an invalid network has none.
// leave gives the place back.
func (p *passwords) enqueue(r rank, network netip.Prefix) (leave func(), refusal fault.Refusal) {
	shared := r != trusted && network.IsValid()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting >= r.places() || (shared && p.byNetwork[network] >= hashPerNetwork) {
		return nil, fault.Throttled{RetryAfter: hashRetry}
	}
	p.waiting++
	if shared {
		p.byNetwork[network]++
	}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.waiting--
		if !shared {
			return
		}
		if p.byNetwork[network]--; p.byNetwork[network] == 0 {
			delete(p.byNetwork, network)
		}
	}, nil
}

// hash needs a place. password is normalised.
func (p *passwords) hash(ctx context.Context, password string) (string, error) {
	if err := p.acquire(ctx); err != nil {
		return "", err
	}
	defer func() { <-p.running }()
	hash, err := argon2id.CreateHash(password, p.params)
	if err != nil {
		return "", fmt.Errorf("hash password: %w", err)
	}
	return hash, nil
}

// matches needs a place. An empty hash, that of no account, takes the same time and
// never matches. stale says that the hash was made with other parameters than
// those in force.
func (p *passwords) matches(ctx context.Context, password, hash string) (ok, stale bool, err error) {
	if err := p.acquire(ctx); err != nil {
		return false, false, err
	}
	defer func() { <-p.running }()
	exists := hash != ""
	if !exists {
		hash = p.dummy
	}
	ok, params, err := argon2id.CheckHash(password, hash)
	if err != nil {
		return false, false, fmt.Errorf("compare password: %w", err)
	}
	return ok && exists, *params != *p.params, nil
}

func (p *passwords) acquire(ctx context.Context) error {
	select {
	case p.running <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fault.Wrap(fault.Timeout, "too many sign-ins at once; try again shortly", ctx.Err())
	}
}
