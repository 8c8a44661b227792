package account

import (
	"context"
	"fmt"
	"time"

	"github.com/alexedwards/argon2id"

	"seckill/internal/fault"
)

const (
	hashWorkers = 2  // each takes a core for 25 ms and 19 MiB; the rest of the machine belongs to orders
	hashWaiting = 64 // people who wait for a place: the last of them about 1 s
	// hashRetry is when to come back after the queue was full: about how long it takes to empty.
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

// passwords hashes and compares, a few at a time.
type passwords struct {
	params  *argon2id.Params
	dummy   string        // hash of nothing that anybody knows, to compare with when there is no account
	slots   chan struct{} // those at work and those who wait
	running chan struct{} // those at work
}

func newPasswords(params *argon2id.Params) (*passwords, error) {
	dummy, err := argon2id.CreateHash("", params) // an empty password is never accepted
	if err != nil {
		return nil, fmt.Errorf("hash of no password: %w", err)
	}
	return &passwords{
		params: params, dummy: dummy,
		slots: make(chan struct{}, hashWorkers+hashWaiting), running: make(chan struct{}, hashWorkers),
	}, nil
}

// seat takes a place in the queue, before anything else is used up. When the
// queue is full it refuses. leave gives the place back.
func (p *passwords) enqueue() (leave func(), refusal fault.Refusal) {
	select {
	case p.slots <- struct{}{}:
		return func() { <-p.slots }, nil
	default:
		return nil, fault.Throttled{RetryAfter: hashRetry}
	}
}

// hash needs a seat. password is normalised.
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

// matches needs a seat. An empty hash, that of no account, takes the same time and
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
		return fault.Wrap(fault.Timeout, "too many people sign in at once; try again shortly", ctx.Err())
	}
}
