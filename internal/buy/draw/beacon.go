package draw

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/cloudflare/circl/sign/bls"
)

// Lead is the least time between the publishing of a root and the round that its draw waits
// for: longer than the clocks of the shop and of the beacon may differ, so that the random
// value does not exist yet when the root is public.
const Lead = 30 * time.Second

// ValueDelay is the least time between the publishing of a root and the value that operators enter
// for it, so that others can note the root before.
const ValueDelay = 10 * time.Minute

// signatureBytes is the size of a signature: a compressed point of G1. Its other encodings
// are refused, because the random value is the hash of these bytes.
const signatureBytes = 48

// Sources of random values.
const (
	SourceQuicknet = "drand-quicknet" // a round of Quicknet
	// SourceOperator is a public value that two operators entered after the root was published, in a
	// network that reaches no beacon. It shows that the entries were fixed before, but neither that
	// the value is that of its source, nor that the shop did not choose among sources.
	SourceOperator = "operator"
	// SourceLocal is a value that the server itself chose, in trials: it proves nothing to others.
	SourceLocal = "local"
)

// The beacon quicknet of drand, as https://api.drand.sh/v2/beacons/quicknet/info and
// https://docs.drand.love/blog/2023/10/16/quicknet-is-live describe it.
const (
	quicknetHash    = "52db9ba70e0cc0f6eaf7803dd07447a1f5477735fd3f661792ba94600c84e971"
	quicknetGenesis = 1692803367 // Unix time of round 1
	quicknetPeriod  = 3 * time.Second
	quicknetKey     = "83cf0f2896adee7eb8b5f01fcad3912212c437e0073e911fb90022d3e760183c8c4b450b6a0a6c3ac6a5776a2d106451" +
		"0d1fec758c921cc22b0e17e63aaf4bcb5ed66304de9cf809bd274ca73bab4af5a6e9c76a4bc09e76eae8991ef5ece45a"
)

// ErrFalseRound means that a signature is not that of the round.
var ErrFalseRound = errors.New("the signature is not that of the round")

// Chain is a drand beacon of unchained rounds with signatures in G1
// (bls-unchained-g1-rfc9380). It is safe for concurrent use.
type Chain struct {
	name    string // source in records
	hash    string // in the addresses of relays
	genesis time.Time
	period  time.Duration
	key     *bls.PublicKey[bls.KeyG2SigG1]
}

// quicknet is parsed once: the check that the key is a point of the group takes as long as
// the check of a signature.
var quicknet = must(NewChain(SourceQuicknet, quicknetHash, quicknetKey, time.Unix(quicknetGenesis, 0), quicknetPeriod))

func must(c *Chain, err error) *Chain {
	if err != nil {
		panic(err)
	}
	return c
}

// Quicknet returns the beacon of the League of Entropy with a round every three seconds.
func Quicknet() *Chain { return quicknet }

// NewChain returns a beacon. The key is in hexadecimal, genesis the time of round 1.
func NewChain(name, hash, key string, genesis time.Time, period time.Duration) (*Chain, error) {
	raw, err := hex.DecodeString(key)
	if err != nil {
		return nil, fmt.Errorf("key of beacon %s: %w", name, err)
	}
	if period <= 0 {
		return nil, fmt.Errorf("beacon %s: the period must be positive", name)
	}
	c := &Chain{name: name, hash: hash, genesis: genesis, period: period, key: new(bls.PublicKey[bls.KeyG2SigG1])}
	if err := c.key.UnmarshalBinary(raw); err != nil {
		return nil, fmt.Errorf("key of beacon %s: %w", name, err)
	}
	return c, nil
}

// RoundAfter returns the first round whose time is after t.
func (c *Chain) RoundAfter(t time.Time) uint64 {
	since := t.Sub(c.genesis)
	if since < 0 {
		return 1
	}
	return uint64(since/c.period) + 2
}

// RoundTime returns when a round is published. Rounds count from 1.
func (c *Chain) RoundTime(round uint64) time.Time {
	return c.genesis.Add(time.Duration(round-1) * c.period) // rounds with a signature are small
}

// RoundFor returns the round of a draw whose root was published at a time. It follows from
// that time, so that the shop cannot wait for several rounds and take the best.
func (c *Chain) RoundFor(rootPublishedAt time.Time) uint64 {
	return c.RoundAfter(rootPublishedAt.Add(Lead))
}

// Verify checks the signature of a round and returns its random value, the SHA-256 of the
// signature. The error wraps ErrFalseRound.
func (c *Chain) Verify(round uint64, signature []byte) (randomness [32]byte, err error) {
	if len(signature) != signatureBytes {
		return randomness, fmt.Errorf("%w: it has %d bytes, want %d", ErrFalseRound, len(signature), signatureBytes)
	}
	message := sha256.Sum256(binary.BigEndian.AppendUint64(nil, round))
	if !bls.Verify(c.key, message[:], signature) {
		return randomness, fmt.Errorf("%w %d of %s", ErrFalseRound, round, c.name)
	}
	return sha256.Sum256(signature), nil
}

// RoundAfter is that of Quicknet.
func RoundAfter(t time.Time) uint64 { return quicknet.RoundAfter(t) }

// RoundTime returns when Quicknet publishes a round.
func RoundTime(round uint64) time.Time { return quicknet.RoundTime(round) }

// RoundFor returns the first round of Quicknet that may decide a draw whose root was published then.
func RoundFor(rootPublishedAt time.Time) uint64 { return quicknet.RoundFor(rootPublishedAt) }

// Verify checks the signature of a round of Quicknet, and returns its random value.
func Verify(round uint64, signature []byte) (randomness [32]byte, err error) {
	return quicknet.Verify(round, signature)
}

// ValueRandomness returns the random value of a text that an operator entered from another
// public source, where no beacon can be reached: its SHA-256.
func ValueRandomness(value string) [32]byte { return sha256.Sum256([]byte(value)) }
