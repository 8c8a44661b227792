// Package path issues path tokens: short-lived, signed rights to one attempt on an item.
//
// A path token hides the entry to the stock until the opening and makes every attempt
// cost a captcha. It is bound to a user, an item and the epoch of the gate, valid once,
// and used up inside the reserve script (package reservation), never here. Redis has its
// permit only. The package also owns the number of permits that an item may have at a time.
//
// It does not own captchas, whose verification its script includes, nor the gate, which
// it only reads.
package path

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/internal/buy/reservation"
	"seckill/internal/buy/sale"
	"seckill/internal/identity/person"
	"seckill/internal/platform/batch"
	"seckill/internal/platform/captcha"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

const (
	// DefaultLife is the default lifetime of a path token.
	DefaultLife = time.Minute
	// requestBytes names a request; no two requests of a user have the same name.
	requestBytes = 16
	// permitRetry is the retry interval when no permit is free: unused path tokens are
	// used or expire all the time.
	permitRetry = time.Second

	// maxBatch bounds one script call: 256 requests occupy Redis for about 2 ms.
	maxBatch = 256
	// batchesInFlight bounds the concurrent batches of a shard. With two, each large batch
	// is followed by one of a single request, which costs Redis as much as ten of a batch.
	batchesInFlight = 1
	// maxWaiting bounds the queued requests of a shard; above it Issue returns OVERLOADED.
	maxWaiting = 4096
	// overloadRetry is the RetryAfter of OVERLOADED.
	overloadRetry = 500 * time.Millisecond
)

// Path is a path token.
type Path struct {
	Token     string
	ExpiresAt time.Time
}

// NoPermit refuses because as many buyers as the stock allows have unused path tokens,
// or because others wait: the caller enters the waiting room instead.
type NoPermit struct {
	Item       id.Item
	RetryAfter time.Duration
}

// Reason returns TooManyTries.
func (NoPermit) Reason() fault.Reason { return fault.TooManyTries }

// Path returns nil: no input is refused.
func (NoPermit) Path() []string { return nil }

// Error returns the wait.
func (n NoPermit) Error() string {
	return fault.Text(n, "no permit, retry after "+n.RetryAfter.String())
}

//go:embed lua/issue.lua
var issueSource string

// UnusedLua defines the Lua function that counts unused path tokens, for scripts that
// remove permits. lua/unused.lua documents it.
//
//go:embed lua/unused.lua
var UnusedLua string

//go:embed lua/buyers.lua
var buyersSource string

// BuyersLua defines the Lua functions that decide about buyers and note their person keys, for the
// scripts that give path tokens or tickets. lua/buyers.lua documents it.
var BuyersLua = reservation.ExpiriesLua + UnusedLua + reservation.OtherPathLua + buyersSource

var issueScript = redis.NewScript(reservation.GateLua + captcha.AnswerLua + BuyersLua + issueSource)

// Config holds the dependencies and settings of a Service.
type Config struct {
	Client   redis.UniversalClient // without retries
	Keys     reservation.Keys
	Captchas *captcha.Service
	Tokens   Tokens
	Life     time.Duration // lifetime of a path token; 0 = DefaultLife
	// Ratio is the maximum of unused path tokens of an item at a time, as a multiple of
	// the available stock, rounded up; 0 or less = no limit.
	Ratio float64
}

// Service issues path tokens. It is safe for concurrent use.
type Service struct {
	cfg      Config
	perMille int64 // Ratio in thousandths, so that the script uses integers
	requests [id.Shards]*batch.Batcher[*request, reply]

	mu     sync.Mutex
	recent map[id.Item]recent // guarded by mu
}

// New returns a service.
func New(cfg Config) *Service {
	if cfg.Life == 0 {
		cfg.Life = DefaultLife
	}
	s := &Service{cfg: cfg, perMille: int64(max(0, math.Round(cfg.Ratio*1000))), recent: map[id.Item]recent{}}
	for shard := range s.requests {
		s.requests[shard] = batch.New(batch.Config[*request, reply]{
			Process: s.issueAll, MaxBatch: maxBatch, MaxInFlight: batchesInFlight, MaxWaiting: maxWaiting,
			Timeout: reservation.DefaultTimeout,
		})
	}
	return s
}

// IssueInput is a request for a path token.
type IssueInput struct {
	Sale    id.Sale
	Item    id.Item
	User    id.User
	Persons person.Keys    // by which the limits of the sale count the user
	From    netip.Addr     // address of the request
	Captcha captcha.Answer // to a challenge for this sale; zero = none was sent
	// Waived means that the sale requires no captcha now.
	Waived bool
	// PerMille is the maximum of unused path tokens of the item per thousand units
	// left, 0 = no limit; nil = the ratio of the service.
	PerMille *int
	// Queued means that every buyer passes through the waiting room now: only a user
	// with an unused path token gets another.
	Queued bool
	// Opens is the opening time in the catalogue. It is used only in the refusal while
	// the gate is not loaded; otherwise the gate's own time decides.
	Opens time.Time
}

// Issue issues a path token for a right captcha answer, and uses the answer up. A
// second token voids the user's first in the sale; for the same item it expires a
// millisecond earlier than usual, so that the two differ. Refusals, in the order of the
// checks: sale.NotOpen, reservation.AlreadyOrdered, reservation.LimitReached (of the sale),
// captcha.Required or captcha.Invalid, reservation.NoneLeft, NoPermit. An answer is
// used up only if a token is issued. Requests on a shard that arrive while a batch is in flight share the
// next one. An error is a fault: UNAVAILABLE or OVERLOADED.
func (s *Service) Issue(ctx context.Context, in IssueInput) (Path, error) {
	name, err := newRequest()
	if err != nil {
		return Path{}, err
	}
	if in.Captcha, err = s.cfg.Captchas.Exchange(ctx, in.scope(), in.Captcha); err != nil {
		return Path{}, err
	}
	req := &request{in, name, s.cfg.Captchas.Claim(in.scope(), in.Captcha)}
	r, err := s.requests[id.ShardOf(in.Sale)].Do(ctx, req)
	switch {
	case errors.Is(err, batch.ErrFull):
		return Path{}, &fault.Error{Code: fault.Overloaded, Message: "too many buyers at once", RetryAfter: overloadRetry,
			Err: err}
	case err != nil:
		return Path{}, fault.Wrap(fault.Unavailable, "The sale does not answer. Please try again shortly.",
			fmt.Errorf("issue path: %w", err))
	}
	if r.outcome == outcomeIssued {
		p, err := parsePermit(r.detail)
		if err != nil {
			return Path{}, fmt.Errorf("issue path: %w", err)
		}
		p.Persons = in.Persons
		return Path{Token: s.cfg.Tokens.Token(in.User, in.Item, p), ExpiresAt: p.Until}, nil
	}
	return Path{}, s.refusal(ctx, in, r, req.claim.Kind)
}

// Permit returns what a path token proves for a user and an item; see Tokens.Permit.
func (s *Service) Permit(user id.User, item id.Item, token string) reservation.Permit {
	return s.cfg.Tokens.Permit(user, item, token)
}

func newRequest() (string, error) {
	raw := make([]byte, requestBytes)
	if _, err := rand.Read(raw); err != nil {
		return "", fmt.Errorf("request of a path: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(raw), nil
}

// parsePermit parses "epoch|expiry".
func parsePermit(text string) (reservation.Permit, error) {
	epochText, untilText, _ := strings.Cut(text, "|")
	epoch, err1 := strconv.ParseInt(epochText, 10, 64)
	until, err2 := strconv.ParseInt(untilText, 10, 64)
	if err := errors.Join(err1, err2); err != nil {
		return reservation.Permit{}, fmt.Errorf("permit: %w", err)
	}
	return reservation.Permit{Epoch: epoch, Until: time.UnixMilli(until).UTC()}, nil
}

// outcome is the outcome of lua/issue.lua.
type outcome string

const (
	outcomeIssued     outcome = "issued"
	outcomeNotLoaded  outcome = "not_loaded"
	outcomePaused     outcome = "paused"
	outcomeNotStarted outcome = "not_started"
	outcomeEnded      outcome = "ended"
	outcomeHolding    outcome = "holding"
	outcomeLimit      outcome = "limit"
	outcomePerson     outcome = "person"
	outcomeExpiries   outcome = "expiries"
	outcomeCaptcha    outcome = "captcha"
	outcomeSoldOut    outcome = "sold_out"
	outcomeNoPermit   outcome = "no_permit"
)

type reply struct {
	outcome outcome
	now     time.Time // Redis TIME
	opens   time.Time // zero = the gate has none
	detail  string
}

func (in IssueInput) scope() captcha.Scope {
	return captcha.Scope{Purpose: captcha.Seckill, Sale: in.Sale, User: in.User, From: in.From}
}

// refusal maps an outcome other than issued to a refusal. kind is that of the answered captcha.
func (s *Service) refusal(ctx context.Context, in IssueInput, r reply, kind captcha.Kind) error {
	switch r.outcome {
	case outcomeNotLoaded:
		if r.now.Before(in.Opens) {
			return sale.NewNotOpen(sale.PhaseUpcoming, in.Opens, r.now)
		}
		return sale.NewNotOpen(sale.PhasePaused, in.Opens, r.now)
	case outcomePaused:
		return sale.NewNotOpen(sale.PhasePaused, r.opens, r.now)
	case outcomeNotStarted:
		return sale.NewNotOpen(sale.PhaseUpcoming, r.opens, r.now)
	case outcomeEnded:
		return sale.NewNotOpen(sale.PhaseEnded, time.Time{}, r.now)
	case outcomeHolding:
		task, err := id.ParseUUID[id.Task](r.detail)
		if err != nil {
			return fmt.Errorf("issue path: reservation in %s: %w", in.Item, err)
		}
		return reservation.AlreadyOrdered{Task: task, At: []string{"itemId"}}
	case outcomeLimit:
		return reservation.AccountLimitReached(r.detail)
	case outcomePerson:
		return reservation.PersonLimitReached(r.detail, "itemId")
	case outcomeExpiries:
		wait, err := strconv.ParseInt(r.detail, 10, 64)
		if err != nil {
			return fmt.Errorf("issue path: wait of %s: %w", in.User, err)
		}
		return fault.Throttled{RetryAfter: time.Duration(wait) * time.Millisecond, Cause: fault.ExpiredReservations}
	case outcomeCaptcha:
		return s.cfg.Captchas.Refuse(ctx, captcha.WrongAnswer{
			Scope: in.scope(), Answer: in.Captcha, Verdict: captcha.Verdict(r.detail), Kind: kind,
		})
	case outcomeSoldOut:
		return reservation.NoneLeft{Item: in.Item}
	case outcomeNoPermit:
		return NoPermit{Item: in.Item, RetryAfter: permitRetry}
	case outcomeIssued:
	}
	return fmt.Errorf("issue path: unexpected outcome %q", r.outcome)
}
