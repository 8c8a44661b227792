// Package captcha makes puzzles that cost a person little and a script something,
// and judges their answers.
//
// It owns the kinds of puzzle, where an open challenge lies in Redis, and the
// rule by which an answer is judged. It does not own what an answer lets
// through: packages account and path ask for a verdict, path inside its own
// script (AnswerLua), so that a right answer is used up in the step that it pays for.
//
// A captcha is a cost, not a wall: programs read distorted text better than
// people do. It bounds guesses and scripts together with the rate limits.
//
// What is kept of a challenge is a MAC of its answer, bound to purpose, sale,
// person and challenge. Redis holds nothing that helps to answer, and an answer
// for one purpose, sale or person serves no other.
package captcha

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"golang.org/x/text/width"

	"seckill/internal/clock"
	"seckill/internal/fault"
	"seckill/internal/id"
	"seckill/internal/reservation"
)

// Purpose is what a right answer lets through.
type Purpose string

// Purposes.
const (
	Login    Purpose = "LOGIN"    // signing in after failures
	Register Purpose = "REGISTER" // making an account
	Seckill  Purpose = "SECKILL"  // a path in one sale
)

// Kind is how a challenge is answered. Whoever shows it words the prompt by it.
type Kind string

// Kinds.
const (
	Text        Kind = "TEXT"          // type the characters in the picture
	Math        Kind = "MATH"          // type the result of the sum in the picture
	ProofOfWork Kind = "PROOF_OF_WORK" // let the machine find a number; nothing to see or read
)

const (
	// MaxTries is how many wrong answers void a challenge; lua/answer.lua knows it too.
	MaxTries = 3
	// DefaultLife is how long a challenge can be answered.
	DefaultLife = 5 * time.Minute
	// maxAnswerBytes bounds what is hashed: our longest answer has 8 characters.
	maxAnswerBytes = 256
)

// Scope is what a challenge is good for. Sale and User are set for Seckill only.
type Scope struct {
	Purpose Purpose
	Sale    uuid.UUID
	User    uuid.UUID
	From    netip.Addr // where the request came from; nothing is bound to it
}

// Challenge is a puzzle to show.
type Challenge struct {
	ID         string // public id, cap_…
	Kind       Kind
	Image      string // PNG as a data URL; "" for ProofOfWork
	Parameters string // JSON {algorithm, salt, challenge, maxNumber, signature}; "" for pictures
	ExpiresAt  time.Time
}

// Answer is what came back. The zero value is "none was sent".
type Answer struct {
	ChallengeID string // public id
	Text        string // what was typed, or the number that was found
}

// Invalid refuses a wrong answer, or one to a challenge that is not open: used,
// lapsed, void, or somebody else's.
type Invalid struct {
	Challenge *Challenge // the next one; nil when none could be made
	At        []string
}

// Reason returns CaptchaInvalid.
func (Invalid) Reason() fault.Reason { return fault.CaptchaInvalid }

// Path returns the path of the answer.
func (i Invalid) Path() []string { return i.At }

// Required refuses because an answer is needed and none was sent.
type Required struct {
	Challenge *Challenge // to answer; nil when none could be made
	At        []string
}

// Reason returns CaptchaRequired.
func (Required) Reason() fault.Reason { return fault.CaptchaRequired }

// Path returns the path of the missing answer.
func (r Required) Path() []string { return r.At }

var answerPath = []string{"input", "captcha"}

// AnswerLua defines the Lua functions that judge and use up an answer, for
// scripts that do more in the same step. See its head.
//
//go:embed lua/answer.lua
var AnswerLua string

//go:embed lua/create.lua
var createSource string

//go:embed lua/check.lua
var checkSource string

var (
	createScript = redis.NewScript(createSource)
	checkScript  = redis.NewScript(AnswerLua + checkSource)
)

// Config is what a Service needs.
type Config struct {
	Client   redis.UniversalClient // without retries
	Keys     reservation.Keys
	Secret   []byte        // at least 32 bytes, of this purpose alone; the same in all processes
	Life     time.Duration // of a challenge; 0 = DefaultLife
	PowMax   int           // highest number of a proof of work, before it grows harder; below 10^4 only for tests and drills
	PoolSize int           // pictures of each kind drawn ahead, about 4 kB each; 0 = 1024
	Clock    clock.Clock
	// Posed is told of every challenge for a sale; nil = nobody counts.
	Posed func(sale uuid.UUID)
	// Rules returns what a sale wants of captchas now; nil = every sale wants the
	// same. It is asked for every challenge and must not cost a round trip.
	Rules func(ctx context.Context, sale uuid.UUID) (Rules, error)
	// SameForAll makes challenges no harder for those who ask for many: for drills and tests.
	SameForAll bool
}

// Rules are what one sale wants of captchas.
type Rules struct {
	Kinds  []Kind // that are offered; none = every kind. ProofOfWork is granted in any case.
	PowMax int    // highest number of a proof of work; 0 = that of the service
}

// Service makes and judges challenges. It is safe for concurrent use.
type Service struct {
	cfg     Config
	images  *imagePool
	signing string // key of the signature in a proof of work
}

// New returns a service. Run fills its pool of pictures; it works without, slower.
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
	return &Service{cfg: cfg, images: newImagePool(cfg.PoolSize), signing: string(signing.Sum(nil))}, nil
}

// Run draws pictures ahead until ctx ends, and returns nil then.
func (s *Service) Run(ctx context.Context) error { return s.images.run(ctx) }

// Key returns the hash in which the open challenges of a scope lie. For Seckill
// it is one hash per person and sale, in the sale's shard. challenge is the
// challenge's id, used by the other purposes only.
func (s *Service) Key(scope Scope, challenge uuid.UUID) string {
	if scope.Purpose == Seckill {
		return s.cfg.Keys.Captcha(id.ShardOf(scope.Sale), scope.Sale, scope.User)
	}
	return s.cfg.Keys.Challenge(id.ShardOf(challenge), challenge)
}

// Seal returns what AnswerLua wants to know of an answer: the challenge's id, Nil
// when it is none, and the MAC of the answer.
func (s *Service) Seal(scope Scope, a Answer) (challenge uuid.UUID, mac string) {
	challenge, err := id.Parse(id.Challenge, a.ChallengeID)
	if err != nil || len(a.Text) > maxAnswerBytes {
		return uuid.Nil, ""
	}
	return challenge, s.mac(scope, challenge, a.Text)
}

// mac binds an answer to its challenge and scope. All parts before the answer
// have a fixed length or alphabet, so that no two differ only in where they end.
func (s *Service) mac(scope Scope, challenge uuid.UUID, answer string) string {
	h := hmac.New(sha256.New, s.cfg.Secret)
	fmt.Fprintf(h, "%s|%s|%s|%s|%s", scope.Purpose, scope.Sale, scope.User, challenge, normalise(answer))
	return hex.EncodeToString(h.Sum(nil))
}

// normalise makes answers equal that a person would call equal: full-width
// characters as a Chinese keyboard types them, capitals, spaces, leading zeros.
func normalise(answer string) string {
	answer = strings.ToLower(width.Fold.String(answer))
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
