// Package captcha creates challenges that are cheap for a user and expensive for a
// script, and verifies their answers.
//
// It owns the kinds of challenges and the verification of answers. Packages account and path
// decide what a right answer allows; path and queue decide inside their own scripts
// (AnswerLua) whether an answer still counts, so that a right one is used up in the same step
// that it allows.
//
// A captcha raises the cost of scripts; it does not stop them: programs read distorted
// text better than people do. Together with the rate limits it bounds guesses and
// scripts.
//
// A challenge is not stored: its id is a signed token with a MAC of the answer, bound to
// purpose, sale, user and challenge. It contains nothing that helps to find the answer, and an
// answer for one purpose, sale or user is invalid for every other. Creating one waits for
// nothing; Redis records which challenge was answered.
package captcha

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/internal/platform/clock"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/typed"
)

// Purpose is what a right answer allows.
type Purpose string

// Purposes.
const (
	Login    Purpose = "LOGIN"    // signing in after failures
	Register Purpose = "REGISTER" // registering an account
	Seckill  Purpose = "SECKILL"  // a path token or a ticket of the waiting room in one sale
	Waitlist Purpose = "WAITLIST" // a place on a waitlist in one sale
)

// OfSale reports whether challenges are for a user in a sale.
func (p Purpose) OfSale() bool { return p == Seckill || p == Waitlist }

// Kind is the form of a challenge. Clients choose the text of the prompt by it.
type Kind string

// Kinds of challenges.
const (
	Text        Kind = "TEXT"          // type the characters in the image
	Math        Kind = "MATH"          // type the result of the sum in the image
	ProofOfWork Kind = "PROOF_OF_WORK" // the client computes a number; nothing to see or read
	External    Kind = "EXTERNAL"      // the client shows the widget of an outside check; see Outside
)

const (
	// MaxTries is the number of wrong answers that void a challenge; lua/answer.lua has
	// the same constant.
	MaxTries = 3
	// DefaultLife is the default lifetime of a challenge.
	DefaultLife = 5 * time.Minute
	// maxAnswerBytes bounds the hashed text: the longest answer has 8 characters.
	maxAnswerBytes = 256
)

// Scope is what a challenge is bound to. Sale and User are set for purposes of a sale only.
type Scope struct {
	Purpose Purpose
	Sale    id.Sale
	User    id.User
	From    netip.Addr // address of the request; challenges are not bound to it
}

// Challenge is a challenge as sent to the client.
type Challenge struct {
	ID         string // public id, cap_…
	Kind       Kind
	Image      string // PNG as a data URL; "" for ProofOfWork and External
	Parameters string // JSON {algorithm, salt, challenge, maxNumber, signature}, or {siteKey} for External; "" for images
	ExpiresAt  time.Time
	// Early means a challenge of a sale that was created before the opening: its answer gives a
	// place in the waiting room before the opening, and nothing after it.
	Early bool
}

// Answer is an answer of a client. The zero value means "none was sent".
type Answer struct {
	ChallengeID string // public id
	Text        string // the typed text, or the computed number
}

// Invalid refuses a wrong answer, or an answer to a challenge that is not open: used,
// expired, void, or of another user.
type Invalid struct {
	Challenge *Challenge // the next one; nil if none could be created
	At        []string
}

// Reason returns CaptchaInvalid.
func (Invalid) Reason() fault.Reason { return fault.CaptchaInvalid }

// Path returns the path of the answer.
func (i Invalid) Path() []string { return i.At }

// Error returns the reason; the challenge is not part of it.
func (i Invalid) Error() string { return fault.Text(i, "") }

// Required refuses a call that needs an answer and has none, or one that was worked out
// before the opening.
type Required struct {
	Challenge *Challenge // to answer; nil if none could be created
	At        []string
}

// Reason returns CaptchaRequired.
func (Required) Reason() fault.Reason { return fault.CaptchaRequired }

// Path returns the path of the missing answer.
func (r Required) Path() []string { return r.At }

// Error returns the reason; the challenge is not part of it.
func (r Required) Error() string { return fault.Text(r, "") }

var answerPath = []string{"captcha"}

// AnswerLua defines the Lua functions that decide whether an answer counts, for scripts
// that do more in the same step. lua/answer.lua documents them.
//
//go:embed lua/answer.lua
var AnswerLua string

//go:embed lua/note.lua
var noteSource string

//go:embed lua/check.lua
var checkSource string

var (
	noteScript  = redis.NewScript(AnswerLua + noteSource)
	checkScript = redis.NewScript(AnswerLua + checkSource)
)

// Keys names the Redis keys of captchas; reservation.Keys implements it. Those of a sale are in
// the slot of its shard.
type Keys interface {
	Answers(shard int, sale id.Sale) string
	Challenge(shard int, challenge id.Challenge) string
	Penalty(shard int, sale id.Sale, subject string) string
}

// Config holds the dependencies and settings of a Service.
type Config struct {
	Client   redis.UniversalClient // without retries
	Keys     Keys
	Secret   []byte        // at least 32 bytes, for this purpose only; the same in all processes
	Life     time.Duration // lifetime of a challenge; 0 = DefaultLife
	Kept     time.Duration // lifetime of what a right answer is exchanged for, if longer; the same in all processes
	PowMax   int           // highest number of a proof of work at level 1; below 10^4 only for tests and drills
	PoolSize int           // images of each kind drawn in advance, about 4 kB each; 0 = 1024
	Wait     time.Duration // how long a request waits for an image that may have no proof of work instead; 0 = ImageWait
	Clock    clock.Clock   // follows that of Redis, by which answers are early and expire
	Counts   Counts        // nil = challenges are not counted
	Sales    SaleRules     // nil = every sale has the same rules
	// Outside verifies External challenges; nil = there are none.
	Outside *Outside
	// SameForAll disables the levels of difficulty: for drills and tests.
	SameForAll bool
}

// Counts counts the challenges of sales.
type Counts interface {
	// Posed counts a challenge of a sale.
	Posed(sale id.Sale)
}

// SaleRules are the rules of all sales.
type SaleRules interface {
	// Captchas returns the captcha rules of a sale. It is called for every challenge and
	// must not cost a round trip.
	Captchas(ctx context.Context, sale id.Sale) (Rules, error)
}

// Rules are the captcha rules of one sale.
type Rules struct {
	Kinds  []Kind    // offered kinds; empty = every kind
	PowMax int       // highest number of a proof of work; 0 = the service's
	Opens  time.Time // opening of the sale; zero = unknown

	outside bool // External challenges can be verified
}

// Service creates and verifies challenges. It is safe for concurrent use.
type Service struct {
	cfg       Config
	images    *imagePool
	signing   string       // key of the signature in a proof of work
	newest    atomic.Int64 // creation of the last challenge, Unix microseconds
	macs      sync.Pool    // of hash.Hash, keyed: keying costs as much as a MAC
	penalties *penalties
}

// New returns a Service. Run fills its image pool; without Run it works, but slower.
func New(cfg Config) (*Service, error) {
	if len(cfg.Secret) < sha256.Size {
		return nil, fmt.Errorf("captcha secret has %d bytes, at least %d are needed", len(cfg.Secret), sha256.Size)
	}
	if cfg.PowMax < 1 {
		return nil, errors.New("captcha: the highest number of a proof of work must be at least 1")
	}
	if cfg.Life == 0 {
		cfg.Life = DefaultLife
	}
	if cfg.PoolSize == 0 {
		cfg.PoolSize = defaultPoolSize
	}
	signing := hmac.New(sha256.New, cfg.Secret)
	signing.Write([]byte("signature of a proof of work"))
	images, err := newImagePool(cfg.PoolSize, cfg.Secret)
	if cfg.Wait > 0 {
		images.wait = cfg.Wait
	}
	s := &Service{cfg: cfg, images: images, signing: string(signing.Sum(nil))}
	s.penalties = newPenalties(&s.cfg)
	return s, err
}

// Run draws images in advance until ctx ends, and returns nil then.
func (s *Service) Run(ctx context.Context) error { return s.images.run(ctx) }

// clockDifference is added to the TTL of records, for challenges of a process whose clock
// differs from that of Redis.
const clockDifference = clock.MaxDifference

// Life returns the lifetime of a challenge.
func (s *Service) Life() time.Duration { return s.cfg.Life }

// RecordLife is how long a record is found after it was written: while it is, no answer counts
// twice, and what a right one was exchanged for is known.
func (s *Service) RecordLife() time.Duration { return s.cfg.recordLife() }

func (c *Config) recordLife() time.Duration { return max(c.Life, c.Kept) + clockDifference }

// challengeKey is the key of what belongs to one challenge.
func (s *Service) challengeKey(challenge id.Challenge) string {
	return s.cfg.Keys.Challenge(id.ShardOf(id.Sale(challenge)), challenge)
}

// normalise makes equivalent answers equal: it folds characters of other keyboards and
// capitals, and removes spaces, invisible characters and leading zeros.
func normalise(answer string) string {
	answer = strings.ToLower(typed.Plain(answer))
	answer = strings.Join(strings.Fields(answer), "")
	if trimmed := strings.TrimLeft(answer, "0"); trimmed != answer && isDigits(answer) {
		if trimmed == "" {
			return "0"
		}
		return trimmed
	}
	return answer
}

func isDigits(s string) bool {
	return strings.Trim(s, "0123456789") == ""
}
