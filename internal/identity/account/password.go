package account

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/base64"
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/alexedwards/argon2id"
	"golang.org/x/crypto/argon2"

	"seckill/internal/platform/fault"
)

const (
	hashWaiting = 64 // requests waiting for a worker: the last waits about 1 s
	// hashPerNetwork limits untrusted requests in the queue per network.
	hashPerNetwork = 8
	// hashRetry is the retry delay when the queue is full: about the time to empty it.
	hashRetry = time.Second
)

// hashWorkers is how many passwords are hashed at once. Each uses a core for 25 ms and
// 19 MiB: two, but at most half of the cores, so that the others serve orders.
var hashWorkers = max(1, min(2, runtime.GOMAXPROCS(0)/2))

// owaspMinimum are the minimum argon2id parameters of the OWASP Password Storage sheet:
// 19 MiB, two passes, one lane.
var owaspMinimum = &argon2id.Params{Memory: 19 * 1024, Iterations: 2, Parallelism: 1, SaltLength: 16, KeyLength: 32}

// HashPassword returns the encoded argon2id hash of a password, which takes about 25 ms.
// It is for tools; the service hashes at most two passwords at a time.
func HashPassword(password string) (string, error) {
	hash, err := argon2id.CreateHash(normalisePassword(password), owaspMinimum)
	if err != nil {
		return "", fmt.Errorf("hash password: %w", err)
	}
	return hash, nil
}

// rank sets how much of the hash queue a request may fill.
type rank int

const (
	unproven rank = iota // half
	proven               // three quarters: a proof of work, or a network that signed in before
	trusted              // all: a device that signed in to this account before
)

// places returns the queue limit of the rank, including workers.
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

// passwords hashes and compares passwords, hashWorkers at a time, with a bounded queue.
type passwords struct {
	params  *argon2id.Params
	dummy   string        // compared with when there is no account; no password matches it
	running chan struct{} // a token for each busy worker

	mu        sync.Mutex
	waiting   int                  // guarded by mu; requests queued or hashing
	byNetwork map[netip.Prefix]int // guarded by mu; untrusted ones among waiting
}

func newPasswords(params *argon2id.Params) *passwords {
	return &passwords{
		params: params, dummy: dummyHash(params), running: make(chan struct{}, hashWorkers),
		byNetwork: make(map[netip.Prefix]int),
	}
}

// dummyHash returns a random hash in the encoding of argon2id, without the cost of one.
func dummyHash(p *argon2id.Params) string {
	salt, key := make([]byte, p.SaltLength), make([]byte, p.KeyLength)
	_, _ = rand.Read(salt) // never fails
	_, _ = rand.Read(key)
	encode := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, p.Memory, p.Iterations, p.Parallelism,
		encode(salt), encode(key))
}

// full reports whether the rank's share of the queue is full.
func (p *passwords) full(r rank) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waiting >= r.places()
}

// enqueue reserves a place in the queue, before a captcha answer is consumed. It refuses
// when the rank's share is full or the network has reached its limit; an invalid network
// has no limit. leave releases the place.
func (p *passwords) enqueue(r rank, network netip.Prefix) (leave func(), err error) {
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

// hash requires a place in the queue. password is normalised.
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

// matches requires a place in the queue. An empty hash (no account) takes the same time
// and never matches. stale reports that the hash has another format or other parameters
// than the current ones. password is as typed: other systems hashed it so.
func (p *passwords) matches(ctx context.Context, password, hash string) (ok, stale bool, err error) {
	if err := p.acquire(ctx); err != nil {
		return false, false, err
	}
	defer func() { <-p.running }()
	exists := hash != ""
	if !exists {
		hash = p.dummy
	}
	ok, stale, err = p.compare(normalisePassword(password), hash)
	if err == nil && !ok && stale && normalisePassword(password) != password {
		ok, _, err = p.compare(password, hash)
	}
	if err != nil {
		return false, false, fmt.Errorf("compare password: %w", err)
	}
	return ok && exists, stale, nil
}

// compare compares a password with a hash of this server or of another system.
func (p *passwords) compare(password, hash string) (ok, stale bool, err error) {
	if !strings.HasPrefix(hash, argonPrefix) {
		ok, err = compareImported(password, hash)
		return ok, true, err
	}
	ok, params, err := argon2id.CheckHash(password, hash)
	if err != nil {
		return false, false, err
	}
	return ok, *params != *p.params, nil
}

func (p *passwords) acquire(ctx context.Context) error {
	select {
	case p.running <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fault.Wrap(fault.Timeout, "Too many sign-ins at once. Please try again shortly.", ctx.Err())
	}
}

//go:embed common_passwords.txt
var commonPasswordsText string

// commonWords is the embedded list of words that must not be the whole password.
var commonWords = func() map[string]bool {
	words := map[string]bool{}
	for line := range strings.Lines(commonPasswordsText) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			words[line] = true
		}
	}
	return words
}()

// minDistinct is the minimum number of different characters in a password.
const minDistinct = 5

// keyRows are the character sequences that sequence looks for, in both directions.
var keyRows = []string{"01234567890123456789", "abcdefghijklmnopqrstuvwxyz", "qwertyuiop", "asdfghjkl", "zxcvbnm"}

// leet reverses common substitutions of letters.
var leet = strings.NewReplacer("@", "a", "4", "a", "3", "e", "1", "i", "0", "o", "$", "s", "5", "s", "7", "t")

// common reports whether a password is easy to guess: few different characters, a
// repeated substring, a keyboard row, a common word with digits, or the account name with
// digits.
func common(password, account string) bool {
	password = strings.ToLower(password)
	distinct := map[rune]bool{}
	for _, r := range password {
		distinct[r] = true
	}
	if len(distinct) < minDistinct || sequence(password) {
		return true
	}
	name, _, _ := strings.Cut(account, "@")
	for _, text := range []string{password, leet.Replace(password)} {
		letters := strings.Map(func(r rune) rune {
			if unicode.IsLetter(r) {
				return r
			}
			return -1
		}, text)
		if word := repeated(letters); commonWords[word] || word == name {
			return true
		}
	}
	piece := repeated(password)
	return len(piece) < len(password) && len(piece) < minPassword
}

// sequence reports whether the text is part of one of keyRows.
func sequence(text string) bool {
	for _, row := range keyRows {
		if strings.Contains(row, text) || strings.Contains(reversed(row), text) {
			return true
		}
	}
	return false
}

func reversed(text string) string {
	out := []byte(text)
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return string(out)
}

// repeated returns the shortest substring whose repetition is the text; the text itself
// if there is none.
func repeated(text string) string {
	for n := 1; n <= len(text)/2; n++ {
		if len(text)%n == 0 && strings.Repeat(text[:n], len(text)/n) == text {
			return text[:n]
		}
	}
	return text
}
